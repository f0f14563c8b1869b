#pragma once

#include "ocdl/sweep/integrator.hpp"

namespace ocdl {

/// The planes that a tangent step works in beside the integrator's.
template <class T>
struct TangentScratch {
  Plane<T> v_stage;
  Stages<T> tangents;  ///< k'_i, one for each stage, and the direction of the inputs' changes
  TangentPlanes<T> field;
};

/// The tangent sweep: the same tableau applied to v' = d_y f v + d_u f w, with a direction w of the controls
/// and the direction dh of the steps in it:
///     v_i = v[j] + h sum_l a_il k'_l + dh sum_l a_il k_l,   k'_i = d_y f v_i + d_u f w_i,
///     v[j+1] = v[j] + h sum_i b_i k'_i + dh sum_i b_i k_i.
/// In an implicit group the k'_i solve M k' = d_y f v~ + d_u f w, where v~ leaves the group's own k' out.
template <class T>
class Tangent {
 public:
  /// `direction`: vector of controls, or nullptr for w = 0.
  Tangent(const Network& network, const T* controls, const T* direction)
      : net_(network),
        field_(network.field<T>()),
        integrator_(network, controls),
        u_(network.split(controls)),
        w_(network.split(direction)) {}

  /// y[j] -> y[j+1] and v[j] -> v[j+1], both in place, by one thread.
  void step(Index j, const Plane<T>& y, const Plane<T>& v, const Stages<T>& stages,
            const StageScratch<T>& scratch, const TangentScratch<T>& tangents) const {
    const ThreadSlice<T> all(y.tiles());
    integrator_.evaluate_stages(j, y, stages, scratch, all);

    const T h = net_.residual ? u_.h(j) : T(1);
    const T dh = net_.residual && w_ ? w_.h(j) : T(0);
    const auto add_stage = [&](LinearCombination<T>& sum, Index i, double coefficient) {
      sum.add(h * T(coefficient), tangents.tangents.value(i));
      sum.add(dh * T(coefficient), stages.value(i));
    };
    const auto jvp = [&](const StageGroup& group, Index i) {
      Plane<const T> state = y;
      LinearCombination<T> v_stage(v, tangents.v_stage);
      if (net_.residual) {
        state = stage_state<T>(net_.tableau, i, group.is_implicit ? group.last : i, h, y, stages,
                               scratch.state, all);
        for (Index l = 0; l < group.first; ++l) add_stage(v_stage, l, net_.tableau.A()(i, l));
        for (Index l = group.first; l < group.last; ++l)
          v_stage.add(dh * T(net_.tableau.A()(i, l)), stages.value(l));
      }
      if (tangents.tangents.change_inputs(net_.tableau, i)) {
        v_stage.write();
        add_input_changes(net_.tableau, i, tangents.tangents, tangents.v_stage);
      }
      field_.jvp(u_.at(j, i), w_.at(j, i), state, stages[i], v_stage.result(), tangents.tangents.value(i),
                 tangents.field, all, scratch.product);
    };
    for (const ScheduledGroup& group : net_.schedule) {
      for (Index i = group.stages.first; i < group.stages.last; ++i) jvp(group.stages, i);
      if (group.stages.is_implicit)
        with_stage_equations<T>(net_, u_, j, group.stages, [&](const auto& equations) {
          equations.solve_linear(false, stages, tangents.tangents.values, scratch.equations,
                                 scratch.stop_token);
        });
    }
    LinearCombination<T> v_next(net_.residual ? v : Plane<T>(), v);
    for (Index i = 0; i < net_.stages; ++i) add_stage(v_next, i, net_.weight(i));
    v_next.write();
    integrator_.advance(j, y, stages, y, all);
  }

 private:
  const Network& net_;
  Field<T> field_;
  Integrator<T> integrator_;
  Controls<const T> u_, w_;
};

}  // namespace ocdl
