#pragma once

#include "ocdl/kernel/tile.hpp"

/// The three products of a layer for matrices of a few rows and columns known at compile time: the matrix
/// lives in registers, the loop runs over packs of samples. Formulas as in `panel_product.hpp`.
namespace ocdl::unrolled {

/// Z = M Y + bias; no bias: 0.
template <int Rows, int Cols, class T>
void affine(const T* M, const T* bias, const T* Y, T* Z, Index tiles) {
  constexpr Index width = tile_width<T>;
  Pack<T> m[Rows][Cols], c[Rows];
  for (int i = 0; i < Rows; ++i) {
    c[i] = bias ? broadcast<T>(bias[i]) : Pack<T>{};
    for (int k = 0; k < Cols; ++k) m[i][k] = broadcast<T>(M[i * Cols + k]);
  }
  for (Index t = 0; t < tiles; ++t, Y += Cols * width, Z += Rows * width)
#pragma GCC unroll 2
    for (Index lane = 0; lane < width; lane += lanes<T>) {
      Pack<T> y[Cols];
#pragma GCC unroll 8
      for (int k = 0; k < Cols; ++k) y[k] = load(Y + k * width + lane);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        Pack<T> z = c[i];
#pragma GCC unroll 8
        for (int k = 0; k < Cols; ++k) multiply_add(z, m[i][k], y[k]);
        store<T>(Z + i * width + lane, z);
      }
    }
}

/// E = M^T D.
template <int Rows, int Cols, class T>
void transposed_product(const T* M, const T* D, T* E, Index tiles) {
  T transposed[Rows * Cols];
  for (int i = 0; i < Rows; ++i)
    for (int k = 0; k < Cols; ++k) transposed[k * Rows + i] = M[i * Cols + k];
  affine<Cols, Rows, T>(transposed, nullptr, D, E, tiles);
}

/// G = [G +] D Y^T and, unless g is null, g = [g +] D 1.
template <int Rows, int Cols, class T>
void outer_product(const T* D, const T* Y, Index tiles, bool accumulate, T* G, T* g) {
  constexpr Index width = tile_width<T>;
  Pack<T> sum[Rows][Cols] = {}, row_sum[Rows] = {};
  for (Index t = 0; t < tiles; ++t, Y += Cols * width, D += Rows * width)
#pragma GCC unroll 2
    for (Index lane = 0; lane < width; lane += lanes<T>) {
      Pack<T> y[Cols];
#pragma GCC unroll 8
      for (int k = 0; k < Cols; ++k) y[k] = load(Y + k * width + lane);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const Pack<T> d = load(D + i * width + lane);
        row_sum[i] += d;
#pragma GCC unroll 8
        for (int k = 0; k < Cols; ++k) multiply_add(sum[i][k], d, y[k]);
      }
    }
  const auto put = [&](T& total, Pack<T> lanes_sum) {
    total = accumulate ? total + sum_lanes<T>(lanes_sum) : sum_lanes<T>(lanes_sum);
  };
  for (int i = 0; i < Rows; ++i) {
    if (g) put(g[i], row_sum[i]);
    for (int k = 0; k < Cols; ++k) put(G[i * Cols + k], sum[i][k]);
  }
}

}  // namespace ocdl::unrolled
