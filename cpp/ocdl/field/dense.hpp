#pragma once

#include "ocdl/field/field_part.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = sigma(K y + b) on planes of samples, with u = (K, b). Its derivatives need the
/// value k and, for some activations, the slope, which is then a hidden plane.
///
/// All planes are those of a block, all sums those of a thread's slice. `scratch` is the calling thread's
/// own, of panel::scratch_size<T>() numbers.
template <class T>
class Dense {
 public:
  static constexpr std::string_view name = "dense";
  static constexpr std::string_view option = "";
  static constexpr bool requires_option = false;
  static constexpr bool needs_even_dim = false;
  static constexpr bool takes_inputs = false;
  static constexpr bool needs_scratch_forward = false;
  static constexpr bool needs_state_cotangent = false;

  explicit Dense(const FieldOptions& options) : dim_(options.dim), activation_(options.activation) {}

  static std::vector<FieldPart> parts(const FieldOptions& options) {
    const Index dim = options.dim;
    const Start start{"normal", 1, 1 / std::sqrt(static_cast<double>(dim))};
    return {{"K", {"dim", "dim"}, {dim, dim}, true, start}, {"b", {"dim"}, {dim}}};
  }
  HiddenPlanes hidden() const { return {dim_, slope_needs_storage(activation_) ? 1 : 0}; }

  /// k = sigma(K y + b), and the sum that k completes.
  void evaluate(const StageControls<const T>& u, const Plane<const T>& y, const StagePlanes<T>& at,
                const Epilogue<T>& epilogue, const ThreadSlice<T>& thread, T*) const {
    affine(K(u), b(u), y, at.value, thread);
    const Plane<T> k = at.value.slice(thread);
    epilogue.run(0, [&](auto then) {
      activate(activation_, k.data(), at.hidden[0].slice(thread).data(), k.size(), then);
    });
  }

  /// k' = sigma' (K v + dK y + db); without a direction du = (dK, db): sigma' K v.
  void jvp(const StageControls<const T>& u, const StageControls<const T>& du, const Plane<const T>& y,
           const StagePlanes<T>& at, const Plane<const T>& v, const Plane<T>& tangent,
           const TangentPlanes<T>& work, const ThreadSlice<T>& thread, T*) const {
    affine(K(u), nullptr, v, tangent, thread);
    if (du) {
      affine(K(du), b(du), y, work.state, thread);
      for (Index t = 0; t < thread.tiles; ++t)
        tangent.tile(thread.first + t) += work.state.tile(thread.first + t);
    }
    const Plane<T> result = tangent.slice(thread);
    multiply_by_slope(activation_, at.value.slice(thread).data(), at.hidden[0].slice(thread).data(), T(1),
                      result.data(), result.data(), result.size());
  }

  /// delta = h sigma' g and eta = K^T delta: h times the transpose of d_y f, applied to g.
  void vjp(const StageControls<const T>& u, const StagePlanes<T>& at, T h, LinearCombination<T>& g,
           const CotangentPlanes<T>& cotangents, const Plane<T>& eta, const ThreadSlice<T>& thread,
           T* scratch) const {
    const Plane<T> delta = cotangents.hidden.slice(thread);
    multiply_by_slope(activation_, at.value.slice(thread).data(), at.hidden[0].slice(thread).data(), h, g,
                      delta.data(), delta.size());
    transposed_product(K(u), cotangents.hidden, eta, thread, scratch);
  }

  /// dK = [dK +] delta y^T and db = [db +] delta 1, by the whole team: h times the transpose of d_u f.
  void control_gradient(const CotangentPlanes<T>& cotangents, LinearCombination<T>& y, const StagePlanes<T>&,
                        const ThreadSlice<T>& thread, bool accumulate, const StageControls<T>& du, T* panels,
                        FiniteProbe* probe = nullptr) const {
    outer_product(cotangents.hidden, y, thread, accumulate, K(du), b(du), panels, probe);
  }

  /// What `jacobian` takes of a stage, a plane of as many rows as the hidden ones: sigma'.
  void write_slope(const StagePlanes<T>& at, const Plane<T>& out) const {
    ocdl::write_slope<T>(activation_, at.value.data(), at.hidden[0].data(), out.data(), out.size());
  }

  /// d_y f = sigma' K of one pack of samples, dim x dim packs in rows; `slope` is that of a tile, from the
  /// pack on.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    const auto matrix = K(u);
    for (Index i = 0; i < dim_; ++i, slope += tile_width<T>)
      for (Index k = 0; k < dim_; ++k, out += lanes<T>)
        store<T>(out, load(slope) * broadcast<T>(matrix(i, k)));
  }

 private:
  Index dim_;
  Activation activation_;

  template <class E>
  MatrixView<E> K(const StageControls<E>& u) const {
    return u.matrix(0, dim_, dim_);
  }
  template <class E>
  static E* b(const StageControls<E>& u) {
    return u.parts[1];
  }
};

}  // namespace ocdl
