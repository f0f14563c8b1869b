#pragma once

#include "ocdl/sweep/network.hpp"
#include "ocdl/trajectory/trajectory.hpp"

namespace ocdl {

/// The forward sweep, a Runge-Kutta step per layer:
///     y_i = y[j] + h_j sum_l a_il k_l,   k_i = f(y_i, u_i[j]),   y[j+1] = y[j] + h_j sum_i b_i k_i.
template <class T>
class Integrator {
 public:
  Integrator(const Network& network, const T* controls) : net_(network), u_(network.split(controls)) {}

  /// The k_i of layer j at the state y. `scratch` is a plane.
  void evaluate_stages(Index j, const T* y, const Stages<T>& stages, T* scratch, Index tiles) const {
    const Dense<T> field = net_.field<T>();
    for (Index i = 0; i < net_.stages; ++i) {
      if (!net_.is_live(i)) continue;
      const T* state =
          net_.residual ? stage_state(net_.tableau, i, u_.h[j], y, stages, scratch, field.run(tiles)) : y;
      field.evaluate(net_.K_of(u_, j, i), net_.b_of(u_, j, i), state, stages.value(i), stages.slope(i),
                     tiles);
    }
  }

  /// y[j+1] from y[j] and the k_i; `next` may be `y`.
  void advance(Index j, const T* y, const Stages<T>& stages, T* next, Index tiles) const {
    Combination<T> state(net_.residual ? y : nullptr, next, net_.field<T>().run(tiles));
    for (Index i = 0; i < net_.stages; ++i)
      state.add(net_.residual ? u_.h[j] * T(net_.tableau.b()(i)) : T(1), stages.value(i));
    state.write();
  }

 private:
  const Network& net_;
  Controls<const T> u_;
};

}  // namespace ocdl
