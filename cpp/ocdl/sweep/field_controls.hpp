#pragma once

#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/workspace.hpp"

/// Controls as the sweeps take them: of an antisymmetric field, say, those of the dense one that it is.
namespace ocdl {

/// The controls, or a direction of theirs, mapped where the field needs it, in memory number `which` of the
/// workspace. Null stays null.
template <class T>
const T* field_controls(const Network& net, const T* controls, int which, Workspace<T>& workspace) {
  if (!controls || !traits_of(net.field_kind).is_mapped) return controls;
  T* mapped = workspace.mapped_controls(which, net.control_size());
  std::copy(controls + net.steps().begin, controls + net.control_size(), mapped + net.steps().begin);
  const Field<T> field = net.field<T>();
  const Controls<const T> u = net.split(controls);
  const Controls<T> to = net.split(mapped);
  for_each_set(net, [&](Index set, Index i) { field.map_controls(u.set(set, i), to.set(set, i)); });
  return mapped;
}

/// A gradient with respect to mapped controls becomes one with respect to the controls.
template <class T>
void transpose_field_map(const Network& net, T* gradient) {
  if (!traits_of(net.field_kind).is_mapped) return;
  const Field<T> field = net.field<T>();
  const Controls<T> g = net.split(gradient);
  for_each_set(net, [&](Index set, Index i) { field.transpose_map(g.set(set, i)); });
}

}  // namespace ocdl
