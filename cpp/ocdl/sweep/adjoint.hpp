#pragma once

#include "ocdl/sweep/cost.hpp"
#include "ocdl/sweep/stage_equations.hpp"

namespace ocdl {

/// The planes of a block that a backward step works in, and what a team shares for the gradient. It does not
/// own its memory.
template <class T>
struct AdjointScratch {
  Planes<T> stage_cotangents;     ///< g_i: one, or one for each stage of an implicit method
  CotangentPlanes<T> cotangents;  ///< what the field's gradient takes of g_i
  Plane<T> state;                 ///< y_i where it has to be rebuilt
  Planes<T> eta;                  ///< eta_i, one for each stage
  T* fused_sums;                  ///< see Network::fused_sums_size, for each stage with controls of its own
  T* panels;                      ///< transposed states, see panel::transposed_size
  T* tile_dots;                   ///< <g, k> per tile, a pack each
  T* product;                     ///< this thread's own, see panel::scratch_size
  T* equations;                   ///< this thread's own, see StageEquations::scratch_size
  StopToken stop_token;           ///< checked while equations are solved
};

/// The backward sweep. With lam = p[j+1], for i = s, ..., 1:
///     g_i = b_i lam + sum_l a_li eta_l,   eta_i = h_j (d_y f(y_i, u))^T g_i,   p[j] = lam + sum_i eta_i,
///     dJ/du[j] = h_j sum_i (d_u f(y_i, u))^T g_i,   dJ/dh_j = sum_i <g_i, k_i>.
/// In an implicit group the g_i solve M^T g = b lam + sum_l a_li eta_l, with the l behind the group. What
/// costs add to g_i stands beside b_i lam.
template <class T>
class Adjoint {
 public:
  /// `gradient`: vector of controls or nullptr; `accumulate`: add to it, or overwrite it.
  Adjoint(const Network& network, const T* controls, T* gradient, bool accumulate)
      : net_(network),
        field_(network.field<T>()),
        u_(network.split(controls)),
        du_(network.split(gradient)),
        accumulate_(accumulate),
        fused_sums_size_(network.fused_sums_size<T>()) {}

  /// p[j+1] -> p[j] in place, by the whole team; all planes are those of the block. What this thread writes
  /// to the gradient's parts that multiply states is reported to the probe. The fused kernels take no costs
  /// of stages.
  void step(Index j, const Plane<const T>& y, const Stages<T>& stages, const Plane<T>& p,
            const BlockCosts<T>& costs, const AdjointScratch<T>& scratch, const ThreadSlice<T>& thread,
            FiniteProbe& probe) const {
    if (net_.is_narrow<T>() && !costs.concern_stages()) {
      narrow_step(j, y, stages, p, scratch);
      return probe.report(false);
    }
    const T h = net_.residual ? u_.h(j) : T(1);
    const bool wants_step = du_ && net_.residual && net_.learns_steps;
    if (wants_step) std::fill_n(scratch.tile_dots + thread.first * lanes<T>, thread.tiles * lanes<T>, T(0));

    if (fused_sums_size_ && net_.ends_set(j))
      std::fill_n(scratch.fused_sums, net_.control_stages * fused_sums_size_, T(0));

    const bool adds_to_set = adds_to_gradient(j);
    bool accumulate = adds_to_set;
    for (auto scheduled = net_.schedule.rbegin(); scheduled != net_.schedule.rend(); ++scheduled) {
      const StageGroup& group = scheduled->stages;
      if (group.is_implicit) solve_cotangents(j, group, p, stages, costs, scratch, thread);
      for (Index i = group.last - 1; i >= group.first; --i) {
        const Plane<T> cotangent = scratch.stage_cotangents[group.is_implicit ? i : 0].slice(thread);
        LinearCombination<T> g(group.is_implicit ? cotangent : Plane<T>(), cotangent);
        if (!group.is_implicit) add_cotangent(j, group, i, p, stages, costs, scratch.eta, thread, g);
        if (wants_step) add_tile_dots(g.result(), stages.value(i).slice(thread), thread, scratch.tile_dots);
        const Index before = group.is_implicit ? group.last : net_.stages_before(i);
        LinearCombination<T> state =
            stage_combination(net_.tableau, i, before, h, y.slice(thread), stages.slice(thread.range()),
                              scratch.state.slice(thread));
        if (fused_sums_size_) {
          field_.fused_vjp(u_.at(j, i), h, state, stages[i], g, scratch.eta[i], thread,
                           fused_sums(scratch, i));
          probe.report(false);
          continue;
        }
        field_.vjp(u_.at(j, i), stages[i], h, g, scratch.cotangents, scratch.eta[i], thread, scratch.product);
        if (!du_) continue;
        field_.control_gradient(scratch.cotangents, state, stages[i], thread, accumulate, du_.at(j, i),
                                scratch.panels, &probe);
        accumulate = adds_to_set || !net_.stage_controls;
      }
    }
    LinearCombination<T> costate(net_.residual ? p.slice(thread) : Plane<T>(), p.slice(thread));
    for (Index i = net_.stages - 1; i >= 0; --i)
      if (net_.is_live(i)) costate.add(T(1), scratch.eta[i].slice(thread));
    costate.write();
    if (du_ && thread.team.rank() == 0) clear_unused(j);
    for (Index i = 0; fused_sums_size_ && du_ && net_.begins_set(j) && i < net_.control_stages; ++i)
      if (!net_.stage_controls || net_.is_live(i))
        field_.add_lanes(fused_sums(scratch, i), accumulate_, du_.at(j, i));
    if (du_ && net_.residual) write_step_gradient(j, wants_step, scratch, thread);
  }

