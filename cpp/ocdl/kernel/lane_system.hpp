#pragma once

#include "ocdl/kernel/selection.hpp"

/// Systems of linear equations, one in each lane of a pack.
namespace ocdl {

namespace detail {

/// Exchanges the packs of two runs in the lanes of the mask.
template <class T, class Mask>
void swap_lanes(Mask mask, T* a, T* b, Index count) {
  for (Index n = 0; n < count * lanes<T>; n += lanes<T>) {
    const Pack<T> left = load(a + n), right = load(b + n);
    store<T>(a + n, select(mask, right, left));
    store<T>(b + n, select(mask, left, right));
  }
}

/// Gaussian elimination with partial pivoting in each lane. The determinant changes its sign with every
/// exchange of rows and with every negative pivot.
template <class T>
LaneMask<T> eliminate(Index n, T* matrix, T* x) {
  constexpr Index width = lanes<T>;
  LaneMask<T> is_determinant_negative{};
  const auto at = [&](Index i, Index k) { return matrix + (i * n + k) * width; };
  for (Index c = 0; c < n; ++c) {
    for (Index r = c + 1; r < n; ++r) {
      const auto larger = value_size<T>(load(at(r, c))) > value_size<T>(load(at(c, c)));
      if (!any_lane(larger)) continue;
      is_determinant_negative ^= larger;
      swap_lanes(larger, at(c, c), at(r, c), n - c);
      swap_lanes(larger, x + c * width, x + r * width, 1);
    }
    is_determinant_negative ^= values<T>(load(at(c, c))) < Values<T>{};
    const Pack<T> inverse = broadcast<T>(T(1)) / load(at(c, c));
    store<T>(at(c, c), inverse);
    for (Index r = c + 1; r < n; ++r) {
      const Pack<T> factor = load(at(r, c)) * inverse;
      for (Index k = c + 1; k < n; ++k) store<T>(at(r, k), fnma(factor, load(at(c, k)), load(at(r, k))));
      store<T>(x + r * width, fnma(factor, load(x + c * width), load(x + r * width)));
    }
  }
  for (Index r = n - 1; r >= 0; --r) {
    Pack<T> sum = load(x + r * width);
    for (Index k = r + 1; k < n; ++k) sum = fnma(load(at(r, k)), load(x + k * width), sum);
    store<T>(x + r * width, sum * load(at(r, r)));
  }
  return is_determinant_negative;
}

/// The same for a size known at compile time, in registers.
template <int N, class T>
[[gnu::always_inline]] inline LaneMask<T> eliminate_unrolled(T* matrix, T* right_side) {
  Pack<T> m[N][N], x[N];
  LaneMask<T> is_determinant_negative{};
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    x[i] = load(right_side + i * lanes<T>);
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k) m[i][k] = load(matrix + (i * N + k) * lanes<T>);
  }
#pragma GCC unroll 4
  for (int c = 0; c < N; ++c) {
#pragma GCC unroll 4
    for (int r = c + 1; r < N; ++r) {
      const auto larger = value_size<T>(m[r][c]) > value_size<T>(m[c][c]);
      if (!any_lane(larger)) continue;
      is_determinant_negative ^= larger;
      const auto exchange = [&](Pack<T>& a, Pack<T>& b) {
        const Pack<T> kept = a;
        a = select(larger, b, a);
        b = select(larger, kept, b);
      };
#pragma GCC unroll 4
      for (int k = c; k < N; ++k) exchange(m[c][k], m[r][k]);
      exchange(x[c], x[r]);
    }
    is_determinant_negative ^= values<T>(m[c][c]) < Values<T>{};
    m[c][c] = broadcast<T>(T(1)) / m[c][c];
#pragma GCC unroll 4
    for (int r = c + 1; r < N; ++r) {
      const Pack<T> factor = m[r][c] * m[c][c];
#pragma GCC unroll 4
      for (int k = c + 1; k < N; ++k) m[r][k] = fnma(factor, m[c][k], m[r][k]);
      x[r] = fnma(factor, x[c], x[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = N - 1; r >= 0; --r) {
#pragma GCC unroll 4
    for (int k = r + 1; k < N; ++k) x[r] = fnma(m[r][k], x[k], x[r]);
    x[r] = x[r] * m[r][r];
    store<T>(right_side + r * lanes<T>, x[r]);
  }
  return is_determinant_negative;
}

}  // namespace detail

/// x <- M^-1 x in every lane, with M of size x size packs in rows, which it overwrites. A singular system
/// gives numbers that are not finite. Returns the lanes in which the determinant of M is negative.
template <class T>
LaneMask<T> solve_lanes(Index size, T* matrix, T* x) {
  switch (size) {
    case 1:
      return detail::eliminate_unrolled<1>(matrix, x);
    case 2:
      return detail::eliminate_unrolled<2>(matrix, x);
    case 3:
      return detail::eliminate_unrolled<3>(matrix, x);
    case 4:
      return detail::eliminate_unrolled<4>(matrix, x);
    default:
      return detail::eliminate(size, matrix, x);
  }
}

}  // namespace ocdl
