#pragma once

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// weight/2 n/T sum_k |u[k+1] - u[k]|^2 over the n sets of the parts of the field: one for each layer, or for
/// each interval of layers that share their controls.
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
        sum += of_part(net, controls + part.range.begin, part.range.end - part.range.begin,
                       gradient ? gradient + part.range.begin : nullptr);
    return sum;
  }

 private:
  template <class T>
  Wide<T> of_part(const Network& net, const T* values, Index size, T* gradient) const {
    const Index set = size / net.sets;
    const double factor = weight * static_cast<double>(net.sets) / net.horizon;
    const auto jump = [&](Index n) { return values[n + set] - values[n]; };
    const Wide<T> sum = sum_vector<Wide<T>>(size - set, [&](Wide<T> partial, Index n) {
      return fma(Wide<T>(jump(n)), Wide<T>(jump(n)), partial);
    });
    for (Index n = 0; gradient && n + set < size; ++n) {
      gradient[n + set] = fma(T(factor), jump(n), gradient[n + set]);
      gradient[n] = fnma(T(factor), jump(n), gradient[n]);
    }
    return 0.5 * factor * sum;
  }
};

}  // namespace ocdl