 private:
  const Network& net_;
  Field<T> field_;
  Controls<const T> u_;
  Controls<T> du_;
  bool accumulate_;
  Index fused_sums_size_;

  T* fused_sums(const AdjointScratch<T>& scratch, Index i) const {
    return scratch.fused_sums + (net_.stage_controls ? i * fused_sums_size_ : 0);
  }

  /// Whether the gradient by the field's controls of layer j has been written before: by an earlier block, or
  /// by a later layer with the same controls.
  bool adds_to_gradient(Index j) const { return accumulate_ || !net_.ends_set(j); }

  /// The same in fused kernels, by one thread.
  void narrow_step(Index j, const Plane<const T>& y, const Stages<T>& stages, const Plane<T>& p,
                   const AdjointScratch<T>& scratch) const {
    if constexpr (std::floating_point<T>) {
      const NarrowDense<T> field{net_.dim, net_.activation};
      const Index last = net_.last_live(), first = net_.first_live();
      const T h = net_.residual ? u_.h(j) : T(1);
      // The weight of an only stage multiplies sums instead of samples.
      const T factor = first == last ? T(net_.weight(first)) : T(1);
      typename NarrowDense<T>::Sums sums(net_.dim);
      Plane<const T> costate = net_.residual ? p : Plane<T>();
      for (Index i = last; i >= first; --i) {
        if (!net_.is_live(i)) continue;
        LinearCombination<T> g(first == last ? p : Plane<T>());
        bool is_needed = false;  // eta_i, by the g of an earlier stage
        if (first < last) {
          g.add(T(net_.weight(i)), p);
          for (Index l = i + 1; l <= last; ++l)
            if (net_.is_live(l)) g.add(T(net_.tableau.A()(l, i)), scratch.eta[l]);
          for (Index l = first; l < i; ++l) is_needed |= net_.is_live(l) && net_.tableau.A()(i, l) != 0;
        }
        LinearCombination<T> state =
            stage_combination(net_.tableau, i, net_.stages_before(i), h, y, stages, scratch.state);
        const Plane<T> to = i == first ? p : scratch.stage_cotangents[0];
        field.vjp(u_.at(j, i), h * factor, state, stages[i], g, costate, to,
                  is_needed ? scratch.eta[i] : Plane<T>(), net_.learns_steps, sums,
                  scratch.cotangents.hidden);
        costate = to;
        if (!du_) continue;
        if (net_.stage_controls || i == first) write_sums(j, i, h * factor, sums);
        if (net_.stage_controls) sums.clear_gradient();
      }
      if (!du_) return;
      clear_unused(j);
      if (net_.residual) put(accumulate_, du_.h(j), factor, net_.learns_steps ? sums.dot_total() : T(0));
    }
  }

