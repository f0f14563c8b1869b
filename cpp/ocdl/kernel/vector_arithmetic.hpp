#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ocdl/kernel/pack.hpp"
#include "ocdl/parallel.hpp"

/// Arithmetic with long vectors. They are cut into chunks by their length alone, which threads share, and
/// sums run in the order of the chunks: no bit depends on the threads.
namespace ocdl {

/// Sums have so many independent terms, and a vector of controls ends with whole groups of them.
inline constexpr Index vector_group = 16;

/// The length of a vector with the zeros behind it.
constexpr Index whole_groups(Index size) { return (size + vector_group - 1) / vector_group * vector_group; }

namespace detail {

/// Vectors of narrow networks are one chunk: dividing and gathering would cost a fraction of the work.
inline constexpr Index max_chunks = 256, shortest_chunk = 4096, worth_threads = Index(1) << 18;

/// body(chunk, begin, end) for every chunk of [0, size); returns how many there are.
template <class Body>
Index for_numbered_chunks(Index size, const Body& body) {
  const Index length = whole_groups(std::max(shortest_chunk, (size + max_chunks - 1) / max_chunks));
  const Index count = (size + length - 1) / length;
  parallel(size < worth_threads ? 1 : ThreadLimit::sensible(), [&](const Team& team) {
    const Range mine = team.range_of(count);
    for (Index chunk = mine.begin; chunk < mine.end; ++chunk)
      body(chunk, chunk * length, std::min((chunk + 1) * length, size));
  });
  return count;
}

}  // namespace detail

/// body(begin, end) for the chunks of [0, size).
template <class Body>
void for_chunks(Index size, const Body& body) {
  if (size <= detail::shortest_chunk) return body(Index(0), size);
  detail::for_numbered_chunks(size, [&](Index, Index begin, Index end) { body(begin, end); });
}

/// A sum over [begin, end): add(sum, n) returns the sum with term n. There are several partial sums, so that
/// additions need not wait for each other; the first one is the result.
template <class S, class Add>
S sum_range(Index begin, Index end, const Add& add) {
  constexpr int width = vector_group;
  S sums[width] = {};
  Index n = begin;
  for (; n + width <= end; n += width)
    for (int k = 0; k < width; ++k) sums[k] = add(sums[k], n + k);
  for (int k = 0; n < end; ++n, ++k) sums[k] = add(sums[k], n);
  for (int count = width / 2; count > 0; count /= 2)
    for (int k = 0; k < count; ++k) sums[k] += sums[k + count];
  return sums[0];
}

/// Several sums over [0, size): sums(begin, end) gives them of a chunk.
template <class S, std::size_t Count, class Sums>
std::array<S, Count> sum_chunks(Index size, const Sums& sums) {
  if (size <= detail::shortest_chunk) return sums(Index(0), size);
  std::array<std::array<S, Count>, detail::max_chunks> partial;
  const Index chunks = detail::for_numbered_chunks(size, [&](Index chunk, Index begin, Index end) {
    partial[static_cast<std::size_t>(chunk)] = sums(begin, end);
  });
  std::array<S, Count> total{};
  for (Index chunk = 0; chunk < chunks; ++chunk)
    for (std::size_t k = 0; k < Count; ++k) total[k] += partial[static_cast<std::size_t>(chunk)][k];
  return total;
}

/// One sum over [0, size), with add(sum, n) as in `sum_range`.
template <class S, class Add>
S sum_vector(Index size, const Add& add) {
  return sum_chunks<S, 1>(
      size, [&](Index begin, Index end) { return std::array<S, 1>{sum_range<S>(begin, end, add)}; })[0];
}

/// <a, b> of a range, in double precision.
template <class T>
double dot_range(const T* a, const T* b, Index begin, Index end) {
  return sum_range<double>(begin, end, [=](double sum, Index n) {
    return fma(static_cast<double>(a[n]), static_cast<double>(b[n]), sum);
  });
}

/// <a, b>.
template <class T>
double dot(const T* a, const T* b, Index size) {
  return sum_chunks<double, 1>(
      size, [&](Index begin, Index end) { return std::array{dot_range(a, b, begin, end)}; })[0];
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
    for (Index n = begin; n < end; ++n) y[n] = fma(f, x[n], y[n]);
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
  constexpr int packs = vector_group / lanes<double>;
  const Pack<double> first = broadcast<double>(a), second = broadcast<double>(b);
  Pack<double> with_v[packs] = {}, with_w[packs] = {};
  for (Index n = 0; n < size; n += vector_group)
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
  return sum_chunks<double, 2>(size, [&](Index begin, Index end) {
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
