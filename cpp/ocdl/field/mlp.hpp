#pragma once

#include "ocdl/field/narrow_mlp.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = V sigma(K y + b) + A y + c on planes of samples, with u = (K, b, V, A, c): a
/// layer of hidden units, as many as its width, beside a linear map. Its hidden planes are s = sigma(K y + b)
/// and, for some activations, the slope. Of a network with inputs y stands for z = (y, x).
///
/// Functions are those of `Dense`, out of line as those of `Hamiltonian`. States of a few dimensions take the
/// fused kernels of `NarrowMlp`.
template <class T>
class Mlp {
 public:
  static constexpr std::string_view name = "mlp";
  static constexpr std::string_view option = "width";
  static constexpr bool requires_option = true;
  static constexpr bool needs_even_dim = false;
  static constexpr bool takes_inputs = true;
  static constexpr bool needs_scratch_forward = false;
  static constexpr bool needs_state_cotangent = true;

  explicit Mlp(const FieldOptions& options)
      : dim_(options.dim), rows_(options.rows), width_(options.width), activation_(options.activation) {}

  static std::vector<FieldPart> parts(const FieldOptions& options) {
    const Index dim = options.dim, rows = options.rows, width = options.width;
    const std::string_view of_rows = rows > dim ? "dim + inputs" : "dim";
    const auto root = [](Index n) { return std::sqrt(static_cast<double>(n)); };
    return {{"K", {"width", of_rows}, {width, rows}, true, {"normal", 1 / root(rows)}},
            {"b", {"width"}, {width}, false, {"uniform", 1}},
            {"V", {"dim", "width"}, {dim, width}, true, {"normal", 0.1 / root(width)}},
            {"A", {"dim", of_rows}, {dim, rows}, true},
            {"c", {"dim"}, {dim}}};
  }
  HiddenPlanes hidden() const { return {width_, 1 + slope_needs_storage(activation_)}; }

  /// s = sigma(K y + b) and k = V s + A y + c, and the sum that k completes.
  [[gnu::noinline]] void evaluate(const StageControls<const T>& u, const Plane<const T>& y,
                                  const StagePlanes<T>& at, const Epilogue<T>& epilogue,
                                  const ThreadSlice<T>& thread, T*) const {
    const Plane<T> s = at.hidden[0], s_slice = s.slice(thread), k = at.value.slice(thread);
    if (is_narrow<T>(rows_)) {
      if constexpr (std::floating_point<T>)
        narrow().evaluate(u, y.slice(thread), {k, at.hidden.slice(thread)}, thread.samples());
    } else {
      affine(K(u), b(u), y, s, thread);
      activate(activation_, s_slice.data(), slope(at).slice(thread).data(), s_slice.size());
      affine(V(u), c(u), s, at.value, thread);
      add_product(A(u), y, at.value, thread);
      detail::clear_rows(k, dim_);
    }
    epilogue.run(
        0, [&](auto then) { detail::for_packs<T>(k.size(), [&](Index n) { then(n, load(k.data() + n)); }); });
  }

  /// k' = V (sigma' (K v + dK y + db)) + dV s + A v + dA y + dc; without a direction: (V sigma' K + A) v.
  [[gnu::noinline]] void jvp(const StageControls<const T>& u, const StageControls<const T>& du,
                             const Plane<const T>& y, const StagePlanes<T>& at, const Plane<const T>& v,
                             const Plane<T>& tangent, const TangentPlanes<T>& work,
                             const ThreadSlice<T>& thread, T*) const {
    const Plane<T> s = at.hidden[0], argument = work.hidden[0], argument_slice = argument.slice(thread);
    affine(K(u), nullptr, v, argument, thread);
    if (du) {
      affine(K(du), b(du), y, work.hidden[1], thread);
      for (Index t = 0; t < thread.tiles; ++t)
        argument.tile(thread.first + t) += work.hidden[1].tile(thread.first + t);
    }
    multiply_by_slope(activation_, s.slice(thread).data(), slope(at).slice(thread).data(), T(1),
                      argument_slice.data(), argument_slice.data(), argument_slice.size());
    affine(V(u), du ? c(du) : nullptr, argument, tangent, thread);
    add_product(A(u), v, tangent, thread);
    detail::clear_rows(tangent.slice(thread), dim_);
    if (!du) return;
    add_product(V(du), s, tangent, thread);
    add_product(A(du), y, tangent, thread);
  }

