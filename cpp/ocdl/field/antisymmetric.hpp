#pragma once

#include "ocdl/types.hpp"

/// The vector field f(y, u) = sigma((K - K^T) y + b): the dense one after a linear map of its matrix. So
/// every K is mapped before a sweep, and a gradient after it, by the transpose of that map.
namespace ocdl::antisymmetric {

/// out = K - K^T.
template <class T>
void map(Index dim, const T* K, T* out) {
  for (Index i = 0; i < dim; ++i)
    for (Index k = 0; k < dim; ++k) out[i * dim + k] = K[i * dim + k] - K[k * dim + i];
}

/// G <- G - G^T: the transpose of the map is the map itself.
template <class T>
void transposed_map(Index dim, T* G) {
  for (Index i = 0; i < dim; ++i) {
    for (Index k = 0; k < i; ++k) {
      G[i * dim + k] -= G[k * dim + i];
      G[k * dim + i] = -G[i * dim + k];
    }
    G[i * dim + i] = T(0);
  }
}

}  // namespace ocdl::antisymmetric
