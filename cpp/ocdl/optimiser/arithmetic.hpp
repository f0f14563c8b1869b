#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ocdl/kernel/pack.hpp"
#include "ocdl/optimiser/control_vector.hpp"
#include "ocdl/parallel.hpp"

/// Arithmetic with vectors of controls. Long ones are shared among threads; as they are cut into chunks by
/// their length alone, and sums run in the order of the chunks, no bit depends on the threads.
namespace ocdl {

namespace detail {

/// Vectors of narrow networks are one chunk: to divide and to gather would be a share of the work.
inline constexpr Index most_chunks = 256, shortest_chunk = 4096, worth_threads = Index(1) << 18;

/// body(chunk, begin, end) for every chunk of [0, size); returns how many there are.
template <class Body>
Index for_numbered_chunks(Index size, const Body& body) {
  const Index length = whole_groups(std::max(shortest_chunk, (size + most_chunks - 1) / most_chunks));
  const Index count = (size + length - 1) / length;
  parallel(size < worth_threads ? 1 : ThreadLimit::sensible(), [&](const Team& team) {
    const Range mine = team.share(count);
    for (Index chunk = mine.begin; chunk < mine.end; ++chunk)
      body(chunk, chunk * length, std::min((chunk + 1) * length, size));
  });
  return count;
}

}  // namespace detail

/// body(begin, end) for pieces that make up [0, size).
template <class Body>
void for_chunks(Index size, const Body& body) {
  if (size <= detail::shortest_chunk) return body(Index(0), size);
  detail::for_numbered_chunks(size, [&](Index, Index begin, Index end) { body(begin, end); });
}

namespace detail {

/// Independent sums, so that additions need not wait for each other.
inline constexpr int sum_width = control_group;

inline double total(const double (&sums)[sum_width]) {
  double eight[8], four[4], two[2];
  for (int k = 0; k < 8; ++k) eight[k] = sums[k] + sums[k + 8];
  for (int k = 0; k < 4; ++k) four[k] = eight[k] + eight[k + 4];
  for (int k = 0; k < 2; ++k) two[k] = four[k] + four[k + 2];
  return two[0] + two[1];
}

}  // namespace detail

/// The sum of term(n) over [begin, end), in double precision.
template <class Term>
double sum_terms(Index begin, Index end, const Term& term) {
  constexpr int width = detail::sum_width;
  double sums[width] = {};
  Index n = begin;
  for (; n + width <= end; n += width)
    for (int k = 0; k < width; ++k) sums[k] += term(n + k);
  for (int k = 0; n < end; ++n, ++k) sums[k] += term(n);
  return detail::total(sums);
}

/// Sums of several terms over [0, size): sums(begin, end) gives them of a piece.
template <std::size_t Count, class Sums>
std::array<double, Count> sum_chunks(Index size, const Sums& sums) {
  if (size <= detail::shortest_chunk) return sums(Index(0), size);
  std::array<std::array<double, Count>, detail::most_chunks> parts;
  const Index chunks = detail::for_numbered_chunks(size, [&](Index chunk, Index begin, Index end) {
    parts[static_cast<std::size_t>(chunk)] = sums(begin, end);
  });
  std::array<double, Count> total{};
  for (Index chunk = 0; chunk < chunks; ++chunk)
    for (std::size_t k = 0; k < Count; ++k) total[k] += parts[static_cast<std::size_t>(chunk)][k];
  return total;
}

/// <a, b>.
template <class T>
double dot(const T* a, const T* b, Index size) {
  return sum_chunks<1>(size, [&](Index begin, Index end) {
    const auto product = [&](Index n) { return static_cast<double>(a[n]) * static_cast<double>(b[n]); };
    return std::array{sum_terms(begin, end, product)};
  })[0];
}

template <class T>
double norm(const T* a, Index size) {
  return std::sqrt(dot(a, a, size));
}

/// y += factor x. What a loop multiplies with is a constant of its own: of a captured number the compiler
/// cannot tell that y does not overlap it.
template <class T>
void add_scaled(double factor, const T* x, T* y, Index size) {
  for_chunks(size, [&](Index begin, Index end) {
    const T f = T(factor);
    for (Index n = begin; n < end; ++n) y[n] += f * x[n];
  });
}

namespace detail {

/// Packs of numbers in double precision, whatever they are stored as.
template <class T>
Pack<double> load_double(const T* from) {
  typedef T Stored __attribute__((vector_size(lanes<double> * sizeof(T))));
  Stored stored;
  std::memcpy(&stored, from, sizeof stored);
  return __builtin_convertvector(stored, Pack<double>);
}
/// Returns what was stored.
template <class T>
Pack<double> store_double(T* to, Pack<double> pack) {
  typedef T Stored __attribute__((vector_size(lanes<double> * sizeof(T))));
  const Stored stored = __builtin_convertvector(pack, Stored);
  std::memcpy(to, &stored, sizeof stored);
  return __builtin_convertvector(stored, Pack<double>);
}

/// See `add_two`. In packs, as compilers do not make them of so many vectors that may overlap.
template <class T>
std::array<double, 2> add_two_groups(double a, const T* x, double b, const T* z, T* y, const T* v, const T* w,
                                     Index size) {
  constexpr int packs = control_group / lanes<double>;
  const Pack<double> first = broadcast<double>(a), second = broadcast<double>(b);
  Pack<double> with_v[packs] = {}, with_w[packs] = {};
  for (Index n = 0; n < size; n += control_group)
#pragma GCC unroll 8
    for (int k = 0; k < packs; ++k) {
      const Index at = n + k * lanes<double>;
      Pack<double> sum = load_double(y + at);
      multiply_add(sum, first, load_double(x + at));
      multiply_add(sum, second, load_double(z + at));
      sum = store_double(y + at, sum);
      multiply_add(with_v[k], load_double(v + at), sum);
      multiply_add(with_w[k], load_double(w + at), sum);
    }
#pragma GCC unroll 8
  for (int k = 1; k < packs; ++k) {
    with_v[0] += with_v[k];
    with_w[0] += with_w[k];
  }
  return {sum_lanes<double>(with_v[0]), sum_lanes<double>(with_w[0])};
}

}  // namespace detail

/// y += a x + b z; returns <v, y> and <w, y>. The size is one of whole groups.
template <class T>
std::array<double, 2> add_two(double a, const T* x, double b, const T* z, T* y, const T* v, const T* w,
                              Index size) {
  return sum_chunks<2>(size, [&](Index begin, Index end) {
    return detail::add_two_groups(a, x + begin, b, z + begin, y + begin, v + begin, w + begin, end - begin);
  });
}

template <class T>
void scale(double factor, T* y, Index size) {
  for_chunks(size, [&](Index begin, Index end) {
    const T f = T(factor);
    for (Index n = begin; n < end; ++n) y[n] *= f;
  });
}

}  // namespace ocdl
