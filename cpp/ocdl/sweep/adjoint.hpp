#pragma once

#include "ocdl/sweep/blocks.hpp"
#include "ocdl/sweep/stage_equations.hpp"

namespace ocdl {

/// The planes that a backward step works in, and what a team shares for the gradient. Memory is somebody
/// else's.
template <class T>
struct AdjointScratch {
  T* cotangent;          ///< g_i, a plane, or one for each stage of an implicit method
  T* delta;              ///< what the field's gradient takes of g_i, a plane
  T* rotated;            ///< the same of a field that rotates, a plane
  T* stage;              ///< y_i where it has to be rebuilt, a plane
  T* eta;                ///< eta_i, a plane each
  T* panels;             ///< transposed states, see panel::transposed_size
  T* tile_dots;          ///< <g, k> per tile, a pack each
  T* product;            ///< this thread's own, see panel::scratch_size
  T* equations;          ///< this thread's own, see StageEquations::scratch_size
  StopToken stop_token;  ///< whom the solution of equations asks whether to go on
};

/// The backward sweep. With lam = p[j+1], for i = s, ..., 1:
///     g_i = b_i lam + sum_l a_li eta_l,   eta_i = h_j (d_y f(y_i, u))^T g_i,   p[j] = lam + sum_i eta_i,
///     dJ/du[j] = h_j sum_i (d_u f(y_i, u))^T g_i,   dJ/dh_j = sum_i <g_i, k_i>.
/// In an implicit group the g_i solve M^T g = b lam + sum_l a_li eta_l, with the l behind the group.
template <class T>
class Adjoint {
 public:
  /// `gradient`: vector of controls or nullptr; `accumulate`: add to it, or overwrite it.
  Adjoint(const Network& network, const T* controls, T* gradient, bool accumulate)
      : net_(network), u_(network.split(controls)), du_(network.split(gradient)), accumulate_(accumulate) {}

  /// p[j+1] -> p[j] in place, by the whole team. `y`, `p` and the stages belong to the block; each thread
  /// steps its share. Returns whether what this thread wrote to the gradient's parts that multiply states is
  /// known to be finite.
  bool step(Index j, const T* y, const Trajectory<T>& trajectory, T* p, const AdjointScratch<T>& scratch,
            const Share<T>& share) const {
    if (net_.is_narrow<T>()) {
      narrow_step(j, y, trajectory.stages(j, 0), p, scratch, share.block_tiles);
      return false;
    }
    const Field<T> field = net_.field<T>();
    const Index offset = share.offset(net_.dim), size = field.run(share.tiles),
                plane = field.run(share.block_tiles);
    const Stages<T> stages = trajectory.stages(j, offset);
    const T h = net_.residual ? u_.h(j) : T(1);
    const bool want_h = du_ && net_.residual && net_.learns_steps;
    if (want_h) std::fill_n(scratch.tile_dots + share.first * lanes<T>, share.tiles * lanes<T>, T(0));

    bool accumulate = accumulate_, finite = true;
    for (auto group = net_.groups.rbegin(); group != net_.groups.rend(); ++group) {
      if (!net_.is_live(group->first)) {
        if (du_ && net_.stage_controls && share.team.rank() == 0 && !accumulate_)
          for (Index i = group->first; i < group->last; ++i) du_.clear(j, i);
        continue;
      }
      if (group->is_implicit) solve_cotangents(j, *group, p, stages, scratch, share);
      for (Index i = group->last - 1; i >= group->first; --i) {
        const StagePlanes<T> at = stages.planes(i);
        T* cotangent = scratch.cotangent + offset;
        Combination<T> g(group->is_implicit ? cotangent + i * plane : nullptr, cotangent, size);
        if (!group->is_implicit) add_cotangent(*group, i, p + offset, scratch.eta + offset, plane, g);
        if (want_h) add_tile_dots(g.result(), at.k, share, scratch.tile_dots);
        field.pull_back(u_.at(j, i), at, h, g, scratch.delta + offset, scratch.rotated + offset,
                        scratch.eta + i * plane + offset, share, scratch.product);
        if (du_) {
          const Index looked_at = !net_.residual ? 0 : group->is_implicit ? group->last : i;
          Combination<T> state = stage_combination(net_.tableau, i, looked_at, h, y + offset, stages,
                                                   scratch.stage + offset, size);
          finite &= field.control_gradient(scratch.delta, scratch.rotated, state, at.details - offset, share,
                                           accumulate, du_.at(j, i), scratch.panels);
          accumulate = accumulate_ || !net_.stage_controls;
        }
      }
    }
    Combination<T> costate(net_.residual ? p + offset : nullptr, p + offset, size);
    for (Index i = net_.stages - 1; i >= 0; --i)
      if (net_.is_live(i)) costate.add(T(1), scratch.eta + i * plane + offset);
    costate.write();
    if (du_ && net_.residual) write_step_gradient(j, want_h, scratch, share);
    return finite;
  }

 private:
  const Network& net_;
  Controls<const T> u_;
  Controls<T> du_;
  bool accumulate_;

