#pragma once

#include <array>
#include <string_view>

#include "ocdl/field/activation.hpp"

/// Losses of outputs z against labels, on tiles of samples. Each writes the weighted loss of every sample
/// and, where asked, its derivative with respect to z. All are computed from z: no logarithm of a rounded
/// probability.
namespace ocdl {

enum class Loss { squared, cross_entropy };

inline constexpr std::array<std::string_view, 2> loss_names = {"squared", "cross_entropy"};

/// One tile of outputs (q x width), one-hot targets (q x width; q = 1: the label itself) and weights (width).
template <class T>
struct OutputTile {
  Index outputs;
  const T* z;
  const T* targets;
  const T* weights;
};

namespace detail {

template <class T>
Pack<T> maximum(Pack<T> a, Pack<T> b) {
  if constexpr (lanes<T> == 1)
    return std::real(a) > std::real(b) ? a : b;
  else
    return select(a > b, a, b);
}

/// C(z) and C(-z) = 1 - C(z), each with all its digits.
template <class T>
std::pair<Pack<T>, Pack<T>> probabilities(Pack<T> z) {
  const Pack<T> one = broadcast<T>(T(1)), power = exp<T>(where_negative<T>(z, z, -z));
  const Pack<T> large = one / (one + power), small = power * large;
  return {where_negative<T>(z, small, large), where_negative<T>(z, large, small)};
}

/// 1/2 |C(z) - c|^2 with C(z) = 1/(1 + exp(-z)) on each output. The residual is C(z) at c = 0 and -C(-z) at c
/// = 1.
template <class T>
Pack<T> squared_loss(const OutputTile<T>& tile, Index lane, T* dz) {
  const Pack<T> one = broadcast<T>(T(1)), half = broadcast<T>(T(0.5)), weight = load(tile.weights + lane);
  Pack<T> loss{};
  for (Index o = 0; o < tile.outputs; ++o) {
    const Index at = o * tile_width<T> + lane;
    const auto [yes, no] = probabilities<T>(load(tile.z + at));
    const Pack<T> target = load(tile.targets + at), residual = select(target == one, -no, yes);
    loss += half * residual * residual;
    if (dz) store<T>(dz + at, weight * residual * (yes * no));
  }
  return weight * loss;
}

/// log(1 + exp(z)) - c z for c in {0, 1}: softplus of z or of -z.
template <class T>
Pack<T> logistic_loss(const OutputTile<T>& tile, Index lane, T* dz) {
  const Pack<T> one = broadcast<T>(T(1)), two = broadcast<T>(T(2)), weight = load(tile.weights + lane);
  const Pack<T> sign = one - two * load(tile.targets + lane), z = sign * load(tile.z + lane);
  if (dz) store<T>(dz + lane, weight * sign * sigmoid<T>(z));
  return weight * softplus<T>(z);
}

/// log sum_o exp(z_o) - z_c. The largest output is taken out of the sum, so that a small loss keeps its
/// digits.
template <class T>
Pack<T> softmax_loss(const OutputTile<T>& tile, Index lane, T* dz) {
  const Pack<T> one = broadcast<T>(T(1)), zero{}, weight = load(tile.weights + lane);
  const auto z = [&](Index o) { return load(tile.z + o * tile_width<T> + lane); };
  const auto target = [&](Index o) { return load(tile.targets + o * tile_width<T> + lane); };

  Pack<T> largest = z(0);
  for (Index o = 1; o < tile.outputs; ++o) largest = maximum<T>(largest, z(o));
  Pack<T> others{}, labelled{}, unseen = one;  // unseen: 1 until the largest output has been met
  for (Index o = 0; o < tile.outputs; ++o) {
    const Pack<T> is_largest = select(z(o) == largest, unseen, zero);
    unseen -= is_largest;
    others += (one - is_largest) * exp<T>(z(o) - largest);
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
      const Pack<T> rest = is_largest * others + (one - is_largest) * (total - share);
      const Pack<T> slope = (one - target(o)) * share - target(o) * rest;
      store<T>(dz + o * tile_width<T> + lane, weight * slope / total);
    }
  }
  return weight * (labelled + log1p<T>(others));
}

/// 0, but NaN for a sample with an output that is not finite: it goes into the loss and into dz, which may be
/// flat there and would hide the overflow.
template <class T>
Pack<T> marked_overflow(const OutputTile<T>& tile, Index lane, T* dz) {
  Pack<T> mark{};
  for (Index o = 0; o < tile.outputs; ++o) {
    const Pack<T> z = load(tile.z + o * tile_width<T> + lane);
    mark += z - z;
  }
  for (Index o = 0; dz && o < tile.outputs; ++o) {
    T* slope = dz + o * tile_width<T> + lane;
    store<T>(slope, select(mark == mark, load(slope), mark));
  }
  return mark;
}

}  // namespace detail

/// The weighted loss of the tile's samples, and dz = d loss / dz unless dz is null.
template <class T>
Wide<T> tile_loss(Loss loss, const OutputTile<T>& tile, T* dz) {
  Wide<T> sum{};
  for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) {
    const Pack<T> value = loss == Loss::squared ? detail::squared_loss(tile, lane, dz)
                          : tile.outputs == 1   ? detail::logistic_loss(tile, lane, dz)
                                                : detail::softmax_loss(tile, lane, dz);
    sum += Wide<T>(sum_lanes<T>(value + detail::marked_overflow(tile, lane, dz)));
  }
  return sum;
}

}  // namespace ocdl