  /// delta = sigma' (h V^T g) and eta = K^T delta + h A^T g: h times the transpose of d_y f, applied to g.
  [[gnu::noinline]] void vjp(const StageControls<const T>& u, const StagePlanes<T>& at, T h,
                             LinearCombination<T>& g, const CotangentPlanes<T>& cotangents,
                             const Plane<T>& eta, const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> delta = cotangents.hidden.slice(thread);
    detail::write_multiple(h, g.result(), cotangents.state.slice(thread));
    transposed_product(V(u), cotangents.state, cotangents.hidden, thread, scratch);
    multiply_by_slope(activation_, at.hidden[0].slice(thread).data(), slope(at).slice(thread).data(), T(1),
                      delta.data(), delta.data(), delta.size());
    transposed_product(K(u), cotangents.hidden, eta, thread, scratch);
    add_transposed_product(A(u), cotangents.state, eta, thread, scratch);
  }

  /// dK = [dK +] delta y^T, db = [db +] delta 1, and with q = h g: dV = [dV +] q s^T, dA = [dA +] q y^T,
  /// dc = [dc +] q 1, by the whole team.
  [[gnu::noinline]] void control_gradient(const CotangentPlanes<T>& cotangents, LinearCombination<T>& y,
                                          const StagePlanes<T>& at, const ThreadSlice<T>& thread,
                                          bool accumulate, const StageControls<T>& du, T* panels,
                                          FiniteProbe* probe = nullptr) const {
    outer_product(cotangents.hidden, y, thread, accumulate, K(du), b(du), panels, probe);
    outer_product(cotangents.state, y, thread, accumulate, A(du), c(du), panels, probe);
    outer_product<T>(cotangents.state, Plane<const T>(at.hidden[0]), thread, accumulate, V(du), nullptr,
                     panels, probe);
  }

  /// The two functions before in one pass, see `NarrowMlp`; no sums: 0.
  Index fused_sums_size() const {
    if constexpr (std::floating_point<T>)
      return is_narrow<T>(rows_) ? narrow().sums_size() : 0;
    else
      return 0;
  }
  void fused_vjp(const StageControls<const T>& u, T h, const LinearCombination<T>& y,
                 const StagePlanes<T>& at, const LinearCombination<T>& g, const Plane<T>& eta,
                 const ThreadSlice<T>& thread, T* sums) const {
    if constexpr (std::floating_point<T>)
      narrow().vjp(u, h, y, {at.value.slice(thread), at.hidden.slice(thread)}, g, eta.slice(thread),
                   thread.samples(), sums);
  }
  void add_lanes(T* sums, bool accumulate, const StageControls<T>& du) const {
    if constexpr (std::floating_point<T>) narrow().add_lanes(sums, accumulate, du);
  }

  void write_slope(const StagePlanes<T>& at, const Plane<T>& out) const {
    ocdl::write_slope<T>(activation_, at.hidden[0].data(), slope(at).data(), out.data(), out.size());
  }

  /// d_y f = V sigma' K + A of one pack of samples.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    const auto in = K(u), back = V(u), linear = A(u);
    for (Index i = 0; i < dim_; ++i)
      for (Index l = 0; l < dim_; ++l, out += lanes<T>) {
        Pack<T> sum = broadcast<T>(linear(i, l));
        for (Index r = 0; r < width_; ++r)
          multiply_add(sum, broadcast<T>(back(i, r) * in(r, l)), load(slope + r * tile_width<T>));
        store<T>(out, sum);
      }
  }

 private:
  Index dim_, rows_, width_;
  Activation activation_;

  NarrowMlp<T> narrow() const { return {dim_, rows_, width_, activation_}; }

  template <class E>
  MatrixView<E> K(const StageControls<E>& u) const {
    return u.matrix(0, width_, rows_);
  }
  template <class E>
  static E* b(const StageControls<E>& u) {
    return u.parts[1];
  }
  template <class E>
  MatrixView<E> V(const StageControls<E>& u) const {
    return u.matrix(2, dim_, width_);
  }
  template <class E>
  MatrixView<E> A(const StageControls<E>& u) const {
    return u.matrix(3, dim_, rows_);
  }
  template <class E>
  static E* c(const StageControls<E>& u) {
    return u.parts[4];
  }
  /// The plane behind sigma's value where the slope is stored, or null.
  Plane<T> slope(const StagePlanes<T>& at) const {
    return slope_needs_storage(activation_) ? at.hidden[1] : Plane<T>();
  }
};

}  // namespace ocdl
