#pragma once

#include "ocdl/field/dense.hpp"

namespace ocdl {

/// The vector field f(y, u) = sigma((K - K^T) y + b): the dense one after a linear map of its controls. So
/// every K is mapped before a sweep, and a gradient after it, by the transpose of that map.
template <class T>
class Antisymmetric : public Dense<T> {
 public:
  static constexpr std::string_view name = "antisymmetric";

  using Dense<T>::Dense;

  /// (K - K^T, b), the controls of the dense field.
  static void map_controls(const FieldOptions& options, const StageControls<const T>& u,
                           const StageControls<T>& mapped) {
    const Index dim = options.dim;
    const auto K = u.matrix(0, dim, dim);
    mapped.matrix(0, dim, dim) = K - K.transpose();
    mapped.vector(1, dim) = u.vector(1, dim);
  }

  /// The transpose of the map, on a gradient, in place: on K it is the map itself.
  static void transpose_map(const FieldOptions& options, const StageControls<T>& gradient) {
    auto G = gradient.matrix(0, options.dim, options.dim);
    for (Index i = 0; i < G.rows(); ++i) {
      for (Index k = 0; k < i; ++k) {
        G(i, k) -= G(k, i);
        G(k, i) = -G(i, k);
      }
      G(i, i) = T(0);
    }
  }
};

}  // namespace ocdl
