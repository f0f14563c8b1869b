#pragma once

#include "ocdl/field/antisymmetric.hpp"

/// Fields that are another one after a linear map of their controls; `fields` says which.
namespace ocdl {

template <class T>
void map_controls(FieldKind kind, const StageControls<const T>& u, const StageControls<T>& mapped) {
  if (kind == FieldKind::antisymmetric) antisymmetric::map<T>(u, mapped);
}

/// The transpose of the map, on a gradient, in place.
template <class T>
void transpose_map(FieldKind kind, const StageControls<T>& gradient) {
  if (kind == FieldKind::antisymmetric) antisymmetric::transposed_map<T>(gradient);
}

}  // namespace ocdl
