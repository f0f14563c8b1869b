#pragma once

#include "ocdl/field/activation.hpp"
#include "ocdl/field/stage_controls.hpp"
#include "ocdl/kernel/combination.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = J K^T sigma(K y + b) on planes of samples, with the canonical symplectic matrix
/// J = (0 I; -I 0) of an even dimension. It is J grad H of H(y) = sum Phi(K y + b), Phi' = sigma, which is
/// constant along the flow.
///
/// What it keeps of an evaluation for its derivatives is s = sigma(K y + b) and, for some activations, the
/// slope.
template <class T>
struct Hamiltonian {
  Index dim;
  Activation activation;

  Index run(Index tiles) const { return dim * tiles * tile_width<T>; }

  /// s = sigma(K y + b) and k = J K^T s, and the sum that k completes.
  [[gnu::noinline]] void evaluate(const StageControls<const T>& u, const T* y, T* k, T* s, T* slope,
                                  const Completion<T>& sum, const Share<T>& share, T* product_scratch) const {
    affine(dim, dim, u.K.data(), u.b.data(), y, s, share);
    activate(activation, s, slope, run(share.tiles));
    transposed_product(dim, dim, u.K.data(), s, k, share, product_scratch);
    rotate(T(1), k, k, share.tiles);
    sum.during(0, [&](auto then) {
      detail::for_packs<T>(run(share.tiles), [&](Index n) { then(n, load(k + n)); });
    });
  }

  /// k' = J (K^T (sigma' (K v + dK y + db)) + dK^T s); without a direction du = (dK, db): J K^T sigma' K v.
  /// `scratch` is a plane.
  [[gnu::noinline]] void push_forward(const StageControls<const T>& u, const StageControls<const T>& du,
                                      const T* y, const T* s, const T* slope, const T* v, T* k_tangent,
                                      T* scratch, Index tiles, T* product_scratch) const {
    const T *K = u.K.data(), *dK = du.K.data();
    const auto add_scratch = [&](T* sum) {
      for (Index n = 0; n < run(tiles); ++n) sum[n] += scratch[n];
    };
    affine<T>(dim, dim, K, nullptr, v, k_tangent, tiles);
    if (dK) {
      affine(dim, dim, dK, du.b.data(), y, scratch, tiles);
      add_scratch(k_tangent);
    }
    multiply_by_slope(activation, s, slope, T(1), k_tangent, scratch, run(tiles));
    transposed_product(dim, dim, K, scratch, k_tangent, tiles, product_scratch);
    if (dK) {
      transposed_product(dim, dim, dK, s, scratch, tiles, product_scratch);
      add_scratch(k_tangent);
    }
    rotate(T(1), k_tangent, k_tangent, tiles);
  }

  /// With q = h J^T g: delta = sigma' (K q) and eta = K^T delta, h times the transpose of d_y f, applied to
  /// g.
  [[gnu::noinline]] void pull_back(const StageControls<const T>& u, const T* s, const T* slope, T h,
                                   Combination<T>& g, T* delta, T* q, T* eta, const Share<T>& share,
                                   T* product_scratch) const {
    rotate(-h, g.result(), q, share.tiles);
    affine<T>(dim, dim, u.K.data(), nullptr, q, delta, share);
    multiply_by_slope(activation, s, slope, T(1), delta, delta, run(share.tiles));
    transposed_product(dim, dim, u.K.data(), delta, eta, share, product_scratch);
  }

  /// dK = [dK +] delta y^T + s q^T and db = [db +] delta 1, by the whole team: h times the transpose of
  /// d_u f. Returns whether what this thread wrote to dK is known to be finite.
  [[gnu::noinline]] bool control_gradient(const T* delta, const T* q, Combination<T>& y, const T* s,
                                          const Share<T>& share, bool accumulate, StageControls<T> du,
                                          T* panels) const {
    outer_product(dim, dim, delta, y, share, accumulate, du.K.data(), du.b.data(), panels);
    return outer_product<T>(dim, dim, s, q, share, true, du.K.data(), nullptr, panels);
  }

  /// d_y f = J K^T sigma' K of one pack of samples, dim x dim packs in rows; `slope` is that of a tile, from
  /// the pack on.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    for (Index i = 0; i < dim; ++i) {
      const bool upper = i < dim / 2;
      const Index row = upper ? i + dim / 2 : i - dim / 2;  // of K^T sigma' K, whose sign J may change
      for (Index k = 0; k < dim; ++k, out += lanes<T>) {
        Pack<T> sum{};
        for (Index l = 0; l < dim; ++l)
          multiply_add(sum, broadcast<T>(u.K(l, row) * u.K(l, k)), load(slope + l * tile_width<T>));
        store<T>(out, upper ? sum : -sum);
      }
    }
  }

 private:
  /// out = factor J v, which may be v.
  void rotate(T factor, const T* v, T* out, Index tiles) const {
    const Pack<T> scale = broadcast<T>(factor);
    const Index half = run(1) / 2;
    for (Index t = 0; t < tiles; ++t, v += 2 * half, out += 2 * half)
      for (Index n = 0; n < half; n += lanes<T>) {
        const Pack<T> position = load(v + n), momentum = load(v + half + n);
        store<T>(out + n, scale * momentum);
        store<T>(out + half + n, -(scale * position));
      }
  }
};

}  // namespace ocdl
