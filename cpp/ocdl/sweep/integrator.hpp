#pragma once

#include "ocdl/sweep/stage_equations.hpp"

namespace ocdl {

/// What a thread evaluates stages in. It does not own its memory.
template <class T>
struct StageScratch {
  Plane<T> state;        ///< of the block
  T* product;            ///< this thread's own, see panel::scratch_size
  T* equations;          ///< this thread's own, see StageEquations::scratch_size
  StopToken stop_token;  ///< checked while equations are solved
};

/// The forward sweep, a Runge-Kutta step per layer:
///     y_i = y[j] + h_j sum_l a_il k_l,   k_i = f(y_i, u_i[j]),   y[j+1] = y[j] + h_j sum_i b_i k_i.
/// Planes and stages are those of a block; a team calls each function together, and each thread writes its
/// slice.
template <class T>
class Integrator {
 public:
  Integrator(const Network& network, const T* controls)
      : net_(network), field_(network.field<T>()), u_(network.split(controls)) {}

  /// The k_i of layer j at the state y, and y[j+1] unless `next` is null; `next` may be `y`.
  void step(Index j, const Plane<const T>& y, const Stages<T>& stages, const Plane<T>& next,
            const StageScratch<T>& scratch, const ThreadSlice<T>& thread) const {
    if (net_.is_narrow<T>()) return narrow_step(j, y, stages, next, scratch);
    const T h = net_.residual ? u_.h(j) : T(1);
    bool is_ready = false;  // whether the stage before has completed what comes next, a state or y[j+1]
    for (const ScheduledGroup& group : net_.schedule) {
      if (group.stages.is_implicit) {
        solve_stages(j, group.stages, y, stages, scratch, thread);
        is_ready = false;
        continue;
      }
      const Index i = group.stages.first;
      const Plane<const T> state =
          is_ready ? Plane<const T>(scratch.state)
                   : stage_state(net_.tableau, i, net_.stages_before(i), h, y, stages, scratch.state, thread);

      const bool is_last = group.next < 0;
      const auto coefficient = [&](Index l) {
        return h * T(is_last ? net_.weight(l) : net_.tableau.A()(group.next, l));
      };
      LinearCombination<T> sum(net_.residual ? y.slice(thread) : Plane<const T>());
      Epilogue<T> epilogue{&sum, T(0), (is_last ? next : scratch.state).slice(thread)};
      const bool is_wanted = is_last ? bool(next) : !group.next_is_implicit;
      if (is_wanted && i < LinearCombination<T>::capacity) {  // more terms could not wait for this one
        for (Index l = 0; l < i; ++l) sum.add(coefficient(l), stages.value(l).slice(thread));
        epilogue.weight = coefficient(i);
      }
      if (is_ready && stages.input_changes)
        add_input_changes(net_.tableau, i, stages.slice(thread.range()), scratch.state.slice(thread));
      field_.evaluate(u_.at(j, i), state, stages[i], epilogue, thread, scratch.product);
      is_ready = epilogue.weight != T(0);
    }
    if (next && !is_ready) advance(j, y, stages, next, thread);
  }

  /// The k_i alone.
  void evaluate_stages(Index j, const Plane<const T>& y, const Stages<T>& stages,
                       const StageScratch<T>& scratch, const ThreadSlice<T>& thread) const {
    step(j, y, stages, {}, scratch, thread);
  }

  /// y[j+1] from y[j] and the k_i; `next` may be `y`.
  void advance(Index j, const Plane<const T>& y, const Stages<T>& stages, const Plane<T>& next,
               const ThreadSlice<T>& thread) const {
    LinearCombination<T> state(net_.residual ? y.slice(thread) : Plane<const T>(), next.slice(thread));
    for (Index i = 0; i < net_.stages; ++i)
      state.add(net_.residual ? u_.h(j) * T(net_.tableau.b()(i)) : T(1), stages.value(i).slice(thread));
    state.write();
  }

 private:
  const Network& net_;
  Field<T> field_;
  Controls<const T> u_;

  /// The same in fused kernels, by one thread.
  void narrow_step(Index j, const Plane<const T>& y, const Stages<T>& stages, const Plane<T>& next,
                   const StageScratch<T>& scratch) const {
    if constexpr (std::floating_point<T>) {
      const NarrowDense<T> field{net_.dim, net_.activation};
      const T h = net_.residual ? u_.h(j) : T(1);
      LinearCombination<T> sum(net_.residual ? y : Plane<const T>(), next);
      for (const ScheduledGroup& group : net_.schedule) {
        const Index i = group.stages.first;
        const bool is_last = group.next < 0;
        const T weight = next ? h * T(net_.weight(i)) : T(0);
        field.evaluate(u_.at(j, i),
                       stage_combination(net_.tableau, i, net_.stages_before(i), h, y, stages, scratch.state),
                       stages[i], scratch.state, {&sum, is_last ? weight : T(0), next});
        if (!is_last)
          sum.add(weight, stages.value(i));
        else if (next && weight == T(0))
          sum.write();
      }
    }
  }

  /// Out of line, so that explicit methods have the registers for themselves.
  [[gnu::noinline]] void solve_stages(Index j, const StageGroup& group, const Plane<const T>& y,
                                      const Stages<T>& stages, const StageScratch<T>& scratch,
                                      const ThreadSlice<T>& thread) const {
    with_stage_equations<T>(net_, u_, j, group, [&](const auto& equations) {
      equations.solve(y.slice(thread), stages.slice(thread.range()), scratch.product, scratch.equations,
                      scratch.stop_token);
    });
  }
};

}  // namespace ocdl
