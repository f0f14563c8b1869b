#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "ocdl/types.hpp"

namespace ocdl {

/// A part of the controls that a field asks for at every layer, or at every stage: its name and its shape.
struct FieldPart {
  std::string_view name;
  std::vector<Index> shape;
};

/// The parts of the controls of a field, in the order in which `StageControls` takes them. All fields have
/// the same ones as yet.
inline std::vector<FieldPart> field_parts(Index dim) { return {{"K", {dim, dim}}, {"b", {dim}}}; }

inline constexpr std::size_t field_part_count = 2;

/// The controls with which a field is evaluated at one stage; null pointers are a zero direction. E is T or
/// const T.
template <class E>
struct StageControls {
  MatrixView<E> K;
  VectorView<E> b;

  StageControls(const std::array<E*, field_part_count>& parts, Index dim)
      : K(parts[0], dim, dim), b(parts[1], dim) {}

  explicit operator bool() const { return K.data() != nullptr; }
};

}  // namespace ocdl
