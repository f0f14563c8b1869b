#pragma once

#include "ocdl/field/field_part.hpp"
#include "ocdl/kernel/product.hpp"

namespace ocdl {

/// The vector field f(y, u) = C phi(y) on planes of samples, with u = C and phi(y) all monomials of the
/// components of y up to a degree, see `Monomials`; there is no activation. Its hidden plane is phi(y), of
/// which the derivatives of phi are multiples. Of a network with inputs y stands for z = (y, x).
///
/// Functions are those of `Dense`, out of line as those of `Hamiltonian`.
template <class T>
class Polynomial {
 public:
  static constexpr std::string_view name = "polynomial";
  static constexpr std::string_view option = "degree";
  static constexpr bool requires_option = true;
  static constexpr bool needs_even_dim = false;
  static constexpr bool takes_inputs = true;
  static constexpr bool needs_scratch_forward = false;
  static constexpr bool needs_state_cotangent = true;

  explicit Polynomial(const FieldOptions& options) : dim_(options.dim), monomials_(options.monomials) {}

  static std::vector<FieldPart> parts(const FieldOptions& options) {
    return {{"C", {"dim", "monomials"}, {options.dim, options.monomials->size()}, true}};
  }
  HiddenPlanes hidden() const { return {monomials_->size(), 1}; }

  /// phi(y), k = C phi, and the sum that k completes.
  [[gnu::noinline]] void evaluate(const StageControls<const T>& u, const Plane<const T>& y,
                                  const StagePlanes<T>& at, const Epilogue<T>& epilogue,
                                  const ThreadSlice<T>& thread, T*) const {
    constexpr Index width = tile_width<T>;
    const Plane<const T> y_slice = y.slice(thread);
    const Plane<T> phi = at.hidden[0].slice(thread), k = at.value.slice(thread);
    for (Index t = 0; t < thread.tiles; ++t) {
      const T* const from = y_slice.lane(t, 0, 0);
      T* const to = phi.lane(t, 0, 0);
      std::fill_n(to, width, T(1));
      T* next = to;
      for (const auto& [monomial, variable] : monomials_->factors) {
        next += width;
        for (Index n = 0; n < width; n += lanes<T>)
          store<T>(next + n, load(to + monomial * width + n) * load(from + variable * width + n));
      }
    }
    affine(C(u), nullptr, at.hidden[0], at.value, thread);
    detail::clear_rows(k, dim_);
    epilogue.run(
        0, [&](auto then) { detail::for_packs<T>(k.size(), [&](Index n) { then(n, load(k.data() + n)); }); });
  }

  /// k' = C phi'(y) v + dC phi; without a direction du = dC: C phi'(y) v.
  [[gnu::noinline]] void jvp(const StageControls<const T>& u, const StageControls<const T>& du,
                             const Plane<const T>&, const StagePlanes<T>& at, const Plane<const T>& v,
                             const Plane<T>& tangent, const TangentPlanes<T>& work,
                             const ThreadSlice<T>& thread, T*) const {
    const Plane<const T> v_slice = v.slice(thread), phi = at.hidden[0].slice(thread);
    const Plane<T> direction = work.hidden[0].slice(thread);
    std::fill_n(direction.data(), direction.size(), T(0));
    for_derivatives(thread.tiles, [&](Index t, Index n, const auto& d, const Pack<T>& exponent) {
      T* const to = direction.lane(t, d.monomial, n);
      store<T>(
          to, fma(exponent * load(phi.lane(t, d.source, n)), load(v_slice.lane(t, d.variable, n)), load(to)));
    });
    affine(C(u), nullptr, work.hidden[0], tangent, thread);
    detail::clear_rows(tangent.slice(thread), dim_);
    if (du) add_product(C(du), at.hidden[0], tangent, thread);
  }

  /// With q = h C^T g: eta = phi'(y)^T q, h times the transpose of d_y f, applied to g.
  [[gnu::noinline]] void vjp(const StageControls<const T>& u, const StagePlanes<T>& at, T h,
                             LinearCombination<T>& g, const CotangentPlanes<T>& cotangents,
                             const Plane<T>& eta, const ThreadSlice<T>& thread, T* scratch) const {
    detail::write_multiple(h, g.result(), cotangents.state.slice(thread));
    transposed_product(C(u), cotangents.state, cotangents.hidden, thread, scratch);
    const Plane<const T> q = cotangents.hidden.slice(thread), phi = at.hidden[0].slice(thread);
    const Plane<T> result = eta.slice(thread);
    std::fill_n(result.data(), result.size(), T(0));
    for_derivatives(thread.tiles, [&](Index t, Index n, const auto& d, const Pack<T>& exponent) {
      T* const to = result.lane(t, d.variable, n);
      store<T>(to, fma(exponent * load(phi.lane(t, d.source, n)), load(q.lane(t, d.monomial, n)), load(to)));
    });
  }

  /// dC = [dC +] h g phi^T, by the whole team.
  [[gnu::noinline]] void control_gradient(const CotangentPlanes<T>& cotangents, LinearCombination<T>&,
                                          const StagePlanes<T>& at, const ThreadSlice<T>& thread,
                                          bool accumulate, const StageControls<T>& du, T* panels,
                                          FiniteProbe* probe = nullptr) const {
    outer_product<T>(cotangents.state, Plane<const T>(at.hidden[0]), thread, accumulate, C(du), nullptr,
                     panels, probe);
  }

  void write_slope(const StagePlanes<T>& at, const Plane<T>& out) const {
    std::copy_n(at.hidden[0].data(), out.size(), out.data());
  }

  /// d_y f = C phi'(y) of one pack of samples.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    const auto matrix = C(u);
    std::fill_n(out, dim_ * dim_ * lanes<T>, T(0));
    for (const auto& [monomial, variable, source, exponent] : monomials_->derivatives) {
      if (variable >= dim_) continue;
      const Pack<T> derivative = broadcast<T>(T(exponent)) * load(slope + source * tile_width<T>);
      for (Index i = 0; i < dim_; ++i) {
        T* const to = out + (i * dim_ + variable) * lanes<T>;
        store<T>(to, fma(broadcast<T>(matrix(i, monomial)), derivative, load(to)));
      }
    }
  }

 private:
  Index dim_;
  std::shared_ptr<const Monomials> monomials_;

  template <class E>
  MatrixView<E> C(const StageControls<E>& u) const {
    return u.matrix(0, dim_, monomials_->size());
  }

  /// f(tile, lane, derivative, its exponent) for every pack of samples.
  template <class F>
  void for_derivatives(Index tiles, const F& f) const {
    for (Index t = 0; t < tiles; ++t)
      for (const Monomials::Derivative& derivative : monomials_->derivatives) {
        const Pack<T> exponent = broadcast<T>(T(derivative.exponent));
        for (Index n = 0; n < tile_width<T>; n += lanes<T>) f(t, n, derivative, exponent);
      }
  }
};

}  // namespace ocdl
