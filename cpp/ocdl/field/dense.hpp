#pragma once

#include "ocdl/field/activation.hpp"
#include "ocdl/field/stage_controls.hpp"
#include "ocdl/kernel/combination.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = sigma(K y + b) on planes of samples, with u = (K, b).
///
/// A field gives its value, its push-forward (the tangent sweep), its pull-back and its control gradient (the
/// adjoint sweep). What the last two need of the first is the value k and, for some activations, the slope.
template <class T>
struct Dense {
  Index dim;
  Activation activation;

  Index run(Index tiles) const { return dim * tiles * tile_width<T>; }

  /// k = sigma(K y + b), and the sum that k completes.
  void evaluate(const StageControls<const T>& u, const T* y, T* k, T* slope, const Completion<T>& sum,
                const Share<T>& share) const {
    affine(dim, dim, u.K.data(), u.b.data(), y, k, share);
    sum.during(0, [&](auto then) { activate(activation, k, slope, run(share.tiles), then); });
  }

  /// k' = sigma' (K v + dK y + db); without a direction du = (dK, db): sigma' K v. `scratch` is a plane.
  void push_forward(const StageControls<const T>& u, const StageControls<const T>& du, const T* y, const T* k,
                    const T* slope, const T* v, T* k_tangent, T* scratch, Index tiles) const {
    affine<T>(dim, dim, u.K.data(), nullptr, v, k_tangent, tiles);
    if (du) {
      affine(dim, dim, du.K.data(), du.b.data(), y, scratch, tiles);
      for (Index n = 0; n < run(tiles); ++n) k_tangent[n] += scratch[n];
    }
    multiply_by_slope(activation, k, slope, T(1), k_tangent, k_tangent, run(tiles));
  }

  /// delta = h sigma' g and eta = K^T delta: h times the transpose of d_y f, applied to g.
  void pull_back(const StageControls<const T>& u, const T* k, const T* slope, T h, const Combination<T>& g,
                 T* delta, T* eta, const Share<T>& share, T* product_scratch) const {
    multiply_by_slope(activation, k, slope, h, g, delta, run(share.tiles));
    transposed_product(dim, dim, u.K.data(), delta, eta, share, product_scratch);
  }

  /// dK = [dK +] delta y^T and db = [db +] delta 1, by the whole team: h times the transpose of d_u f.
  /// Returns whether what this thread wrote to dK is known to be finite.
  bool control_gradient(const T* delta, Combination<T>& y, const Share<T>& share, bool accumulate,
                        StageControls<T> du, T* panels) const {
    return outer_product(dim, dim, delta, y, share, accumulate, du.K.data(), du.b.data(), panels);
  }

  /// d_y f = sigma' K of one pack of samples, dim x dim packs in rows; `slope` is that of a tile, from the
  /// pack on.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    for (Index i = 0; i < dim; ++i, slope += tile_width<T>)
      for (Index k = 0; k < dim; ++k, out += lanes<T>) store<T>(out, load(slope) * broadcast<T>(u.K(i, k)));
  }
};

}  // namespace ocdl
