#pragma once

#include "ocdl/kernel/dual.hpp"
#include "ocdl/objective/output_tile.hpp"

namespace ocdl {

/// The paper's loss, 1/2 |C(z) - c|^2 with C(z) = 1/(1 + exp(-z)) on each output.
struct Squared {
  static constexpr LossTraits traits{
      "squared", TargetKind::classes,
      "1/2 |C(z) - c|^2 with C(z) = 1 / (1 + exp(-z)), c the label or its one-hot vector"};
  static constexpr NoParameters<Squared> parameters{};

  /// The residual is C(z) at c = 0 and -C(-z) at c = 1.
  template <class T>
  Pack<T> evaluate(const OutputTile<T>& tile, Index lane, T* dz) const {
    const Pack<T> one = broadcast<T>(T(1)), half = broadcast<T>(T(0.5)), weight = load(tile.weights + lane);
    Pack<T> loss{};
    for (Index o = 0; o < tile.outputs; ++o) {
      const Index at = o * tile_width<T> + lane;
      const auto [yes, no] = probabilities<T>(load(tile.z + at));
      const Pack<T> target = load(tile.targets + at), residual = select(target == one, -no, yes);
      loss = fma(half * residual, residual, loss);
      if (dz) store<T>(dz + at, weight * residual * (yes * no));
    }
    return loss;
  }

  /// It is not convex in z: the square of the residual's slope, C'(z)^2, is kept.
  template <class T>
  Pack<T> gauss_newton(const OutputTile<Dual<T>>& tile, Index n, Pack<T>) const {
    const DualPack<T> z = load(tile.z + n);
    const auto [yes, no] = probabilities<T>(z.value);
    const Pack<T> slope = yes * no;
    return load(tile.weights + n % tile_width<Dual<T>>).value * (slope * slope) * z.derivative;
  }

  static void mean(Index outputs, double* row) {
    if (outputs == 1) return two_probabilities(row);
    std::transform(row, row + outputs, row, log_probability);
    to_shares(outputs, row);
  }
};

}  // namespace ocdl
