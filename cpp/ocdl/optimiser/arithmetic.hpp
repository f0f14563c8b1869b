#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "ocdl/parallel.hpp"

/// Arithmetic with vectors of controls. Long ones are shared among threads; as they are cut into chunks by
/// their length alone, and sums run in the order of the chunks, no bit depends on the threads.
namespace ocdl {

namespace detail {

inline constexpr Index most_chunks = 256, shortest_chunk = 4096, worth_threads = Index(1) << 18;

/// body(chunk, begin, end) for every chunk of [0, size); returns how many there are.
template <class Body>
Index for_numbered_chunks(Index size, const Body& body) {
  const Index length = std::max(shortest_chunk, (size + most_chunks - 1) / most_chunks);
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
  detail::for_numbered_chunks(size, [&](Index, Index begin, Index end) { body(begin, end); });
}

/// The sum of term(n) over [begin, end), in double precision.
template <class Term>
double sum_terms(Index begin, Index end, const Term& term) {
  constexpr int width = 8;  // independent sums, so that additions need not wait for each other
  double sums[width] = {};
  Index n = begin;
  for (; n + width <= end; n += width)
    for (int k = 0; k < width; ++k) sums[k] += term(n + k);
  for (; n < end; ++n) sums[0] += term(n);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/// Sums of several terms over [0, size): sums(begin, end) gives them of a piece.
template <std::size_t Count, class Sums>
std::array<double, Count> sum_chunks(Index size, const Sums& sums) {
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

/// y += factor x.
template <class T>
void add_scaled(double factor, const T* x, T* y, Index size) {
  for_chunks(size, [&](Index begin, Index end) {
    for (Index n = begin; n < end; ++n) y[n] += T(factor) * x[n];
  });
}

template <class T>
void scale(double factor, T* y, Index size) {
  for_chunks(size, [&](Index begin, Index end) {
    for (Index n = begin; n < end; ++n) y[n] *= T(factor);
  });
}

}  // namespace ocdl
