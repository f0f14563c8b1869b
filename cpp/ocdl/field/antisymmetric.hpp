#pragma once

#include "ocdl/field/stage_controls.hpp"

/// The vector field f(y, u) = sigma((K - K^T) y + b): the dense one after a linear map of its matrix. So
/// every K is mapped before a sweep, and a gradient after it, by the transpose of that map.
namespace ocdl::antisymmetric {

/// (K - K^T, b), the controls of the dense field.
template <class T>
void map(const StageControls<const T>& u, StageControls<T> mapped) {
  mapped.K = u.K - u.K.transpose();
  mapped.b = u.b;
}

/// The same of a gradient, in place: the transpose of the map is the map itself, on K.
template <class T>
void transposed_map(StageControls<T> gradient) {
  auto& G = gradient.K;
  for (Index i = 0; i < G.rows(); ++i) {
    for (Index k = 0; k < i; ++k) {
      G(i, k) -= G(k, i);
      G(k, i) = -G(i, k);
    }
    G(i, i) = T(0);
  }
}

}  // namespace ocdl::antisymmetric
