#pragma once

#include "ocdl/field/field_part.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = M K^T sigma(K y + b) on planes of samples, with K of width x dim: M times the
/// gradient of the potential sum Phi(K y + b), Phi' = sigma. `Map` is M, with M^T = sign M. Its hidden planes
/// are s = sigma(K y + b) and, for some activations, the slope. Without a width there are dim units.
///
/// Functions are those of `Dense`. The larger ones stay out of line, so that the dense field has the
/// registers.
template <class T, class Map>
class PotentialField {
 public:
  static constexpr std::string_view option = "width";
  static constexpr bool requires_option = false;
  static constexpr bool takes_inputs = false;
  static constexpr bool needs_scratch_forward = true;
  static constexpr bool needs_state_cotangent = true;

  explicit PotentialField(const FieldOptions& options)
      : dim_(options.dim), width_(width_of(options)), activation_(options.activation) {}

  static std::vector<FieldPart> parts(const FieldOptions& options) {
    const Index dim = options.dim, width = width_of(options);
    const std::string_view of_units = options.width ? "width" : "dim";
    const Start start{"normal", 1, 1 / std::sqrt(static_cast<double>(dim))};
    return {{"K", {of_units, "dim"}, {width, dim}, true, start}, {"b", {of_units}, {width}}};
  }
  HiddenPlanes hidden() const { return {width_, 1 + slope_needs_storage(activation_)}; }

  /// s = sigma(K y + b) and k = M K^T s, and the sum that k completes.
  [[gnu::noinline]] void evaluate(const StageControls<const T>& u, const Plane<const T>& y,
                                  const StagePlanes<T>& at, const Epilogue<T>& epilogue,
                                  const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> s = at.hidden[0], s_slice = s.slice(thread);
    affine(K(u), b(u), y, s, thread);
    activate(activation_, s_slice.data(), slope(at).slice(thread).data(), s_slice.size());
    transposed_product(K(u), s, at.value, thread, scratch);
    const Plane<T> k = at.value.slice(thread);
    Map::apply(T(1), k, k);
    epilogue.run(
        0, [&](auto then) { detail::for_packs<T>(k.size(), [&](Index n) { then(n, load(k.data() + n)); }); });
  }

  /// k' = M (K^T (sigma' (K v + dK y + db)) + dK^T s); without a direction du = (dK, db): M K^T sigma' K v.
  [[gnu::noinline]] void jvp(const StageControls<const T>& u, const StageControls<const T>& du,
                             const Plane<const T>& y, const StagePlanes<T>& at, const Plane<const T>& v,
                             const Plane<T>& tangent, const TangentPlanes<T>& work,
                             const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> s = at.hidden[0], result = tangent.slice(thread);
    const Plane<T> argument = work.hidden[0], argument_slice = argument.slice(thread);
    const auto add = [&](const Plane<T>& terms, const Plane<T>& sum) {
      for (Index t = thread.first; t < thread.first + thread.tiles; ++t) sum.tile(t) += terms.tile(t);
    };
    affine(K(u), nullptr, v, argument, thread);
    if (du) {
      affine(K(du), b(du), y, work.hidden[1], thread);
      add(work.hidden[1], argument);
    }
    multiply_by_slope(activation_, s.slice(thread).data(), slope(at).slice(thread).data(), T(1),
                      argument_slice.data(), argument_slice.data(), argument_slice.size());
    transposed_product(K(u), argument, tangent, thread, scratch);
    if (du) {
      transposed_product(K(du), s, work.state, thread, scratch);
      add(work.state, tangent);
    }
    Map::apply(T(1), result, result);
  }

  /// With q = h M^T g: delta = sigma' (K q) and eta = K^T delta, h times the transpose of d_y f, applied to
  /// g.
  [[gnu::noinline]] void vjp(const StageControls<const T>& u, const StagePlanes<T>& at, T h,
                             LinearCombination<T>& g, const CotangentPlanes<T>& cotangents,
                             const Plane<T>& eta, const ThreadSlice<T>& thread, T* scratch) const {
    const Plane<T> delta = cotangents.hidden.slice(thread);
    Map::apply(T(Map::sign) * h, g.result(), cotangents.state.slice(thread));
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

  /// d_y f = M K^T sigma' K of one pack of samples.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    const auto matrix = K(u);
    for (Index i = 0; i < dim_; ++i) {
      const auto [row, is_negative] = Map::row(i, dim_);  // of K^T sigma' K
      for (Index k = 0; k < dim_; ++k, out += lanes<T>) {
        Pack<T> sum{};
        for (Index l = 0; l < width_; ++l)
          multiply_add(sum, broadcast<T>(matrix(l, row) * matrix(l, k)), load(slope + l * tile_width<T>));
        store<T>(out, is_negative ? -sum : sum);
      }
    }
  }

 private:
  Index dim_, width_;
  Activation activation_;

  static Index width_of(const FieldOptions& options) { return options.width ? options.width : options.dim; }

  template <class E>
  MatrixView<E> K(const StageControls<E>& u) const {
    return u.matrix(0, width_, dim_);
  }
  template <class E>
  static E* b(const StageControls<E>& u) {
    return u.parts[1];
  }
  /// The plane behind sigma's value where the slope is stored, or null.
  Plane<T> slope(const StagePlanes<T>& at) const {
    return slope_needs_storage(activation_) ? at.hidden[1] : Plane<T>();
  }
};

/// The canonical symplectic matrix J = (0 I; -I 0) of an even dimension.
template <class T>
struct SymplecticMap {
  static constexpr int sign = -1;

  struct SignedRow {
    Index row;
    bool is_negative;
  };
  static SignedRow row(Index i, Index dim) {
    return i < dim / 2 ? SignedRow{i + dim / 2, false} : SignedRow{i - dim / 2, true};
  }

  /// out = factor J v, which may be v.
  static void apply(T factor, const Plane<const T>& v, const Plane<T>& out) {
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

/// -I.
template <class T>
struct NegativeMap {
  static constexpr int sign = 1;

  static typename SymplecticMap<T>::SignedRow row(Index i, Index) { return {i, true}; }
  static void apply(T factor, const Plane<const T>& v, const Plane<T>& out) {
    detail::write_multiple(-factor, v, out);
  }
};

/// J times the gradient of an energy, which is constant along the flow.
template <class T>
struct Hamiltonian : PotentialField<T, SymplecticMap<T>> {
  static constexpr std::string_view name = "hamiltonian";
  static constexpr bool needs_even_dim = true;
  using PotentialField<T, SymplecticMap<T>>::PotentialField;
};

/// Minus the gradient of a potential, which falls along the flow. Where sigma increases, the potential is
/// convex and the flow expands no distance.
template <class T>
struct GradientField : PotentialField<T, NegativeMap<T>> {
  static constexpr std::string_view name = "gradient";
  static constexpr bool needs_even_dim = false;
  using PotentialField<T, NegativeMap<T>>::PotentialField;
};

}  // namespace ocdl
