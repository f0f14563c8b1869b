#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ocdl/types.hpp"

namespace ocdl {

/// Euclidean projection of v onto the simplex {x >= 0, sum x = total}, by sorting and thresholding (Duchi et
/// al. 2008): x_i = max(v_i - theta, 0). A point that is on the simplex up to roundoff stays as it is, so
/// projecting twice changes nothing. `sorted` is scratch of the same size.
template <class T>
void project_simplex(VectorView<const T> v, double total, VectorView<T> x, std::vector<double>& sorted) {
  const Index size = v.size();
  const double roundoff = static_cast<double>(size) * static_cast<double>(std::numeric_limits<T>::epsilon());
  const double sum =
      std::accumulate(v.begin(), v.end(), 0.0);  // one after the other: Eigen's sum has other bits
  if (v.minCoeff() >= 0 && std::abs(sum - total) <= roundoff * total) {
    x = v;
    return;
  }
  // Differences to the largest entry: what matters lies within `total` of it, whatever the size of the
  // entries.
  const double largest = static_cast<double>(v.maxCoeff());
  sorted.resize(static_cast<std::size_t>(size));
  VectorView<double>(sorted.data(), size) = v.array().template cast<double>() - largest;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double threshold = 0, running = 0;
  Index support = 0;
  for (; support < size; ++support) {
    const double entry = sorted[static_cast<std::size_t>(support)];
    running += entry;
    const double candidate = (running - total) / static_cast<double>(support + 1);
    if (entry <= candidate) break;
    threshold = candidate;
  }
  // The running sum has lost digits where many entries count; what is still missing from the total shows how
  // many.
  double excess = -total;
  for (Index k = 0; k < support; ++k) excess += sorted[static_cast<std::size_t>(k)] - threshold;
  threshold += excess / static_cast<double>(support);
  x = (v.array().template cast<double>() - largest - threshold).max(0.0).template cast<T>();
}

/// Euclidean projection of a matrix onto those whose singular values are at most `bound`. What is among them
/// up to roundoff, or not finite, stays as it is. `room`: what is projected stays below the bound by this
/// fraction, so that it may be rounded to a lower precision.
void clip_singular_values(Eigen::MatrixXd& matrix, double bound, double room = 0);

}  // namespace ocdl
