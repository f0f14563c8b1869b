#pragma once

#include "ocdl/field/narrow_dense.hpp"
#include "ocdl/sweep/stage_equations.hpp"
#include "ocdl/trajectory/trajectory.hpp"

namespace ocdl {

/// What a thread evaluates stages in. Memory is somebody else's.
template <class T>
struct StageScratch {
  T* state;              ///< a plane
  T* product;            ///< this thread's own, see panel::scratch_size
  T* equations;          ///< this thread's own, see StageEquations::scratch_size
  StopToken stop_token;  ///< whom the solution of equations asks whether to go on
};

/// The forward sweep, a Runge-Kutta step per layer:
///     y_i = y[j] + h_j sum_l a_il k_l,   k_i = f(y_i, u_i[j]),   y[j+1] = y[j] + h_j sum_i b_i k_i.
template <class T>
class Integrator {
 public:
  Integrator(const Network& network, const T* controls) : net_(network), u_(network.split(controls)) {}

  /// The k_i of layer j at the state y, and y[j+1] unless `next` is null; `next` may be `y`. A team calls it
  /// together, each thread with its own tiles.
  void step(Index j, const T* y, const Stages<T>& stages, T* next, const StageScratch<T>& scratch,
            const Share<T>& share) const {
    if (net_.is_narrow<T>()) return narrow_step(j, y, stages, next, scratch, share.tiles);
    const Field<T> field = net_.field<T>();
    const Index size = field.run(share.tiles);
    const T h = net_.residual ? u_.h(j) : T(1);
    bool is_ready = false;  // what comes next, a stage's state or y[j+1]: the stage before has completed it
    for (auto group = net_.groups.begin(); group != net_.groups.end(); ++group) {
      const Index i = group->first;
      if (!net_.is_live(i)) continue;
      if (group->is_implicit) {
        solve_stages(j, *group, y, stages, scratch, share.tiles);
        is_ready = false;
        continue;
      }
      const Index looked_at = net_.residual ? i : 0;
      const T* state = is_ready ? scratch.state
                                : stage_state(net_.tableau, i, looked_at, h, y, stages, scratch.state, size);

      const auto following = std::find_if(group + 1, net_.groups.end(),
                                          [&](const StageGroup& other) { return net_.is_live(other.first); });
      const bool is_last = following == net_.groups.end();
      const auto coefficient = [&](Index l) {
        return h * T(is_last ? net_.weight(l) : net_.tableau.A()(following->first, l));
      };
      Combination<T> sum(net_.residual ? y : nullptr, nullptr, size);
      Completion<T> completion{&sum, T(0), is_last ? next : scratch.state};
      const bool is_wanted = is_last ? next != nullptr : !following->is_implicit;
      if (is_wanted && i < Combination<T>::capacity) {  // more terms could not wait for this one
        for (Index l = 0; l < i; ++l) sum.add(coefficient(l), stages.value(l));
        completion.weight = coefficient(i);
      }
      field.evaluate(u_.at(j, i), state, stages.planes(i), completion, share, scratch.product);
      is_ready = completion.weight != T(0);
    }
    if (next && !is_ready) advance(j, y, stages, next, share.tiles);
  }

  /// The k_i alone.
  void evaluate_stages(Index j, const T* y, const Stages<T>& stages, const StageScratch<T>& scratch,
                       const Share<T>& share) const {
    step(j, y, stages, nullptr, scratch, share);
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
                       at.details, scratch.state, {&sum, i == last ? weight : T(0), next}, tiles);
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
      equations.solve(y, stages, scratch.product, scratch.equations, tiles, scratch.stop_token);
    });
  }
};

}  // namespace ocdl
