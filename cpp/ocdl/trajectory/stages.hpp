#pragma once

#include "ocdl/field/field.hpp"
#include "ocdl/tableau/tableau.hpp"

namespace ocdl {

/// The stages of one layer, planes of a block or of some of its tiles: the values k_i = f(y_i, u) and what
/// the field keeps of each.
template <class T>
struct Stages {
  Planes<T> values, hidden;
  Index hidden_count;  ///< of a stage

  Plane<T> value(Index i) const { return values[i]; }
  StagePlanes<T> operator[](Index i) const { return {values[i], hidden.from(i * hidden_count)}; }
  Stages slice(const Range& tiles) const { return {values.slice(tiles), hidden.slice(tiles), hidden_count}; }
};

/// y_i = y + h sum_l a_il k_l over the first `count` stages; stage i needs no other. The adjoint rebuilds y_i
/// from the stored y and k: cheaper to compute than to store, and the same bits.
template <class T>
LinearCombination<T> stage_combination(const Tableau& tableau, Index i, Index count, T h,
                                       const Plane<const T>& y, const Stages<T>& stages,
                                       const Plane<T>& scratch) {
  LinearCombination<T> state(y, scratch);
  for (Index l = 0; l < count; ++l) state.add(h * T(tableau.A()(i, l)), stages.value(l));
  return state;
}

/// The same as a plane of the block, of which this thread writes its slice: y itself where row i of A is
/// zero, else `scratch`.
template <class T>
Plane<const T> stage_state(const Tableau& tableau, Index i, Index count, T h, const Plane<const T>& y,
                           const Stages<T>& stages, const Plane<T>& scratch, const ThreadSlice<T>& own) {
  LinearCombination<T> state =
      stage_combination(tableau, i, count, h, y.slice(own), stages.slice(own.range()), scratch.slice(own));
  if (state.is_plane()) return y;
  state.write();
  return scratch;
}

}  // namespace ocdl
