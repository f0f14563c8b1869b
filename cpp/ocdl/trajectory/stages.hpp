#pragma once

#include "ocdl/field/field.hpp"
#include "ocdl/kernel/combination.hpp"
#include "ocdl/tableau/tableau.hpp"

namespace ocdl {

/// The stage values k_i = f(y_i, u) of one layer, a plane each, with the field's details of each stage.
template <class T>
struct Stages {
  T* values;
  T* details;
  Index stride;
  Index detail_planes;  ///< of a stage

  T* value(Index i) const { return values + i * stride; }
  StagePlanes<T> planes(Index i) const { return {value(i), details + i * detail_planes * stride, stride}; }
  /// The same from another tile on.
  Stages from(Index offset) const { return {values + offset, details + offset, stride, detail_planes}; }
};

/// y_i = y + h sum_l a_il k_l over the first `count` stages; stage i needs no other. The adjoint rebuilds y_i
/// from the stored y and k: cheaper to compute than to store, and the same bits.
template <class T>
Combination<T> stage_combination(const Tableau& tableau, Index i, Index count, T h, const T* y,
                                 const Stages<T>& stages, T* scratch, Index size) {
  Combination<T> state(y, scratch, size);
  for (Index l = 0; l < count; ++l) state.add(h * T(tableau.A()(i, l)), stages.value(l));
  return state;
}

/// The same as a plane: y itself where row i of A is zero, else written to `scratch`.
template <class T>
const T* stage_state(const Tableau& tableau, Index i, Index count, T h, const T* y, const Stages<T>& stages,
                     T* scratch, Index size) {
  return stage_combination(tableau, i, count, h, y, stages, scratch, size).result();
}

}  // namespace ocdl
