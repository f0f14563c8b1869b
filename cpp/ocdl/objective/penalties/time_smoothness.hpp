#pragma once

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// weight/2 N/T sum_j |u[j+1] - u[j]|^2 over the parts of the field, K and b.
struct TimeSmoothness {
  static constexpr std::string_view name = "time_smoothness";
  static constexpr bool nonsmooth = false;

  double weight = 0;
  PartSelection parts;  ///< not looked at: these are the parts that are functions of time

  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    Wide<T> sum{};
    for (const Part& part : net.parts)
      if (part.role == Role::field)
        sum += of_part(net, controls + part.place.begin, part.place.end - part.place.begin,
                       gradient ? gradient + part.place.begin : nullptr);
    return sum;
  }

 private:
  template <class T>
  Wide<T> of_part(const Network& net, const T* values, Index size, T* gradient) const {
    const Index layer = size / net.layers;
    const double factor = weight * static_cast<double>(net.layers) / net.horizon;
    const auto jump = [&](Index n) { return values[n + layer] - values[n]; };
    const Wide<T> sum = sum_vector<Wide<T>>(size - layer, [&](Wide<T> partial, Index n) {
      return fma(Wide<T>(jump(n)), Wide<T>(jump(n)), partial);
    });
    for (Index n = 0; gradient && n + layer < size; ++n) {
      gradient[n + layer] = fma(T(factor), jump(n), gradient[n + layer]);
      gradient[n] = fnma(T(factor), jump(n), gradient[n]);
    }
    return 0.5 * factor * sum;
  }
};

}  // namespace ocdl
