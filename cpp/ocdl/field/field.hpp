#pragma once

#include "ocdl/field/dense.hpp"
#include "ocdl/field/hamiltonian.hpp"

namespace ocdl {

/// What a field leaves of an evaluation at a stage, for its derivatives: planes, `stride` apart.
template <class T>
struct StagePlanes {
  T* k;        ///< f(y_i, u)
  T* details;  ///< `Field::detail_planes` more
  Index stride;
};

/// The vector field of a network, whichever it is: its value, its push-forward (the tangent sweep), its
/// pull-back and its control gradient (the adjoint sweep), its Jacobian (implicit methods). The choice is
/// made once per plane. A field that is another one after a map of its controls is that one here.
template <class T>
struct Field {
  FieldKind kind;
  Index dim;
  Activation activation;

  Index run(Index tiles) const { return dim * tiles * tile_width<T>; }

  static Index detail_planes(FieldKind kind, Activation activation) {
    return (kind == FieldKind::hamiltonian) + slope_needs_storage(activation);
  }
  /// Whether `evaluate` and `push_forward` look at `product_scratch`.
  static bool evaluates_by_scratch(FieldKind kind) { return kind == FieldKind::hamiltonian; }
  /// Whether `pull_back` leaves the plane `rotated` for `control_gradient`.
  static bool rotates(FieldKind kind) { return kind == FieldKind::hamiltonian; }

  /// k = f(y, u), and the sum that k completes, which may be written over y. `product_scratch` is the calling
  /// thread's own, of panel::scratch_size<T>() numbers, here and below.
  void evaluate(const StageControls<const T>& u, const T* y, const StagePlanes<T>& at,
                const Completion<T>& sum, const Share<T>& share, T* product_scratch) const {
    if (is_hamiltonian())
      hamiltonian().evaluate(u, y, at.k, at.details, inner_slope(at), sum, share, product_scratch);
    else
      dense().evaluate(u, y, at.k, at.details, sum, share);
  }

  /// k' = d_y f v + d_u f du. `scratch` is a plane.
  void push_forward(const StageControls<const T>& u, const StageControls<const T>& du, const T* y,
                    const StagePlanes<T>& at, const T* v, T* k_tangent, T* scratch, Index tiles,
                    T* product_scratch) const {
    if (is_hamiltonian())
      hamiltonian().push_forward(u, du, y, at.details, inner_slope(at), v, k_tangent, scratch, tiles,
                                 product_scratch);
    else
      dense().push_forward(u, du, y, at.k, at.details, v, k_tangent, scratch, tiles);
  }

  /// eta = h (d_y f)^T g. The planes `delta` and, where it `rotates`, `rotated` are for `control_gradient`.
  void pull_back(const StageControls<const T>& u, const StagePlanes<T>& at, T h, Combination<T>& g, T* delta,
                 T* rotated, T* eta, const Share<T>& share, T* product_scratch) const {
    if (is_hamiltonian())
      hamiltonian().pull_back(u, at.details, inner_slope(at), h, g, delta, rotated, eta, share,
                              product_scratch);
    else
      dense().pull_back(u, at.k, at.details, h, g, delta, eta, share, product_scratch);
  }

  /// du = [du +] h (d_u f)^T g, by the whole team, on the planes of a block, but for y, the thread's share.
  /// Returns whether what this thread wrote to the parts that multiply states is known to be finite.
  bool control_gradient(const T* delta, const T* rotated, Combination<T>& y, const T* details,
                        const Share<T>& share, bool accumulate, StageControls<T> du, T* panels) const {
    if (is_hamiltonian())
      return hamiltonian().control_gradient(delta, rotated, y, details, share, accumulate, du, panels);
    else
      return dense().control_gradient(delta, y, share, accumulate, du, panels);
  }

  /// sigma' at a stage.
  void write_slope(const StagePlanes<T>& at, T* out, Index tiles) const {
    if (is_hamiltonian())
      ocdl::write_slope<T>(activation, at.details, inner_slope(at), out, run(tiles));
    else
      ocdl::write_slope<T>(activation, at.k, at.details, out, run(tiles));
  }

  /// d_y f of one pack of samples, dim x dim packs in rows; `slope` is that of a tile, from the pack on.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    if (is_hamiltonian())
      hamiltonian().jacobian(u, slope, out);
    else
      dense().jacobian(u, slope, out);
  }

 private:
  bool is_hamiltonian() const { return kind == FieldKind::hamiltonian; }
  Dense<T> dense() const { return {dim, activation}; }
  Hamiltonian<T> hamiltonian() const { return {dim, activation}; }
  /// Of a Hamiltonian field: the plane behind sigma's value, where the slope is stored.
  T* inner_slope(const StagePlanes<T>& at) const {
    return slope_needs_storage(activation) ? at.details + at.stride : nullptr;
  }
};

}  // namespace ocdl
