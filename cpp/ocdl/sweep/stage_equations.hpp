#pragma once

#include "ocdl/sweep/stage_backtracking.hpp"
#include "ocdl/sweep/stage_path.hpp"

namespace ocdl {

/// The stages of one layer that an implicit method has to solve for together, see StageSystem, and the linear
/// equations with the same matrix M, which the tangents solve, and the adjoints with M^T. Lanes never wait
/// for their neighbours: one that has converged keeps its numbers.
///
/// There may be several solutions. The one that shorter steps lead to has det M > 0, and Newton's method from
/// f(y) usually finds it in a few steps. The lanes in which it does not go on with StageBacktracking, then
/// with StagePath, and as last resort with plain steps to any solution.
///
/// Where they are not 0, `Dim` and `Group` are the dimension and the size of the group: of planar data,
/// which is common, the equations of a pack stay in registers. `with_stage_equations` chooses.
template <class T, int Dim = 0, int Group = 0>
class StageEquations {
 public:
  StageEquations(const Network& network, const Controls<const T>& controls, Index layer,
                 const StageGroup& group)
      : net_(network), system_(network, controls, layer, group) {}

  /// What a thread needs beside the product's scratch memory; nothing where the method is explicit.
  static Index scratch_size(const Network& net) {
    Arena<T> counter(nullptr);
    if (net.largest_group) System::allocate(net, counter);
    return counter.used();
  }

  /// The k_i at the state y, with what the field keeps of them; NaN in the lanes in which no solution is
  /// found.
  [[gnu::noinline]] void solve(const Plane<const T>& y, const Stages<T>& stages, T* product, T* memory,
                               const StopToken& stop_token) const {
    const Scratch scratch = allocate(memory);
    system_.for_chunks(y.tiles(), [&](const Range& chunk) {
      solve_chunk(y.slice(chunk), stages.slice(chunk), product, scratch.slice({0, chunk.size()}), stop_token);
    });
  }

  /// x <- M^-1 x, or M^-T x, for the plane x[i] of each stage i of the group.
  [[gnu::noinline]] void solve_linear(bool transposed, const Stages<T>& all_stages, const Planes<T>& all_x,
                                      T* memory, const StopToken& stop_token) const {
    const Scratch all_scratch = allocate(memory);
    const Index first = system_.group().first;
    system_.for_chunks(all_stages.value(0).tiles(), [&](const Range& chunk) {
      const Scratch scratch = all_scratch.slice({0, chunk.size()});
      const Stages<T> stages = all_stages.slice(chunk);
      const Planes<T> x = all_x.slice(chunk);
      for (Index i = 0; i < system_.count(); ++i)
        system_.field().write_slope(stages[first + i], scratch.slopes[i]);
      system_.for_packs(chunk.size(), [&](PackPosition at, Index) {
        if (!system_.should_continue(stop_token)) return;
        system_.assemble(transposed, system_.h(), scratch, at, system_.size());
        system_.for_entries([&](Index i, Index r, Index n) {
          const Pack<T> k = load(system_.stage_value(stages, i, r, at));
          // k - k is 0, or NaN where the stage has not been solved for: then it has no derivative either.
          store<T>(scratch.x + n, load(system_.entry(x[first + i], r, at)) + (k - k));
        });
        system_.solve(scratch);
        system_.for_entries([&](Index i, Index r, Index n) {
          store<T>(system_.entry(x[first + i], r, at), load(scratch.x + n));
        });
      });
    });
  }

 private:
  using System = StageSystem<T, Dim, Group>;
  using Scratch = StageSystemScratch<T>;
  using Real = typename System::Real;

  /// What `unsolved` says of a lane: Newton's method is at work, or has failed; else it has converged.
  static constexpr Real iterating = 1, failed = 2;
  /// Steps of Newton's method: from f(y), where it takes fewer if it converges at all, and as last resort.
  static constexpr int quick_steps = 8, max_steps = 40;

  /// What a step of Newton's method is for: the solution with det M > 0, any solution, or the derivatives of
  /// one that has been found.
  enum class Purpose { main_solution, any_solution, derivatives };

  const Network& net_;
  System system_;

  Scratch allocate(T* memory) const {
    Arena<T> arena(memory);
    return System::allocate(net_, arena);
  }

  void solve_chunk(const Plane<const T>& y, const Stages<T>& stages, T* product, const Scratch& scratch,
                   const StopToken& stop_token) const {
    std::fill_n(scratch.unsolved, y.tiles() * tile_width<T>, T(iterating));
    system_.guess(y, stages, scratch, product);
    iterate<Purpose::main_solution>(quick_steps, y, stages, product, scratch, stop_token);
    if (any_unsolved(scratch, 0, y.tiles())) solve_rest(y, stages, product, scratch, stop_token);
    // The values have converged. Whatever a number carries along is exact one step later.
    if constexpr (!std::floating_point<T>)
      iterate<Purpose::derivatives>(1, y, stages, product, scratch, stop_token);
    system_.write_states(y, stages, system_.group().last, scratch);
    for (Index i = 0; i < system_.count(); ++i)
      system_.evaluate(i, stages[system_.group().first + i], scratch, product);
    replace_unsolved(T(std::numeric_limits<Real>::quiet_NaN()), stages, scratch);
  }

