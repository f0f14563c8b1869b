#pragma once

#include "ocdl/field/antisymmetric.hpp"
#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/workspace.hpp"

/// Controls as the sweeps take them: of an antisymmetric field those of the dense one that it is.
namespace ocdl {

/// The controls, or a direction of theirs, mapped where the field asks for it, in memory number `which` of
/// the workspace. Null stays null.
template <class T>
const T* field_controls(const Network& net, const T* controls, int which, Workspace<T>& workspace) {
  if (!controls || net.field_kind != FieldKind::antisymmetric) return controls;
  T* mapped = workspace.mapped_controls(which, net.control_size());
  const Index matrix = net.dim * net.dim;
  for (Index n = 0; n < net.K_size(); n += matrix) antisymmetric::map(net.dim, controls + n, mapped + n);
  std::copy(controls + net.K_size(), controls + net.control_size(), mapped + net.K_size());
  return mapped;
}

/// A gradient with respect to mapped controls becomes one with respect to the controls.
template <class T>
void pull_back_controls(const Network& net, T* gradient) {
  if (net.field_kind != FieldKind::antisymmetric) return;
  for (Index n = 0; n < net.K_size(); n += net.dim * net.dim)
    antisymmetric::transposed_map(net.dim, gradient + n);
}

}  // namespace ocdl
