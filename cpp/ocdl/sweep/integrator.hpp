#pragma once

#include "ocdl/field/narrow_dense.hpp"
#include "ocdl/sweep/stage_equations.hpp"
#include "ocdl/trajectory/trajectory.hpp"

namespace ocdl {

/// What a thread evaluates stages in. Memory is somebody else's.
template <class T>
struct StageScratch {
  T* state;      ///< a plane
  T* product;    ///< this thread's own, see panel::scratch_size
  T* equations;  ///< this thread's own, see StageEquations::scratch_size
  Pulse pulse;   ///< whom the solution of equations asks whether to go on
};

/// The forward sweep, a Runge-Kutta step per layer:
///     y_i = y[j] + h_j sum_l a_il k_l,   k_i = f(y_i, u_i[j]),   y[j+1] = y[j] + h_j sum_i b_i k_i.
template <class T>
class Integrator {
 public:
  Integrator(const Network& network, const T* controls) : net_(network), u_(network.split(controls)) {}

  /// The k_i of layer j at the state y, and y[j+1]; `next` may be `y`. A team calls it together, each thread
  /// with its own tiles.
  void step(Index j, const T* y, const Stages<T>& stages, T* next, const StageScratch<T>& scratch,
            const Share<T>& share) const {
    if (net_.is_narrow<T>()) return narrow_step(j, y, stages, next, scratch, share.tiles);
    evaluate_stages(j, y, stages, scratch, share);
    advance(j, y, stages, next, share.tiles);
  }

  /// The k_i alone.
  void evaluate_stages(Index j, const T* y, const Stages<T>& stages, const StageScratch<T>& scratch,
                       const Share<T>& share) const {
    if (net_.is_narrow<T>()) return narrow_step(j, y, stages, nullptr, scratch, share.tiles);
    const Field<T> field = net_.field<T>();
    for (const StageGroup& group : net_.groups) {
      const Index i = group.first;
      if (!net_.is_live(i)) continue;
      if (group.is_implicit) {
        solve_stages(j, group, y, stages, scratch, share.tiles);
        continue;
      }
      const T* state = net_.residual ? stage_state(net_.tableau, i, i, u_.h(j), y, stages, scratch.state,
                                                   field.run(share.tiles))
                                     : y;
      field.evaluate(u_.at(j, i), state, stages.planes(i), share, scratch.product);
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

  /// Both in one, unless `next` is null.
  void narrow_step(Index j, const T* y, const Stages<T>& stages, T* next, const StageScratch<T>& scratch,
                   Index tiles) const {
    if constexpr (std::floating_point<T>) {
      const NarrowDense<T> field{net_.dim, net_.activation};
      const Index size = net_.field<T>().run(tiles), last = net_.last_live;
      const T h = net_.residual ? u_.h(j) : T(1);
      Combination<T> sum(net_.residual ? y : nullptr, next, size);
      for (Index i = 0; i <= last; ++i) {
        if (!net_.is_live(i)) continue;
        const Index looked_at = net_.residual ? i : 0;
        const StagePlanes<T> at = stages.planes(i);
        const T weight = next ? h * T(net_.weight(i)) : T(0);
        field.evaluate(u_.at(j, i),
                       stage_combination(net_.tableau, i, looked_at, h, y, stages, scratch.state, size), at.k,
                       at.details, scratch.state, sum, i == last ? weight : T(0), next, tiles);
        if (i < last)
          sum.add(weight, at.k);
        else if (next && weight == T(0))
          sum.write();
      }
    }
  }

  /// Out of line, so that explicit methods have the registers for themselves.
  [[gnu::noinline]] void solve_stages(Index j, const StageGroup& group, const T* y, const Stages<T>& stages,
                                      const StageScratch<T>& scratch, Index tiles) const {
    with_stage_equations<T>(net_, u_, j, group, [&](const auto& equations) {
      equations.solve(y, stages, scratch.product, scratch.equations, tiles, scratch.pulse);
    });
  }
};

}  // namespace ocdl
