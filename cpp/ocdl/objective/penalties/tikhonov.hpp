#pragma once

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// weight/2 |u|^2 over the chosen parts.
struct Tikhonov {
  static constexpr std::string_view name = "tikhonov";
  static constexpr bool kinked = false;

  double weight = 0;
  PartSelection parts;

  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    return parts.sum_of_runs(net, controls, gradient, [this](const T* values, Index size, T* of_values) {
      return of_run(values, size, of_values);
    });
  }

 private:
  // The sum has a loop of its own, with or without a gradient: its bits are the same.
  template <class T>
  Wide<T> of_run(const T* values, Index size, T* gradient) const {
    Wide<T> sum{};
    for (Index n = 0; n < size; ++n) sum += Wide<T>(values[n]) * Wide<T>(values[n]);
    if (gradient) VectorView<T>(gradient, size) += T(weight) * VectorView<const T>(values, size);
    return 0.5 * weight * sum;
  }
};

}  // namespace ocdl
