#pragma once

#include "ocdl/field/list.hpp"

namespace ocdl {

/// What is known of a vector field beside its functions.
struct FieldTraits {
  std::string_view name;
  std::string_view option;  ///< "width", "degree" or ""
  bool requires_option;
  bool needs_even_dim;
  bool takes_inputs;
  bool is_mapped;  ///< its controls are mapped before a sweep, and gradients after it
  bool is_dense;   ///< its sweeps are those of the dense field
};

namespace detail {

template <class F, class T>
concept MapsControls = requires(const FieldOptions& options, const StageControls<T>& gradient) {
  F::transpose_map(options, gradient);
};

template <class F>
concept FusesAdjoint = requires(const F& field) { field.fused_sums_size(); };

template <class T, class... F>
constexpr auto traits_of(std::variant<F...>*) {
  return std::to_array<FieldTraits>(
      {{F::name, F::option, F::requires_option, F::needs_even_dim, F::takes_inputs, MapsControls<F, T>,
        std::derived_from<F, Dense<T>>}...});
}

}  // namespace detail

/// In the order of the enumeration.
inline constexpr auto fields = detail::traits_of<double>(static_cast<FieldVariant<double>*>(nullptr));

constexpr const FieldTraits& traits_of(FieldKind kind) { return fields[static_cast<std::size_t>(kind)]; }

/// The vector field of a network: its value, its jvp (the tangent sweep), its vjp and its control gradient
/// (the adjoint sweep), its Jacobian (implicit methods); see `Dense`. The field is chosen once per plane.
template <class T>
class Field {
 public:
  Field(FieldKind kind, const FieldOptions& options) : options_(options), field_(make(kind, options)) {}

  std::vector<FieldPart> parts() const {
    return visit([&](const auto& f) { return f.parts(options_); });
  }
  HiddenPlanes hidden() const {
    return visit([](const auto& f) { return f.hidden(); });
  }
  /// Whether `evaluate` and `jvp` use `scratch`.
  bool needs_scratch_forward() const {
    return visit([](const auto& f) { return f.needs_scratch_forward; });
  }
  /// Whether `vjp` leaves `CotangentPlanes::state` for `control_gradient`.
  bool needs_state_cotangent() const {
    return visit([](const auto& f) { return f.needs_state_cotangent; });
  }

  /// k = f(y, u), and the sum that k completes, which may be written over y.
  void evaluate(const StageControls<const T>& u, const Plane<const T>& y, const StagePlanes<T>& at,
                const Epilogue<T>& epilogue, const ThreadSlice<T>& thread, T* scratch) const {
    visit([&](const auto& f) { f.evaluate(u, y, at, epilogue, thread, scratch); });
  }
  /// k' = d_y f v + d_u f du.
  void jvp(const StageControls<const T>& u, const StageControls<const T>& du, const Plane<const T>& y,
           const StagePlanes<T>& at, const Plane<const T>& v, const Plane<T>& tangent,
           const TangentPlanes<T>& work, const ThreadSlice<T>& thread, T* scratch) const {
    visit([&](const auto& f) { f.jvp(u, du, y, at, v, tangent, work, thread, scratch); });
  }
  /// eta = h (d_y f)^T g, and the cotangents that `control_gradient` takes.
  void vjp(const StageControls<const T>& u, const StagePlanes<T>& at, T h, LinearCombination<T>& g,
           const CotangentPlanes<T>& cotangents, const Plane<T>& eta, const ThreadSlice<T>& thread,
           T* scratch) const {
    visit([&](const auto& f) { f.vjp(u, at, h, g, cotangents, eta, thread, scratch); });
  }
  /// du = [du +] h (d_u f)^T g, by the whole team. What this thread writes to the parts that multiply
  /// states is reported to the probe.
  void control_gradient(const CotangentPlanes<T>& cotangents, LinearCombination<T>& y,
                        const StagePlanes<T>& at, const ThreadSlice<T>& thread, bool accumulate,
                        const StageControls<T>& du, T* panels, FiniteProbe* probe = nullptr) const {
    visit([&](const auto& f) {
      return f.control_gradient(cotangents, y, at, thread, accumulate, du, panels, probe);
    });
  }
  /// Numbers of the sums of `fused_vjp`; 0: the field has none for this scalar and dimension.
  Index fused_sums_size() const {
    return visit([]<class F>(const F& f) -> Index {
      if constexpr (detail::FusesAdjoint<F>) return f.fused_sums_size();
      return 0;
    });
  }
  /// eta = h (d_y f)^T g and sums += h (d_u f)^T g in one pass, by one thread; y and g are its slice.
  void fused_vjp(const StageControls<const T>& u, T h, const LinearCombination<T>& y,
                 const StagePlanes<T>& at, const LinearCombination<T>& g, const Plane<T>& eta,
                 const ThreadSlice<T>& thread, T* sums) const {
    visit([&]<class F>(const F& f) {
      if constexpr (detail::FusesAdjoint<F>) f.fused_vjp(u, h, y, at, g, eta, thread, sums);
    });
  }
  /// du = [du +] the sums over all lanes, which overwrites them.
  void add_lanes(T* sums, bool accumulate, const StageControls<T>& du) const {
    visit([&]<class F>(const F& f) {
      if constexpr (detail::FusesAdjoint<F>) f.add_lanes(sums, accumulate, du);
    });
  }
  /// What `jacobian` takes of a stage, a plane with as many rows as `hidden`.
  void write_slope(const StagePlanes<T>& at, const Plane<T>& out) const {
    visit([&](const auto& f) { f.write_slope(at, out); });
  }
  /// d_y f of one pack of samples, dim x dim packs in rows; `slope` is that of a tile, from the pack on.
  void jacobian(const StageControls<const T>& u, const T* slope, T* out) const {
    visit([&](const auto& f) { f.jacobian(u, slope, out); });
  }

  /// The controls as the sweeps take them, of a field that `is_mapped`.
  void map_controls(const StageControls<const T>& u, const StageControls<T>& mapped) const {
    visit([&]<class F>(const F& f) {
      if constexpr (detail::MapsControls<F, T>) f.map_controls(options_, u, mapped);
    });
  }
  /// The transpose of that map, on a gradient, in place.
  void transpose_map(const StageControls<T>& gradient) const {
    visit([&]<class F>(const F& f) {
      if constexpr (detail::MapsControls<F, T>) f.transpose_map(options_, gradient);
    });
  }

 private:
  FieldOptions options_;
  FieldVariant<T> field_;

  template <class F>
  decltype(auto) visit(const F& f) const {
    return std::visit(f, field_);
  }

  static FieldVariant<T> make(FieldKind kind, const FieldOptions& options) {
    return make(kind, options, std::make_index_sequence<std::variant_size_v<FieldVariant<T>>>());
  }
  template <std::size_t... N>
  static FieldVariant<T> make(FieldKind kind, const FieldOptions& options, std::index_sequence<N...>) {
    FieldVariant<T> field(std::in_place_index<0>, options);
    ((static_cast<std::size_t>(kind) == N ? void(field.template emplace<N>(options)) : void()), ...);
    return field;
  }
};

}  // namespace ocdl
