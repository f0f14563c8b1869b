#pragma once

#include "ocdl/field/field_map.hpp"
#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/workspace.hpp"

/// Controls as the sweeps take them: of an antisymmetric field, say, those of the dense one that it is.
namespace ocdl {

/// The controls, or a direction of theirs, mapped where the field asks for it, in memory number `which` of
/// the workspace. Null stays null.
template <class T>
const T* field_controls(const Network& net, const T* controls, int which, Workspace<T>& workspace) {
  if (!controls || !is_mapped(net.field_kind)) return controls;
  T* mapped = workspace.mapped_controls(which, net.control_size());
  std::copy(controls + net.steps().begin, controls + net.control_size(), mapped + net.steps().begin);
  const Controls<const T> u = net.split(controls);
  const Controls<T> to = net.split(mapped);
  for_each_set(net, [&](Index j, Index i) { map_controls<T>(net.field_kind, u.at(j, i), to.at(j, i)); });
  return mapped;
}

/// A gradient with respect to mapped controls becomes one with respect to the controls.
template <class T>
void pull_back_controls(const Network& net, T* gradient) {
  if (!is_mapped(net.field_kind)) return;
  const Controls<T> g = net.split(gradient);
  for_each_set(net, [&](Index j, Index i) { transpose_map<T>(net.field_kind, g.at(j, i)); });
}

}  // namespace ocdl
