#pragma once

#include <algorithm>
#include <utility>

#include "ocdl/kernel/pack.hpp"

/// The layout of every state inside the core.
///
/// A tile holds `tile_width<T>` samples feature by feature: feature i of sample s stands at i*tile_width + s,
/// so that each operation runs over packs of samples. A plane is a row of tiles, the state of a block of
/// samples. Lanes never mix, so a sample's bits do not depend on its neighbours nor on its place.
namespace ocdl {

/// Two packs: the width of the register tile of `panel_product.hpp`.
template <class T>
inline constexpr Index tile_width = 2 * lanes<T>;

template <class T>
constexpr Index tiles_for(Index samples) {
  return (samples + tile_width<T> - 1) / tile_width<T>;
}

/// A tile of rows of two numbers, feature by feature.
template <std::floating_point T>
void deinterleave(const T* rows, T* tile) {
  const auto take = [&]<int... Lane>(std::integer_sequence<int, Lane...>) {
    for (int half = 0; half < 2; ++half, rows += 2 * lanes<T>, tile += lanes<T>) {
      const Pack<T> a = load(rows), b = load(rows + lanes<T>);
      store<T>(tile, __builtin_shufflevector(a, b, (2 * Lane)...));
      store<T>(tile + tile_width<T>, __builtin_shufflevector(a, b, (2 * Lane + 1)...));
    }
  };
  take(std::make_integer_sequence<int, lanes<T>>());
}

}  // namespace ocdl
