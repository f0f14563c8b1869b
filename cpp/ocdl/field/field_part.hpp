#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "ocdl/field/activation.hpp"
#include "ocdl/field/monomials.hpp"

namespace ocdl {

/// What a vector field is made from.
struct FieldOptions {
  Index dim;
  Activation activation;
  Index width;                                 ///< hidden units, of fields that have a width
  std::shared_ptr<const Monomials> monomials;  ///< of fields that have a degree
  Index rows;                                  ///< of z = (y, x), a state with the inputs behind it

  FieldOptions(Index dim_, Activation activation_, Index width_ = 0, Index degree = 0, Index inputs = 0)
      : dim(dim_),
        activation(activation_),
        width(width_),
        monomials(degree ? std::make_shared<const Monomials>(dim_ + inputs, degree) : nullptr),
        rows(dim_ + inputs) {}
};

/// How a part starts: "zero", "normal" with this standard deviation or "uniform" between -size and size;
/// `scaled_size` where the start is scaled to the dimension.
struct Start {
  std::string_view distribution = "zero";
  double size = 0, scaled_size = size;
};

/// A part of the controls of a field, at every layer or at every stage: its name, the names of its axes and
/// their lengths.
struct FieldPart {
  std::string_view name;
  std::vector<std::string_view> axes;
  std::vector<Index> shape;
  bool multiplies_states = false;  ///< where it is not finite, neither are the costates
  Start start = {};
};

/// The most parts that a field has.
inline constexpr std::size_t max_field_parts = 5;

/// The parts of a field's controls at one stage, in the order in which the field states them. Null pointers
/// are a zero direction. E is T or const T.
template <class E>
struct StageControls {
  std::array<E*, max_field_parts> parts{};

  explicit operator bool() const { return parts[0] != nullptr; }
  MatrixView<E> matrix(std::size_t part, Index rows, Index cols) const { return {parts[part], rows, cols}; }
  VectorView<E> vector(std::size_t part, Index size) const { return {parts[part], size}; }
};

/// Planes that a field keeps of an evaluation for its derivatives, beside its value: how many, and their
/// rows. The cotangent of what the activation is applied to has as many rows.
struct HiddenPlanes {
  Index rows, count;
};

/// What a field leaves of an evaluation at a stage, planes of a block.
template <class T>
struct StagePlanes {
  Plane<T> value;    ///< k_i = f(y_i, u); 0 in the rows of the inputs
  Planes<T> hidden;  ///< as many as the field's `HiddenPlanes` says
};

/// Planes of a block that a jvp works in.
template <class T>
struct TangentPlanes {
  Planes<T> hidden;  ///< two, with as many rows as the hidden ones
  Plane<T> state;
};

/// What the adjoint sweep leaves for the gradient by the controls, planes of a block.
template <class T>
struct CotangentPlanes {
  Plane<T> hidden;  ///< of the argument of the activation, times h
  Plane<T> state;   ///< h g or h J^T g, where the field `needs_state_cotangent`
};

namespace detail {

/// Sets the rows from `first` on to 0: a field has no value in those of the inputs.
template <class T>
void clear_rows(const Plane<T>& plane, Index first) {
  if (first < plane.rows())
    for (Index t = 0; t < plane.tiles(); ++t)
      std::fill_n(plane.lane(t, first, 0), (plane.rows() - first) * tile_width<T>, T(0));
}

/// out = factor v.
template <class T>
void write_multiple(T factor, const Plane<const T>& v, const Plane<T>& out) {
  for_packs<T>(out.size(), [&, scale = broadcast<T>(factor)](Index n) {
    store<T>(out.data() + n, scale * load(v.data() + n));
  });
}

}  // namespace detail

}  // namespace ocdl