  /// The same in fused kernels, by one thread.
  void narrow_step(Index j, const T* y, const Stages<T>& stages, T* p, const AdjointScratch<T>& scratch,
                   Index tiles) const {
    if constexpr (std::floating_point<T>) {
      const NarrowDense<T> field{net_.dim, net_.activation};
      const Index size = net_.field<T>().run(tiles), last = net_.last_live, first = net_.first_live;
      const T h = net_.residual ? u_.h(j) : T(1);
      // The weight of an only stage multiplies sums instead of samples.
      const T factor = first == last ? T(net_.weight(first)) : T(1);
      typename NarrowDense<T>::Sums sums(net_.dim);
      const T* costate = net_.residual ? p : nullptr;
      for (Index i = last; i >= first; --i) {
        if (!net_.is_live(i)) continue;
        const StagePlanes<T> at = stages.planes(i);
        Combination<T> g(first == last ? p : nullptr, nullptr, size);
        bool is_looked_at = false;  // by the g of an earlier stage
        if (first < last) {
          g.add(T(net_.weight(i)), p);
          for (Index l = i + 1; l <= last; ++l)
            if (net_.is_live(l)) g.add(T(net_.tableau.A()(l, i)), scratch.eta + l * stages.stride);
          for (Index l = first; l < i; ++l) is_looked_at |= net_.is_live(l) && net_.tableau.A()(i, l) != 0;
        }
        Combination<T> state =
            stage_combination(net_.tableau, i, net_.residual ? i : 0, h, y, stages, scratch.stage, size);
        T* to = i == first ? p : scratch.cotangent;
        field.pull_back(u_.at(j, i), h * factor, state, at.k, at.details, g, costate, to,
                        is_looked_at ? scratch.eta + i * stages.stride : nullptr, net_.learns_steps, sums,
                        scratch.delta, tiles);
        costate = to;
        if (!du_) continue;
        if (net_.stage_controls || i == first) write_sums(h * factor, sums, du_.at(j, i));
        if (net_.stage_controls) sums.clear_gradient();
      }
      if (!du_) return;
      for (Index i = 0; net_.stage_controls && !accumulate_ && i < net_.stages; ++i)
        if (!net_.is_live(i)) du_.clear(j, i);
      if (net_.residual) put(du_.h(j), factor, net_.learns_steps ? sums.dot_total() : T(0));
    }
  }

  void put(T& to, T scale, T sum) const { to = accumulate_ ? fma(scale, sum, to) : scale * sum; }

  /// The gradient by the controls of a stage, or of a layer.
  void write_sums(T scale, typename NarrowDense<T>::Sums& sums, StageControls<T> du) const {
    sums.add_lanes();
    for (Index n = 0; n < net_.dim * net_.dim; ++n) put(du.K.data()[n], scale, sums.outer_total()[n]);
    for (Index i = 0; i < net_.dim; ++i) put(du.b.data()[i], scale, sums.delta_total()[i]);
  }

  /// The g_i of an implicit group, in their planes. Out of line, as in the integrator.
  [[gnu::noinline]] void solve_cotangents(Index j, const StageGroup& group, const T* p,
                                          const Stages<T>& stages, const AdjointScratch<T>& scratch,
                                          const Share<T>& share) const {
    const Field<T> field = net_.field<T>();
    const Index offset = share.offset(net_.dim), plane = field.run(share.block_tiles);
    T* g = scratch.cotangent + offset;
    for (Index i = group.first; i < group.last; ++i) {
      Combination<T> right_side(nullptr, g + i * plane, field.run(share.tiles));
      add_cotangent(group, i, p + offset, scratch.eta + offset, plane, right_side);
      right_side.write();
    }
    with_stage_equations<T>(net_, u_, j, group, [&](const auto& equations) {
      equations.solve_linear(true, stages, g, plane, scratch.equations, share.tiles, scratch.stop_token);
    });
  }

  /// Adds b_i lam + sum_l a_li eta_l over the stages behind the group. A feed-forward layer passes lam on.
  void add_cotangent(const StageGroup& group, Index i, const T* lam, const T* eta, Index plane,
                     Combination<T>& g) const {
    g.add(net_.residual ? T(net_.tableau.b()(i)) : T(1), lam);
    for (Index l = group.last; l < net_.stages; ++l)
      if (net_.is_live(l)) g.add(T(net_.tableau.A()(l, i)), eta + l * plane);
  }

  /// <g, k> tile by tile, so that the sum over a block does not depend on how its tiles are shared.
  void add_tile_dots(const T* g, const T* k, const Share<T>& share, T* tile_dots) const {
    const Index tile = net_.dim * tile_width<T>;
    for (Index t = 0; t < share.tiles; ++t) {
      T* dots = tile_dots + (share.first + t) * lanes<T>;
      store<T>(dots, load(dots) + dot_lanes(g + t * tile, k + t * tile, tile));
    }
  }

  void write_step_gradient(Index j, bool want_h, const AdjointScratch<T>& scratch,
                           const Share<T>& share) const {
    if (want_h) share.team.barrier();
    if (share.team.rank() == 0) {
      Pack<T> sum{};
      if (want_h)
        for (Index t = 0; t < share.block_tiles; ++t) sum += load(scratch.tile_dots + t * lanes<T>);
      du_.h(j) = (accumulate_ ? du_.h(j) : T(0)) + sum_lanes<T>(sum);
    }
    if (want_h) share.team.barrier();
  }
};

}  // namespace ocdl