  /// The lanes in which the first steps have not led to a solution.
  [[gnu::noinline]] void solve_rest(const Plane<const T>& y, const Stages<T>& stages, T* product,
                                    const Scratch& scratch, const StopToken& stop_token) const {
    solve_tiles<StageBacktracking<T, Dim, Group>>(y, stages, product, scratch, stop_token);
    solve_tiles<StagePath<T, Dim, Group>>(y, stages, product, scratch, stop_token);
    if (!replace_unsolved(T(0), stages, scratch)) return;
    iterate<Purpose::any_solution>(max_steps, y, stages, product, scratch, stop_token);
  }

  /// k <- k + M^-1 (f - k), so many times, in the lanes that are iterating; for the derivatives in all.
  template <Purpose purpose>
  void iterate(int steps, const Plane<const T>& y, const Stages<T>& stages, T* product,
               const Scratch& scratch, const StopToken& stop_token) const {
    for (bool is_iterating = true; is_iterating && steps > 0; --steps)
      is_iterating = newton_step<purpose>(y, stages, product, scratch, stop_token);
  }

  /// One such step. Returns whether any lane is still iterating.
  template <Purpose purpose>
  bool newton_step(const Plane<const T>& y, const Stages<T>& stages, T* product, const Scratch& scratch,
                   const StopToken& stop_token) const {
    system_.write_states(y, stages, system_.group().last, scratch);
    system_.evaluate_beside(stages, scratch, product);
    bool is_iterating = false;
    system_.for_packs(y.tiles(), [&](PackPosition at, Index number) {
      T* unsolved = scratch.unsolved + number * lanes<T>;
      const LaneMask<T> moving = value_size<T>(load(unsolved)) == Values<T>{} + iterating;
      constexpr bool moves_all = purpose == Purpose::derivatives;
      if (!(moves_all || any_lane(moving)) || !system_.should_continue(stop_token)) return;
      system_.assemble(false, system_.h(), scratch, at, system_.size());
      system_.write_residual(stages, scratch, at);
      const LaneMask<T> is_determinant_negative = system_.solve(scratch);
      system_.for_entries([&](Index i, Index r, Index n) {
        T* k = system_.stage_value(stages, i, r, at);
        const Pack<T> next = load(k) + load(scratch.x + n);
        store<T>(k, moves_all ? next : select(moving, next, load(k)));
      });
      if constexpr (moves_all) return;
      const auto [moved, scale] = system_.measure_step(y, system_.h(), scratch, at);
      const Values<T> smallest = scale * system_.tolerance;
      LaneMask<T> is_small = moved <= smallest,
                  is_unfinished = (moved > smallest) & (moved - moved == Values<T>{});
      if (purpose == Purpose::main_solution) {
        is_small = exclude(is_small, is_determinant_negative);
        is_unfinished = exclude(is_unfinished, is_determinant_negative);
      }
      const Pack<T> result = select(is_unfinished, broadcast<T>(T(iterating)),
                                    select(is_small, Pack<T>{}, broadcast<T>(T(failed))));
      store<T>(unsolved, select(moving, result, load(unsolved)));
      is_iterating |= any_lane<LaneMask<T>>(moving & is_unfinished);
    });
    return is_iterating;
  }

  /// Whether a lane of the tiles first .. last - 1 is unsolved.
  bool any_unsolved(const Scratch& scratch, Index first, Index last) const {
    bool any = false;
    for (Index n = first * tile_width<T>; n < last * tile_width<T>; n += lanes<T>)
      any |= any_lane(value_size<T>(load(scratch.unsolved + n)) > Values<T>{});
    return any;
  }

  template <class Method>
  void solve_tiles(const Plane<const T>& y, const Stages<T>& stages, T* product, const Scratch& scratch,
                   const StopToken& stop_token) const {
    for (Index t = 0; t < y.tiles(); ++t) {
      if (!any_unsolved(scratch, t, t + 1)) continue;
      const Range tile{t, t + 1};
      solve_tile<Method>(system_, {y.slice(tile), stages.slice(tile), scratch.slice(tile)}, product,
                         scratch.unsolved + t * tile_width<T>, stop_token);
    }
  }

  /// Sets the k_i of unsolved lanes to a number, and these lanes to iterating. Whether there are any.
  bool replace_unsolved(T value, const Stages<T>& stages, const Scratch& scratch) const {
    bool any = false;
    system_.for_packs(stages.value(0).tiles(), [&](PackPosition at, Index number) {
      T* unsolved = scratch.unsolved + number * lanes<T>;
      const LaneMask<T> replaced = value_size<T>(load(unsolved)) > Values<T>{};
      if (!any_lane(replaced)) return;
      any = true;
      store<T>(unsolved, select(replaced, broadcast<T>(T(iterating)), load(unsolved)));
      system_.for_entries([&](Index i, Index r, Index) {
        T* k = system_.stage_value(stages, i, r, at);
        store<T>(k, select(replaced, broadcast<T>(value), load(k)));
      });
    });
    return any;
  }
};

/// f(equations) for the equations of a group of stages.
template <class T, class F>
void with_stage_equations(const Network& net, const Controls<const T>& u, Index layer,
                          const StageGroup& group, const F& f) {
  const bool is_planar = net.rows() == 2 && net.inputs == 0;
  if (is_planar && group.size() == 1)
    f(StageEquations<T, 2, 1>(net, u, layer, group));
  else if (is_planar && group.size() == 2)
    f(StageEquations<T, 2, 2>(net, u, layer, group));
  else
    f(StageEquations<T>(net, u, layer, group));
}

}  // namespace ocdl
