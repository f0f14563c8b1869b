#pragma once

#include "ocdl/kernel/combination.hpp"
#include "ocdl/tableau/tableau.hpp"

namespace ocdl {

/// The stage values k_i = f(y_i, u) of one layer, a plane each, with their slopes where the field stores
/// them.
template <class T>
struct Stages {
  T* values;
  T* slopes;  // nullptr: told by the values
  Index stride;

  T* value(Index i) const { return values + i * stride; }
  T* slope(Index i) const { return slopes ? slopes + i * stride : nullptr; }
};

/// y_i = y + h sum_l a_il k_l over l < i. Where row i of A is zero that is y itself, else it is written to
/// `scratch`. The adjoint rebuilds y_i from the stored y and k: cheaper to compute than to store, and the
/// same bits.
template <class T>
const T* stage_state(const Tableau& tableau, Index i, T h, const T* y, const Stages<T>& stages, T* scratch,
                     Index size) {
  Combination<T> state(y, scratch, size);
  for (Index l = 0; l < i; ++l) state.add(h * T(tableau.A()(i, l)), stages.value(l));
  return state.result();
}

}  // namespace ocdl
