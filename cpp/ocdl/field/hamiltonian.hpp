#pragma once

#include "ocdl/field/field_part.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = J K^T sigma(K y + b) on planes of samples, with the canonical symplectic matrix
/// J = (0 I; -I 0) of an even dimension. It is J grad H of H(y) = sum Phi(K y + b), Phi' = sigma, which is
/// constant along the flow. Its hidden planes are s = sigma(K y + b) and, for some activations, the slope.
///
/// Functions are those of `Dense`. The larger ones stay out of line, so that the dense field has the
/// registers.
template <class T>
class Hamiltonian {
 public:
  static constexpr std::string_view name = "hamiltonian";
  static constexpr std::string_view required_option = "";
  static constexpr bool needs_even_dim = true;
  static constexpr bool takes_inputs = false;
  static constexpr bool needs_scratch_forward = true;
  static constexpr bool needs_state_cotangent = true;

  explicit Hamiltonian(const FieldOptions& options) : dim_(options.dim), activation_(options.activation) {}

  static std::vector<FieldPart> parts(const FieldOptions& options) {
    const Index dim = options.dim;
    const Start start{"normal", 1, 1 / std::sqrt(static_cast<double>(dim))};
    return {{"K", {"dim", "dim"}, {dim, dim}, true, start}, {"b", {"dim"}, {dim}}};
  }
  HiddenPlanes hidden() const { return {dim_, 1 + slope_needs_storage(activation_)}; }

  /// s = sigma(K y + b) and k = J K^T s, and the sum that k completes.
  [[gnu::noinline]] void evaluate(const StageControls<const T>& u, const Plane<const T>& y,
                                  const StagePlanes<T>& at, const Epilogue<T>& epilogue,
                                  const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> s = at.hidden[0], s_slice = s.slice(thread);
    affine(K(u), b(u), y, s, thread);
    activate(activation_, s_slice.data(), slope(at).slice(thread).data(), s_slice.size());
    transposed_product(K(u), s, at.value, thread, scratch);
    const Plane<T> k = at.value.slice(thread);
    rotate(T(1), k, k);
    epilogue.run(
        0, [&](auto then) { detail::for_packs<T>(k.size(), [&](Index n) { then(n, load(k.data() + n)); }); });
  }

  /// k' = J (K^T (sigma' (K v + dK y + db)) + dK^T s); without a direction du = (dK, db): J K^T sigma' K v.
  [[gnu::noinline]] void jvp(const StageControls<const T>& u, const StageControls<const T>& du,
                             const Plane<const T>& y, const StagePlanes<T>& at, const Plane<const T>& v,
                             const Plane<T>& tangent, const TangentPlanes<T>& work,
                             const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> s = at.hidden[0], result = tangent.slice(thread);
    const auto add_work = [&] {
      for (Index t = 0; t < thread.tiles; ++t)
        tangent.tile(thread.first + t) += work.state.tile(thread.first + t);
    };
    affine(K(u), nullptr, v, tangent, thread);
    if (du) {
      affine(K(du), b(du), y, work.state, thread);
      add_work();
    }
    multiply_by_slope(activation_, s.slice(thread).data(), slope(at).slice(thread).data(), T(1),
                      result.data(), work.state.slice(thread).data(), result.size());
    transposed_product(K(u), work.state, tangent, thread, scratch);
    if (du) {
      transposed_product(K(du), s, work.state, thread, scratch);
      add_work();
    }
    rotate(T(1), result, result);
  }

  /// With q = h J^T g: delta = sigma' (K q) and eta = K^T delta, h times the transpose of d_y f, applied to
  /// g.
  [[gnu::noinline]] void vjp(const StageControls<const T>& u, const StagePlanes<T>& at, T h,
                             LinearCombination<T>& g, const CotangentPlanes<T>& cotangents,
                             const Plane<T>& eta, const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> delta = cotangents.hidden.slice(thread);
    rotate(-h, g.result(), cotangents.state.slice(thread));
    affine(K(u), nullptr, cotangents.state, cotangents.hidden, thread);
    multiply_by_slope(activation_, at.hidden[0].slice(thread).data(), slope(at).slice(thread).data(), T(1),
                      delta.data(), delta.data(), delta.size());
    transposed_product(K(u), cotangents.hidden, eta, thread, scratch);
  }

  /// dK = [dK +] delta y^T + s q^T and db = [db +] delta 1, by the whole team: h times the transpose of
  /// d_u f.
  [[gnu::noinline]] void control_gradient(const CotangentPlanes<T>& cotangents, LinearCombination<T>& y,
                                          const StagePlanes<T>& at, const ThreadSlice<T>& thread,
                                          bool accumulate, const StageControls<T>& du, T* panels,
                                          FiniteProbe* probe = nullptr) const {
    outer_product(cotangents.hidden, y, thread, accumulate, K(du), b(du), panels, probe);
    outer_product<T>(at.hidden[0], Plane<const T>(cotangents.state), thread, true, K(du), nullptr, panels,
                     probe);
  }

  void write_slope(const StagePlanes<T>& at, const Plane<T>& out) const {
    ocdl::write_slope<T>(activation_, at.hidden[0].data(), slope(at).data(), out.data(), out.size());
  }

  /// d_y f = J K^T sigma' K of one pack of samples.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    const auto matrix = K(u);
    for (Index i = 0; i < dim_; ++i) {
      const bool upper = i < dim_ / 2;
      const Index row = upper ? i + dim_ / 2 : i - dim_ / 2;  // of K^T sigma' K, whose sign J may change
      for (Index k = 0; k < dim_; ++k, out += lanes<T>) {
        Pack<T> sum{};
        for (Index l = 0; l < dim_; ++l)
          multiply_add(sum, broadcast<T>(matrix(l, row) * matrix(l, k)), load(slope + l * tile_width<T>));
        store<T>(out, upper ? sum : -sum);
      }
    }
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
  /// The plane behind sigma's value where the slope is stored, or null.
  Plane<T> slope(const StagePlanes<T>& at) const {
    return slope_needs_storage(activation_) ? at.hidden[1] : Plane<T>();
  }

  /// out = factor J v, which may be v.
  static void rotate(T factor, const Plane<const T>& v, const Plane<T>& out) {
    const Pack<T> scale = broadcast<T>(factor);
    const Index half = v.tile_size() / 2;
    const T* from = v.data();
    T* to = out.data();
    for (Index t = 0; t < v.tiles(); ++t, from += 2 * half, to += 2 * half)
      for (Index n = 0; n < half; n += lanes<T>) {
        const Pack<T> position = load(from + n), momentum = load(from + half + n);
        store<T>(to + n, scale * momentum);
        store<T>(to + half + n, -(scale * position));
      }
  }
};

}  // namespace ocdl
