#pragma once

#include "ocdl/field/field_kind.hpp"

namespace ocdl {

/// The controls with which a field is evaluated at one stage; null pointers are a zero direction, or a part
/// that the field does not have. E is T or const T.
template <class E>
struct StageControls {
  MatrixView<E> K;
  VectorView<E> b;

  StageControls(const std::array<E*, most_field_parts>& parts, Index dim)
      : K(parts[0], dim, dim), b(parts[1], dim) {}

  explicit operator bool() const { return K.data() != nullptr; }
};

}  // namespace ocdl
