#pragma once

#include "ocdl/field/field.hpp"
#include "ocdl/tableau/tableau.hpp"

namespace ocdl {

/// The stages of one layer, planes of a block or of some of its tiles: the values k_i = f(y_i, u) and what
/// the field keeps of each.
template <class T>
struct Stages {
  Planes<T> values, hidden;
  Index hidden_count;           ///< of a stage
  Plane<T> input_changes = {};  ///< x_(j+1) - x_j; null where inputs stay as they are within a layer

  Plane<T> value(Index i) const { return values[i]; }
  StagePlanes<T> operator[](Index i) const { return {values[i], hidden.from(i * hidden_count)}; }
  Stages slice(const Range& tiles) const {
    return {values.slice(tiles), hidden.slice(tiles), hidden_count, input_changes.slice(tiles)};
  }
  /// Whether stage i takes other inputs than the first one would.
  bool change_inputs(const Tableau& tableau, Index i) const { return input_changes && tableau.c()(i) != 0; }
};

/// Adds c_i (x_(j+1) - x_j) to the last rows of a state, which hold x_j: stage i takes these inputs, whatever
/// the step.
template <class T>
void add_input_changes(const Tableau& tableau, Index i, const Stages<T>& stages, const Plane<T>& state) {
  if (!stages.change_inputs(tableau, i)) return;
  const Plane<const T> changes = stages.input_changes;
  const Pack<T> fraction = broadcast<T>(T(tableau.c()(i)));
  for (Index t = 0; t < state.tiles(); ++t) {
    T* const inputs = state.lane(t, state.rows() - changes.rows(), 0);
    detail::for_packs<T>(changes.tile_size(), [&](Index n) {
      store<T>(inputs + n, fma(fraction, load(changes.lane(t, 0, 0) + n), load(inputs + n)));
    });
  }
}

/// y_i = y + h sum_l a_il k_l over the first `count` stages; stage i needs no other. The adjoint rebuilds y_i
/// from the stored y and k: cheaper to compute than to store, and the same bits. It is written where inputs
/// change within a layer.
template <class T>
LinearCombination<T> stage_combination(const Tableau& tableau, Index i, Index count, T h,
                                       const Plane<const T>& y, const Stages<T>& stages,
                                       const Plane<T>& scratch) {
  LinearCombination<T> state(y, scratch);
  for (Index l = 0; l < count; ++l) state.add(h * T(tableau.A()(i, l)), stages.value(l));
  if (stages.change_inputs(tableau, i)) {
    state.write();
    add_input_changes(tableau, i, stages, scratch);
  }
  return state;
}

/// The same as a plane of the block, of which this thread writes its slice: y itself where nothing is added,
/// else `scratch`.
template <class T>
Plane<const T> stage_state(const Tableau& tableau, Index i, Index count, T h, const Plane<const T>& y,
                           const Stages<T>& stages, const Plane<T>& scratch, const ThreadSlice<T>& thread) {
  LinearCombination<T> state = stage_combination(tableau, i, count, h, y.slice(thread),
                                                 stages.slice(thread.range()), scratch.slice(thread));
  if (!state.is_plane()) state.write();
  return state.result().data() == y.slice(thread).data() ? y : Plane<const T>(scratch);
}

}  // namespace ocdl
