#pragma once

#include "ocdl/sweep/integrator.hpp"

namespace ocdl {

/// The variational sweep: the same tableau applied to v' = d_y f v + d_u f w, with w = (dK, db) and the
/// steps' own direction dh:
///     v_i = v[j] + h sum_l a_il k'_l + dh sum_l a_il k_l,   k'_i = d_y f v_i + d_u f w_i,
///     v[j+1] = v[j] + h sum_i b_i k'_i + dh sum_i b_i k_i.
template <class T>
class Tangent {
 public:
  /// `direction`: vector of controls, or nullptr for w = 0.
  Tangent(const Network& network, const T* controls, const T* direction)
      : net_(network), integrator_(network, controls), u_(network.split(controls)) {
    if (direction) w_ = network.split(direction);
  }

  /// Planes of scratch that a step works in.
  static Index scratch_planes(Index stages) { return 3 + stages; }

  /// y[j] -> y[j+1] and v[j] -> v[j+1], both in place.
  void step(Index j, T* y, T* v, const Stages<T>& stages, T* scratch, Index tiles) const {
    const Dense<T> field = net_.field<T>();
    const Index size = field.run(tiles);
    T *state_scratch = scratch, *v_scratch = scratch + size, *product_scratch = scratch + 2 * size;
    T* k_tangent = scratch + 3 * size;
    integrator_.evaluate_stages(j, y, stages, state_scratch, tiles);

    const T h = net_.residual ? u_.h[j] : T(1);
    const T dh = net_.residual && w_.h ? w_.h[j] : T(0);
    const auto add_stage = [&](Combination<T>& sum, Index i, double coefficient) {
      sum.add(h * T(coefficient), k_tangent + i * size);
      sum.add(dh * T(coefficient), stages.value(i));
    };
    for (Index i = 0; i < net_.stages; ++i) {
      if (!net_.is_live(i)) continue;
      const T* state = y;
      Combination<T> v_stage(v, v_scratch, size);
      if (net_.residual) {
        state = stage_state(net_.tableau, i, h, y, stages, state_scratch, size);
        for (Index l = 0; l < i; ++l) add_stage(v_stage, l, net_.tableau.A()(i, l));
      }
      const T* dK = w_.K ? net_.K_of(w_, j, i) : nullptr;
      const T* db = w_.b ? net_.b_of(w_, j, i) : nullptr;
      field.push_forward(net_.K_of(u_, j, i), dK, db, state, stages.value(i), stages.slope(i),
                         v_stage.result(), k_tangent + i * size, product_scratch, tiles);
    }
    Combination<T> v_next(net_.residual ? v : nullptr, v, size);
    for (Index i = 0; i < net_.stages; ++i) add_stage(v_next, i, net_.residual ? net_.tableau.b()(i) : 1.0);
    v_next.write();
    integrator_.advance(j, y, stages, y, tiles);
  }

 private:
  const Network& net_;
  Integrator<T> integrator_;
  Controls<const T> u_, w_{};
};

}  // namespace ocdl
