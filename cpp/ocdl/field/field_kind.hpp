#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "ocdl/types.hpp"

namespace ocdl {

enum class FieldKind { dense, antisymmetric, hamiltonian };

/// What is known of a vector field beside its functions.
struct FieldFacts {
  std::string_view name;
  FieldKind swept_as;  ///< itself, or the field that it is after a linear map of its controls
  bool needs_even_dim = false;
};

/// In the order of the enumeration.
inline constexpr auto fields = std::to_array<FieldFacts>({
    {"dense", FieldKind::dense},
    {"antisymmetric", FieldKind::dense},
    {"hamiltonian", FieldKind::hamiltonian, true},
});

constexpr const FieldFacts& facts_of(FieldKind kind) { return fields[static_cast<std::size_t>(kind)]; }

/// Whether its controls are mapped before a sweep, and gradients after it; see field_map.hpp.
constexpr bool is_mapped(FieldKind kind) { return facts_of(kind).swept_as != kind; }

/// A part of the controls that a field asks for at every layer, or at every stage: its name and its shape.
struct FieldPart {
  std::string_view name;
  std::vector<Index> shape;
};

/// The parts of the controls of a field, in the order in which `StageControls` takes them. All fields have
/// the same ones as yet.
inline std::vector<FieldPart> field_parts(FieldKind, Index dim) { return {{"K", {dim, dim}}, {"b", {dim}}}; }

inline constexpr std::size_t most_field_parts = 2;

}  // namespace ocdl
