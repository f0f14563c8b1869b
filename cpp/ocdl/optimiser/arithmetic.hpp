#pragma once

#include <algorithm>
#include <array>
#include <cmath>

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

/// y += factor x and <w, y> in one go, for vectors that may overlap as far as the compiler knows: it makes
/// vector loops of those that write to `moved` or to y alone.
template <class T>
double add_scaled_groups(T factor, const T* x, T* y, const T* w, Index size) {
  double sums[sum_width] = {};
  for (Index n = 0; n < size; n += sum_width) {
    T moved[sum_width];
    for (int k = 0; k < sum_width; ++k) moved[k] = y[n + k] + factor * x[n + k];
    for (int k = 0; k < sum_width; ++k) y[n + k] = moved[k];
    for (int k = 0; k < sum_width; ++k)
      sums[k] += static_cast<double>(w[n + k]) * static_cast<double>(moved[k]);
  }
  return total(sums);
}

}  // namespace detail

/// y += factor x; returns <w, y>. The size is one of whole groups.
template <class T>
double add_scaled(double factor, const T* x, T* y, Index size, const T* w) {
  return sum_chunks<1>(size, [&](Index begin, Index end) {
    return std::array{detail::add_scaled_groups(T(factor), x + begin, y + begin, w + begin, end - begin)};
  })[0];
}

template <class T>
void scale(double factor, T* y, Index size) {
  for_chunks(size, [&](Index begin, Index end) {
    const T f = T(factor);
    for (Index n = begin; n < end; ++n) y[n] *= f;
  });
}

}  // namespace ocdl
