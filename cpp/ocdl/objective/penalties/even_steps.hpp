#pragma once

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// weight/2 sum_j ((h_j - T/N) / (T/N))^2: learned steps that are not penalised grow, and with them evade
/// every penalty of the field.
struct EvenSteps {
  static constexpr std::string_view name = "even_steps";
  static constexpr bool nonsmooth = false;

  double weight = 0;
  PartSelection parts;  ///< ignored: it acts on the steps

  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    const double even = net.horizon / static_cast<double>(net.layers);
    Wide<T> sum{};
    for (Index n = net.steps().begin; n < net.steps().end; ++n) {
      const T deviation = (controls[n] - T(even)) / T(even);
      sum = fma(Wide<T>(deviation), Wide<T>(deviation), sum);
      if (gradient && net.learns_steps) gradient[n] = fma(T(weight / even), deviation, gradient[n]);
    }
    return 0.5 * weight * sum;
  }
};

}  // namespace ocdl
