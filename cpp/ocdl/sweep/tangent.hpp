#pragma once

#include "ocdl/sweep/integrator.hpp"

namespace ocdl {

/// The variational sweep: the same tableau applied to v' = d_y f v + d_u f w, with w = (dK, db) and the
/// steps' own direction dh:
///     v_i = v[j] + h sum_l a_il k'_l + dh sum_l a_il k_l,   k'_i = d_y f v_i + d_u f w_i,
///     v[j+1] = v[j] + h sum_i b_i k'_i + dh sum_i b_i k_i.
/// In an implicit group the k'_i solve M k' = d_y f v~ + d_u f w, where v~ leaves the group's own k' out.
template <class T>
class Tangent {
 public:
  /// `direction`: vector of controls, or nullptr for w = 0.
  Tangent(const Network& network, const T* controls, const T* direction)
      : net_(network),
        integrator_(network, controls),
        u_(network.split(controls)),
        w_(network.split(direction)) {}

  /// Planes that a step works in beside the integrator's.
  static Index scratch_planes(Index stages) { return 2 + stages; }

  /// y[j] -> y[j+1] and v[j] -> v[j+1], both in place.
  void step(Index j, T* y, T* v, const Stages<T>& stages, const StageScratch<T>& scratch, T* planes,
            Index tiles) const {
    const Field<T> field = net_.field<T>();
    const Index size = field.run(tiles);
    T *v_scratch = planes, *product_plane = planes + size, *k_tangent = planes + 2 * size;
    integrator_.evaluate_stages(j, y, stages, scratch, tiles);

    const T h = net_.residual ? u_.h(j) : T(1);
    const T dh = net_.residual && w_ ? w_.h(j) : T(0);
    const auto add_stage = [&](Combination<T>& sum, Index i, double coefficient) {
      sum.add(h * T(coefficient), k_tangent + i * size);
      sum.add(dh * T(coefficient), stages.value(i));
    };
    const auto push_forward = [&](const StageGroup& group, Index i) {
      const T* state = y;
      Combination<T> v_stage(v, v_scratch, size);
      if (net_.residual) {
        state = stage_state(net_.tableau, i, group.is_implicit ? group.last : i, h, y, stages, scratch.state,
                            size);
        for (Index l = 0; l < group.first; ++l) add_stage(v_stage, l, net_.tableau.A()(i, l));
        for (Index l = group.first; l < group.last; ++l)
          v_stage.add(dh * T(net_.tableau.A()(i, l)), stages.value(l));
      }
      field.push_forward(u_.at(j, i), w_.at(j, i), state, stages.planes(i), v_stage.result(),
                         k_tangent + i * size, product_plane, tiles, scratch.product);
    };
    for (const StageGroup& group : net_.groups) {
      if (!net_.is_live(group.first)) continue;
      for (Index i = group.first; i < group.last; ++i) push_forward(group, i);
      if (group.is_implicit)
        with_stage_equations<T>(net_, u_, j, group, [&](const auto& equations) {
          equations.solve_linear(false, stages, k_tangent, size, scratch.equations, tiles,
                                 scratch.stop_token);
        });
    }
    Combination<T> v_next(net_.residual ? v : nullptr, v, size);
    for (Index i = 0; i < net_.stages; ++i) add_stage(v_next, i, net_.residual ? net_.tableau.b()(i) : 1.0);
    v_next.write();
    integrator_.advance(j, y, stages, y, tiles);
  }

 private:
  const Network& net_;
  Integrator<T> integrator_;
  Controls<const T> u_, w_;
};

}  // namespace ocdl
