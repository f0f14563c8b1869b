#pragma once

#include "ocdl/objective/output_tile.hpp"

namespace ocdl {

/// The logistic cross entropy of one output, the softmax cross entropy of several.
struct CrossEntropy {
  static constexpr LossTraits traits{"cross_entropy", TargetKind::classes,
                                     "the logistic cross entropy of one output, the softmax one of several"};
  static constexpr NoParameters<CrossEntropy> parameters{};

  template <class T>
  Pack<T> evaluate(const OutputTile<T>& tile, Index lane, T* dz) const {
    return tile.outputs == 1 ? logistic(tile, lane, dz) : softmax(tile, lane, dz);
  }

  template <class T>
  Pack<T> gauss_newton(const OutputTile<Dual<T>>&, Index, Pack<T> curved) const {
    return curved;
  }

  static void mean(Index outputs, double* row) {
    if (outputs == 1) return two_probabilities(row);
    to_shares(outputs, row);
  }

 private:
  /// log(1 + exp(z)) - c z for c in {0, 1}: softplus of z or of -z.
  template <class T>
  static Pack<T> logistic(const OutputTile<T>& tile, Index lane, T* dz) {
    const Pack<T> one = broadcast<T>(T(1)), two = broadcast<T>(T(2)), weight = load(tile.weights + lane);
    const Pack<T> sign = fnma(two, load(tile.targets + lane), one), z = sign * load(tile.z + lane);
    if (dz) store<T>(dz + lane, weight * sign * sigmoid<T>(z));
    return softplus<T>(z);
  }

  /// log sum_o exp(z_o) - z_c. The largest output is taken out of the sum, so that a small loss keeps its
  /// digits.
  template <class T>
  static Pack<T> softmax(const OutputTile<T>& tile, Index lane, T* dz) {
    const Pack<T> one = broadcast<T>(T(1)), zero{}, weight = load(tile.weights + lane);
    const auto z = [&](Index o) { return load(tile.z + o * tile_width<T> + lane); };
    const auto target = [&](Index o) { return load(tile.targets + o * tile_width<T> + lane); };

    Pack<T> largest = z(0);
    for (Index o = 1; o < tile.outputs; ++o) largest = maximum<T>(largest, z(o));
    Pack<T> others{}, labelled{}, unseen = one;  // unseen: 1 until the largest output has been met
    for (Index o = 0; o < tile.outputs; ++o) {
      const Pack<T> is_largest = select(z(o) == largest, unseen, zero);
      unseen -= is_largest;
      others = fma(one - is_largest, exp<T>(z(o) - largest), others);
      labelled += select(target(o) == one, largest - z(o), zero);
    }
    if (dz) {
      const Pack<T> total = one + others;
      unseen = one;
      for (Index o = 0; o < tile.outputs; ++o) {
        const Pack<T> is_largest = select(z(o) == largest, unseen, zero);
        unseen -= is_largest;
        const Pack<T> share = exp<T>(z(o) - largest);
        // Probability minus target; at a target, minus the probability of all the others.
        const Pack<T> rest = fma(is_largest, others, (one - is_largest) * (total - share));
        const Pack<T> slope = fnma(target(o), rest, (one - target(o)) * share);
        store<T>(dz + o * tile_width<T> + lane, weight * slope / total);
      }
    }
    return labelled + log1p<T>(others);
  }

  template <class T>
  static Pack<T> maximum(Pack<T> a, Pack<T> b) {
    if constexpr (lanes<T> == 1)
      return std::real(a) > std::real(b) ? a : b;
    else
      return select(a > b, a, b);
  }
};

}  // namespace ocdl
