#pragma once

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// weight/2 |u|^2 over the selected parts.
struct Tikhonov {
  static constexpr std::string_view name = "tikhonov";
  static constexpr bool nonsmooth = false;

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
    if (gradient)
      for_chunks(size, [&](Index begin, Index end) {
        for (Index n = begin; n < end; ++n) gradient[n] = fma(T(weight), values[n], gradient[n]);
      });
    return 0.5 * weight * sum_vector<Wide<T>>(size, [=](Wide<T> sum, Index n) {
             return fma(Wide<T>(values[n]), Wide<T>(values[n]), sum);
           });
  }
};

}  // namespace ocdl
