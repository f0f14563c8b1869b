#pragma once

#include "ocdl/sweep/stage_equations.hpp"
#include "ocdl/trajectory/trajectory.hpp"

namespace ocdl {

/// What a thread evaluates stages in. Memory is somebody else's.
template <class T>
struct StageScratch {
  T* state;      ///< a plane
  T* product;    ///< this thread's own, see panel::scratch_size
  T* equations;  ///< this thread's own, see StageEquations::scratch_size
};

/// The forward sweep, a Runge-Kutta step per layer:
///     y_i = y[j] + h_j sum_l a_il k_l,   k_i = f(y_i, u_i[j]),   y[j+1] = y[j] + h_j sum_i b_i k_i.
template <class T>
class Integrator {
 public:
  Integrator(const Network& network, const T* controls) : net_(network), u_(network.split(controls)) {}

  /// The k_i of layer j at the state y.
  void evaluate_stages(Index j, const T* y, const Stages<T>& stages, const StageScratch<T>& scratch,
                       Index tiles) const {
    const Field<T> field = net_.field<T>();
    for (const StageGroup& group : net_.groups) {
      const Index i = group.first;
      if (!net_.is_live(i)) continue;
      if (group.is_implicit) {
        solve_stages(j, group, y, stages, scratch, tiles);
        continue;
      }
      const T* state =
          net_.residual ? stage_state(net_.tableau, i, i, u_.h(j), y, stages, scratch.state, field.run(tiles))
                        : y;
      field.evaluate(u_.at(j, i), state, stages.planes(i), tiles, scratch.product);
    }
  }

  /// y[j+1] from y[j] and the k_i; `next` may be `y`.
  void advance(Index j, const T* y, const Stages<T>& stages, T* next, Index tiles) const {
    Combination<T> state(net_.residual ? y : nullptr, next, net_.field<T>().run(tiles));
    for (Index i = 0; i < net_.stages; ++i)
      state.add(net_.residual ? u_.h(j) * T(net_.tableau.b()(i)) : T(1), stages.value(i));
    state.write();
  }

 private:
  const Network& net_;
  Controls<const T> u_;

  /// Out of line, so that explicit methods have the registers for themselves.
  [[gnu::noinline]] void solve_stages(Index j, const StageGroup& group, const T* y, const Stages<T>& stages,
                                      const StageScratch<T>& scratch, Index tiles) const {
    with_stage_equations<T>(net_, u_, j, group, [&](const auto& equations) {
      equations.solve(y, stages, scratch.product, scratch.equations, tiles);
    });
  }
};

}  // namespace ocdl
