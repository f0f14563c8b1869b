#pragma once

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// weight |u|_1 over the selected parts; its subgradient at 0 is 0, its second derivative 0 everywhere.
struct L1 {
  static constexpr std::string_view name = "l1";
  static constexpr bool nonsmooth = true;

  double weight = 0;
  PartSelection parts;

  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    return parts.sum_of_runs(net, controls, gradient, [this](const T* values, Index size, T* of_values) {
      return of_run(values, size, of_values);
    });
  }

 private:
  template <class T>
  Wide<T> of_run(const T* values, Index size, T* gradient) const {
    const auto sign = [](const T& x) { return double(value_of(x) > 0) - double(value_of(x) < 0); };
    if (gradient)
      for_chunks(size, [&](Index begin, Index end) {
        for (Index n = begin; n < end; ++n) gradient[n] += T(weight * sign(values[n]));
      });
    return weight * sum_vector<Wide<T>>(size, [=](Wide<T> sum, Index n) {
             return fma(Wide<T>(sign(values[n])), Wide<T>(values[n]), sum);
           });
  }
};

}  // namespace ocdl
