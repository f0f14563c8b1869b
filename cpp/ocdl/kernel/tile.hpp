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
template <class T>
void deinterleave(const Passive<T>* rows, T* tile) {
  if constexpr (std::floating_point<T>) {
    const auto take = [&]<int... Lane>(std::integer_sequence<int, Lane...>) {
      for (int half = 0; half < 2; ++half, rows += 2 * lanes<T>, tile += lanes<T>) {
        const Pack<T> a = load(rows), b = load(rows + lanes<T>);
        store<T>(tile, __builtin_shufflevector(a, b, (2 * Lane)...));
        store<T>(tile + tile_width<T>, __builtin_shufflevector(a, b, (2 * Lane + 1)...));
      }
    };
    take(std::make_integer_sequence<int, lanes<T>>());
  }
}

/// Rows of `features` numbers become the first features of a plane of dimension `dim`; the others start at 0.
/// The last row fills the padding: a padded lane stays finite wherever the samples do.
template <class T>
void rows_to_plane(const Passive<T>* rows, Index samples, Index features, Index dim, T* plane) {
  constexpr Index width = tile_width<T>;
  for (Index first = 0; first < samples; first += width, plane += dim * width) {
    const Index last = samples - 1;
    if (std::floating_point<T> && features == 2 && first + width <= samples)
      deinterleave(rows + first * 2, plane);
    else
      for (Index s = 0; s < width; ++s) {
        const Passive<T>* row = rows + std::min(first + s, last) * features;
        for (Index i = 0; i < features; ++i) plane[i * width + s] = T(row[i]);
      }
    std::fill(plane + features * width, plane + dim * width, T(0));
  }
}

/// The first `features` of each sample of a plane, as rows.
template <class T>
void plane_to_rows(const T* plane, Index samples, Index features, Index dim, T* rows) {
  constexpr Index width = tile_width<T>;
  for (Index first = 0; first < samples; first += width, plane += dim * width) {
    const Index count = std::min(width, samples - first);
    if (features == 1)
      rows = std::copy_n(plane, count, rows);
    else
      for (Index s = 0; s < count; ++s, rows += features)
        for (Index i = 0; i < features; ++i) rows[i] = plane[i * width + s];
  }
}

}  // namespace ocdl
