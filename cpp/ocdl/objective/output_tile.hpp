#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>

#include "ocdl/field/activation.hpp"

/// What losses are made of. A loss is a record, one file in `losses/`:
///
///     struct Name {
///       static constexpr LossFacts facts;             its name, what targets it takes, its formula
///       static constexpr std::array parameters;       its numbers by name, with their ranges
///       template <class T> Pack<T> evaluate(const OutputTile<T>&, Index lane, T* dz) const;
///       template <class T> Pack<T> gauss_newton(const OutputTile<Dual<T>>&, Index n, Pack<T> curved) const;
///       static void mean(Index outputs, double* row);
///     };
///
/// `evaluate` returns the loss of a pack of samples and, unless dz is null, writes the derivative of the
/// weighted loss by the outputs. All are computed from z: no logarithm of a rounded probability. Their second
/// derivative follows by dual numbers; `gauss_newton` says what of it a Gauss-Newton product keeps. `mean`
/// turns outputs into what they stand for.
namespace ocdl {

enum class TargetKind { classes, numbers };

inline constexpr std::array<std::string_view, 2> target_kind_names = {"classes", "numbers"};

struct LossTraits {
  std::string_view name;
  TargetKind targets;
  std::string_view formula;
  double minimum_target = -std::numeric_limits<double>::infinity();
};

/// A number that belongs to a loss: above `above`, below `below`.
template <class Loss>
struct LossParameter {
  std::string_view name;
  double Loss::* member;
  double above, below;
  std::string_view meaning;
};

template <class Loss>
using NoParameters = std::array<LossParameter<Loss>, 0>;

/// One tile of outputs (q x width), targets (q x width; of classes one-hot, with q = 1 the label itself) and
/// weights (width).
template <class T>
struct OutputTile {
  Index outputs;
  const T* z;
  const T* targets;
  const T* weights;
};

/// The sum over the outputs of a loss that takes them one by one: add_output(z, c, sum) = {sum + loss,
/// dloss/dz}.
template <class T, class F>
Pack<T> sum_over_outputs(const OutputTile<T>& tile, Index lane, T* dz, const F& add_output) {
  const Pack<T> weight = load(tile.weights + lane);
  Pack<T> sum{};
  for (Index o = 0; o < tile.outputs; ++o) {
    const Index at = o * tile_width<T> + lane;
    const auto [next, gradient] = add_output(load(tile.z + at), load(tile.targets + at), sum);
    sum = next;
    if (dz) store<T>(dz + at, weight * gradient);
  }
  return sum;
}

/// C(z) = 1 / (1 + exp(-z)) and C(-z) = 1 - C(z), each with all its digits.
template <class T>
[[gnu::always_inline]] inline std::pair<Pack<T>, Pack<T>> probabilities(Pack<T> z) {
  Pack<T> large, small;
  if constexpr (std::floating_point<T>) {
    std::tie(large, small) = two_sigmoids<T>(z);
  } else {
    const Pack<T> one = broadcast<T>(T(1)), power = exp<T>(detail::where_negative<T>(z, z, -z));
    large = one / (one + power);
    small = power * large;
  }
  return {detail::where_negative<T>(z, small, large), detail::where_negative<T>(z, large, small)};
}

/// Logarithms of weights become shares that sum to 1, in place.
inline void to_shares(Index count, double* logs) {
  const double largest = *std::max_element(logs, logs + count);
  double sum = 0;
  for (Index k = 0; k < count; ++k) sum += logs[k] = std::exp(logs[k] - largest);
  for (Index k = 0; k < count; ++k) logs[k] /= sum;
}

/// log C(z).
inline double log_probability(double z) { return std::min(z, 0.0) - std::log1p(std::exp(-std::abs(z))); }

/// The probabilities of the classes 0 and 1 that one output stands for.
inline void two_probabilities(double* row) {
  row[1] = log_probability(row[0]);
  row[0] = log_probability(-row[0]);
  to_shares(2, row);
}

}  // namespace ocdl
