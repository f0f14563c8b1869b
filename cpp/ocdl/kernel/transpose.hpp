#pragma once

#include <utility>

#include "ocdl/kernel/pack.hpp"

/// Square blocks of numbers, transposed in registers.
namespace ocdl {

namespace detail {

/// Swaps the off-diagonal halves of every 2 step x 2 step block: lanes with bit `step` of a change places
/// with the lanes without it of b.
template <int Step, class P, int... Lane>
inline void exchange(P& a, P& b, std::integer_sequence<int, Lane...>) {
  constexpr int lanes = sizeof...(Lane);
  const P upper = __builtin_shufflevector(a, b, ((Lane & Step) ? lanes + Lane - Step : Lane)...);
  const P lower = __builtin_shufflevector(a, b, ((Lane & Step) ? lanes + Lane : Lane + Step)...);
  a = upper;
  b = lower;
}

template <int Step, class T>
inline void exchange_all(Pack<T> (&rows)[lanes<T>]) {
  if constexpr (Step < lanes<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i)
      if (!(i & Step)) exchange<Step>(rows[i], rows[i + Step], std::make_integer_sequence<int, lanes<T>>());
    exchange_all<2 * Step, T>(rows);
  }
}

/// Lane i of rows[0] becomes the sum of the lanes of rows[i].
template <int Step, class T>
inline void add_halves(Pack<T> (&rows)[lanes<T>]) {
  if constexpr (Step > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < Step; ++i) {
      exchange<Step>(rows[i], rows[i + Step], std::make_integer_sequence<int, lanes<T>>());
      rows[i] += rows[i + Step];
    }
    add_halves<Step / 2, T>(rows);
  }
}

}  // namespace detail

/// Lane j of row i becomes lane i of row j, which is written to to + j * stride.
template <std::floating_point T>
inline void write_transposed(Pack<T> (&rows)[lanes<T>], T* to, Index stride) {
  detail::exchange_all<1, T>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < lanes<T>; ++i) store<T>(to + i * stride, rows[i]);
}

/// The sum of the lanes of each of `count` packs, in the order of `sum_lanes`. Memory behind the last one, up
/// to a whole block of packs and of sums, is read and written.
template <class T>
inline void sum_lanes_of_each(const Pack<T>* packs, int count, T* sums) {
  for (int first = 0; first < count; first += lanes<T>) {
    Pack<T> rows[lanes<T>];
#pragma GCC unroll 16
    for (int i = 0; i < lanes<T>; ++i) rows[i] = packs[first + i];
    detail::add_halves<lanes<T> / 2, T>(rows);
    store<T>(sums + first, rows[0]);
  }
}

}  // namespace ocdl