  static void put(bool accumulate, T& to, T scale, T sum) {
    to = accumulate ? fma(scale, sum, to) : scale * sum;
  }

  /// The gradient by the controls of stage i, or of the layer.
  void write_sums(Index j, Index i, T scale, typename NarrowDense<T>::Sums& sums) const {
    const bool accumulate = adds_to_gradient(j);
    const auto [K, b] = std::pair(du_.at(j, i).parts[0], du_.at(j, i).parts[1]);
    sums.add_lanes();
    for (Index n = 0; n < net_.dim * net_.dim; ++n) put(accumulate, K[n], scale, sums.outer_total()[n]);
    for (Index n = 0; n < net_.dim; ++n) put(accumulate, b[n], scale, sums.delta_total()[n]);
  }

  /// The gradient by the controls of stages that the result does not depend on is 0.
  void clear_unused(Index j) const {
    if (!net_.stage_controls || adds_to_gradient(j)) return;
    for (Index i = 0; i < net_.stages; ++i)
      if (!net_.is_live(i)) du_.clear(j, i);
  }

  /// The g_i of an implicit group, in their planes. Out of line, as in the integrator.
  [[gnu::noinline]] void solve_cotangents(Index j, const StageGroup& group, const Plane<const T>& p,
                                          const Stages<T>& stages, const BlockCosts<T>& costs,
                                          const AdjointScratch<T>& scratch,
                                          const ThreadSlice<T>& thread) const {
    for (Index i = group.first; i < group.last; ++i) {
      LinearCombination<T> right_side({}, scratch.stage_cotangents[i].slice(thread));
      add_cotangent(j, group, i, p, stages, costs, scratch.eta, thread, right_side);
      right_side.write();
    }
    with_stage_equations<T>(net_, u_, j, group, [&](const auto& equations) {
      equations.solve_linear(true, stages.slice(thread.range()), scratch.stage_cotangents.slice(thread),
                             scratch.equations, scratch.stop_token);
    });
  }

  /// Adds b_i lam + sum_l a_li eta_l over the stages behind the group, and what costs add. A feed-forward
  /// layer passes lam on.
  void add_cotangent(Index j, const StageGroup& group, Index i, const Plane<const T>& lam,
                     const Stages<T>& stages, const BlockCosts<T>& costs, const Planes<T>& eta,
                     const ThreadSlice<T>& thread, LinearCombination<T>& g) const {
    g.add(T(net_.weight(i)), lam.slice(thread));
    for (Index l = group.last; l < net_.stages; ++l)
      if (net_.is_live(l)) g.add(T(net_.tableau.A()(l, i)), eta[l].slice(thread));
    if (costs.concern_stages()) costs.add_stage_cotangents(j, i, stages, g);
  }

  /// <g, k> tile by tile, so that the sum over a block does not depend on how its tiles are split.
  static void add_tile_dots(const Plane<const T>& g, const Plane<const T>& k, const ThreadSlice<T>& thread,
                            T* tile_dots) {
    const Index tile = g.tile_size();
    for (Index t = 0; t < thread.tiles; ++t) {
      T* dots = tile_dots + (thread.first + t) * lanes<T>;
      store<T>(dots, load(dots) + dot_lanes(g.data() + t * tile, k.data() + t * tile, tile));
    }
  }

  void write_step_gradient(Index j, bool wants_step, const AdjointScratch<T>& scratch,
                           const ThreadSlice<T>& thread) const {
    if (wants_step) thread.team.barrier();
    if (thread.team.rank() == 0) {
      Pack<T> sum{};
      if (wants_step)
        for (Index t = 0; t < thread.block_tiles; ++t) sum += load(scratch.tile_dots + t * lanes<T>);
      du_.h(j) = (accumulate_ ? du_.h(j) : T(0)) + sum_lanes<T>(sum);
    }
    if (wants_step) thread.team.barrier();
  }
};

}  // namespace ocdl
