#pragma once

#include <concepts>
#include <limits>

#include "ocdl/kernel/lane_system.hpp"
#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/workspace.hpp"
#include "ocdl/trajectory/stages.hpp"

namespace ocdl {

/// The stages of one layer that an implicit method has to solve for together,
///     k_i = f(y_i, u_i),   y_i = y + h sum_l a_il k_l,   i in the group,
/// by Newton's method in every lane, and the linear equations with the same matrix
///     M = I - h (a_il d_y f(y_i, u_i))_il
/// which the tangents solve, and the adjoints with M^T. Lanes never wait for their neighbours: one that has
/// converged keeps its numbers.
///
/// Where they are not 0, `Dim` and `Group` are the dimension and the size of the group: of planar data,
/// which is common, the equations of a pack stay in registers. `with_stage_equations` chooses.
template <class T, int Dim = 0, int Group = 0>
class StageEquations {
 public:
  StageEquations(const Network& network, const Controls<const T>& controls, Index layer,
                 const StageGroup& group)
      : net_(network), field_(network.field<T>()), u_(controls), j_(layer), group_(group) {}

  /// What a thread needs beside the product's scratch memory; nothing where the method is explicit.
  static Index scratch_size(const Network& net) {
    Carver<T> counter(nullptr);
    if (net.largest_group) carve(net, counter);
    return counter.used();
  }

  /// The k_i at the state y, with the field's details; NaN in the lanes where Newton's method does not
  /// converge.
  [[gnu::noinline]] void solve(const T* y, const Stages<T>& stages, T* product, T* memory, Index tiles,
                               const Pulse& pulse) const {
    for_chunks(tiles, [&](Index offset, Index count) {
      solve_chunk(y + offset, stages.from(offset), product, carve(net_, Carver<T>(memory)), count, pulse);
    });
  }

  /// x <- M^-1 x, or M^-T x, for a plane x + i stride of each stage i of the group.
  [[gnu::noinline]] void solve_linear(bool transposed, const Stages<T>& stages, T* x, Index stride, T* memory,
                                      Index tiles, const Pulse& pulse) const {
    for_chunks(tiles, [&](Index offset, Index count) {
      const Scratch scratch = carve(net_, Carver<T>(memory));
      write_slopes(stages.from(offset), scratch, count);
      for_packs(count, [&](Index at, Index) {
        if (!goes_on(pulse)) return;
        assemble(transposed, scratch, at);
        for_entries([&](Index i, Index r, Index n) {
          const Index here = offset + at + r * tile_width<T>;
          const Pack<T> k = load(stages.value(group_.first + i) + here);
          // k - k is 0, or NaN where the stage has not been solved for: then it has no derivative either.
          store<T>(scratch.x + n, load(x + (group_.first + i) * stride + here) + (k - k));
        });
        solve_lanes(size(), scratch.matrix, scratch.x);
        for_entries([&](Index i, Index r, Index n) {
          store<T>(x + (group_.first + i) * stride + offset + at + r * tile_width<T>, load(scratch.x + n));
        });
      });
    });
  }

 private:
  /// Memory of one chunk of tiles: planes of the group's stages, and the system of one pack of samples.
  struct Scratch {
    T *states, *values, *slopes;
    T* open;  ///< a pack for each pack of samples: 1 in the lanes that have not converged, else 0
    T *matrix, *jacobian, *x;
    Index plane;

    T* state(Index i) const { return states + i * plane; }
    T* value(Index i) const { return values + i * plane; }
    T* slope(Index i) const { return slopes + i * plane; }
  };

  using Real = std::conditional_t<std::floating_point<T>, T, double>;

  /// Newton's method ends after a step that is this small beside the states, the roundoff to the power 2/3:
  /// as each step squares the error, the next one would be nothing but roundoff.
  static constexpr Real tolerance = std::same_as<Real, float> ? Real(2.5e-5) : Real(4e-11);
  static constexpr int most_steps = 40;

  const Network& net_;
  Field<T> field_;
  Controls<const T> u_;
  Index j_;
  StageGroup group_;

  Index dim() const { return Dim ? Dim : net_.dim; }
  Index count() const { return Group ? Group : group_.size(); }
  Index size() const { return dim() * count(); }

  /// Tiles that are solved for at the same time: enough for the products to run well, few enough for one slow
  /// lane not to hold up many.
  static Index chunk_tiles(const Network& net) { return std::max<Index>(4, 256 / (net.dim * tile_width<T>)); }

  static Scratch carve(const Network& net, Carver<T>&& carver) { return carve(net, carver); }
  static Scratch carve(const Network& net, Carver<T>& carver) {
    const Index tiles = chunk_tiles(net), stages = net.largest_group, size = stages * net.dim;
    Scratch s;
    s.plane = tiles * net.dim * tile_width<T>;
    s.states = carver.take(stages * s.plane);
    s.values = carver.take(stages * s.plane);
    s.slopes = carver.take(stages * s.plane);
    s.open = carver.take(tiles * tile_width<T>);
    s.matrix = carver.take(size * size * lanes<T>);
    s.jacobian = carver.take(net.dim * net.dim * lanes<T>);
    s.x = carver.take(size * lanes<T>);
    return s;
  }

  /// Asked before every elimination, which takes long where there are many unknowns. What has been stopped
  /// leaves numbers that nobody uses.
  bool goes_on(const Pulse& pulse) const {
    if constexpr (Dim != 0) return true;
    const auto unknowns = static_cast<double>(size());
    return pulse.goes_on(unknowns * unknowns * unknowns / 6);
  }

  T h() const { return u_.h(j_); }
  double a(Index i, Index l) const { return net_.tableau.A()(group_.first + i, group_.first + l); }

  /// f(offset, tiles) for parts of a run of tiles.
  template <class F>
  void for_chunks(Index tiles, const F& f) const {
    const Index most = chunk_tiles(net_);
    for (Index t = 0; t < tiles; t += most) f(field_.run(t), std::min(most, tiles - t));
  }

  /// f(at, number) for the packs of a chunk, whose first numbers stand at `at`.
  template <class F>
  void for_packs(Index tiles, const F& f) const {
    Index number = 0;
    for (Index t = 0; t < tiles; ++t)
      for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) f(field_.run(t) + lane, number++);
  }

  /// f(i, r, n) for the unknowns of a pack: component r of stage i of the group stands at n.
  template <class F>
  void for_entries(const F& f) const {
    for (Index i = 0, n = 0; i < count(); ++i)
      for (Index r = 0; r < dim(); ++r, n += lanes<T>) f(i, r, n);
  }

  void solve_chunk(const T* y, const Stages<T>& stages, T* product, const Scratch& scratch, Index tiles,
                   const Pulse& pulse) const {
    for (Index i = group_.first; i < group_.last; ++i) std::fill_n(stages.value(i), field_.run(tiles), T(0));
    std::fill_n(scratch.open, tiles * tile_width<T>, T(1));
    bool is_open = true;
    for (int step = 0; step < most_steps && is_open; ++step)
      is_open = newton_step(y, stages, product, scratch, tiles, false, pulse);
    // The values have converged. Whatever a number carries along is exact one step later.
    if constexpr (!std::floating_point<T>) newton_step(y, stages, product, scratch, tiles, true, pulse);
    evaluate_states(y, stages, scratch, tiles);
    for (Index i = 0; i < count(); ++i) evaluate(i, stages.planes(group_.first + i), scratch, product, tiles);
    give_up_open_lanes(stages, scratch, tiles);
  }

  /// k <- k + M^-1 (f - k) in the lanes that have not converged, or in all. Whether any has not converged
  /// yet.
  bool newton_step(const T* y, const Stages<T>& stages, T* product, const Scratch& scratch, Index tiles,
                   bool all_lanes, const Pulse& pulse) const {
    evaluate_states(y, stages, scratch, tiles);
    for (Index i = 0; i < count(); ++i) {
      StagePlanes<T> at = stages.planes(group_.first + i);
      at.k = scratch.value(i);
      evaluate(i, at, scratch, product, tiles);
      field_.write_slope(at, scratch.slope(i), tiles);
    }
    bool is_open = false;
    for_packs(tiles, [&](Index at, Index number) {
      T* open = scratch.open + number * lanes<T>;
      const auto moving = value_size<T>(all_lanes ? broadcast<T>(T(1)) : load(open)) > Sizes<T>{};
      if (!any_lane(moving) || !goes_on(pulse)) return;
      assemble(false, scratch, at);
      for_entries([&](Index i, Index r, Index n) {
        const Index here = at + r * tile_width<T>;
        store<T>(scratch.x + n, load(scratch.value(i) + here) - load(stages.value(group_.first + i) + here));
      });
      solve_lanes(size(), scratch.matrix, scratch.x);
      const auto [moved, scale] = measure_step(y, scratch, at);
      const auto is_finite = moved - moved == Sizes<T>{};
      for_entries([&](Index i, Index r, Index n) {
        T* k = stages.value(group_.first + i) + at + r * tile_width<T>;
        // Numbers that are not finite do not become finite again, however long the neighbours take.
        const Pack<T> next = select(is_finite, load(k) + load(scratch.x + n), not_a_number());
        store<T>(k, select(moving, next, load(k)));
      });
      const auto has_converged = moved <= scale * tolerance;
      store<T>(open, select(has_converged, Pack<T>{}, load(open)));
      is_open |= any_lane(value_size<T>(select(is_finite, load(open), Pack<T>{})) > Sizes<T>{});
    });
    return is_open;
  }

  static Pack<T> not_a_number() { return broadcast<T>(T(std::numeric_limits<Real>::quiet_NaN())); }

  /// How far the step x moves the stages' states, and how large they are.
  std::pair<Sizes<T>, Sizes<T>> measure_step(const T* y, const Scratch& scratch, Index at) const {
    Sizes<T> moved{}, scale{};
    for_entries([&](Index i, Index r, Index) {
      Pack<T> change{};
      for (Index l = 0; l < count(); ++l)
        change += broadcast<T>(h() * T(a(i, l))) * load(scratch.x + (l * dim() + r) * lanes<T>);
      const Index here = at + r * tile_width<T>;
      moved += value_size<T>(change);
      scale += value_size<T>(load(scratch.state(i) + here)) + value_size<T>(load(y + here));
    });
    return {moved, scale};
  }

  void evaluate_states(const T* y, const Stages<T>& stages, const Scratch& scratch, Index tiles) const {
    for (Index i = 0; i < count(); ++i) {
      Combination<T> state(y, scratch.state(i), field_.run(tiles));
      for (Index l = 0; l < group_.last; ++l)
        state.add(h() * T(net_.tableau.A()(group_.first + i, l)), stages.value(l));
      state.write();
    }
  }

  void evaluate(Index i, const StagePlanes<T>& at, const Scratch& scratch, T* product, Index tiles) const {
    const Index stage = group_.first + i;
    field_.evaluate(u_.at(j_, stage), scratch.state(i), at, {}, tiles, product);
  }

  void write_slopes(const Stages<T>& stages, const Scratch& scratch, Index tiles) const {
    for (Index i = 0; i < count(); ++i)
      field_.write_slope(stages.planes(group_.first + i), scratch.slope(i), tiles);
  }

  /// M or its transpose for the pack of samples at `at`.
  void assemble(bool transposed, const Scratch& scratch, Index at) const {
    for (Index i = 0; i < count(); ++i) {
      field_.jacobian(u_.at(j_, group_.first + i), scratch.slope(i) + at, scratch.jacobian);
      for (Index l = 0; l < count(); ++l) {
        const Pack<T> factor = broadcast<T>(-h() * T(a(i, l)));
        for (Index r = 0; r < dim(); ++r)
          for (Index c = 0; c < dim(); ++c) {
            const Index row = i * dim() + r, column = l * dim() + c;
            const Index entry = transposed ? column * size() + row : row * size() + column;
            Pack<T> value = factor * load(scratch.jacobian + (r * dim() + c) * lanes<T>);
            if (row == column) value += broadcast<T>(T(1));
            store<T>(scratch.matrix + entry * lanes<T>, value);
          }
      }
    }
  }

  void give_up_open_lanes(const Stages<T>& stages, const Scratch& scratch, Index tiles) const {
    for_packs(tiles, [&](Index at, Index number) {
      const auto failed = value_size<T>(load(scratch.open + number * lanes<T>)) > Sizes<T>{};
      if (!any_lane(failed)) return;
      for_entries([&](Index i, Index r, Index) {
        T* k = stages.value(group_.first + i) + at + r * tile_width<T>;
        store<T>(k, select(failed, not_a_number(), load(k)));
      });
    });
  }
};

/// f(equations) for the equations of a group of stages.
template <class T, class F>
void with_stage_equations(const Network& net, const Controls<const T>& u, Index layer,
                          const StageGroup& group, const F& f) {
  if (net.dim == 2 && group.size() == 1)
    f(StageEquations<T, 2, 1>(net, u, layer, group));
  else if (net.dim == 2 && group.size() == 2)
    f(StageEquations<T, 2, 2>(net, u, layer, group));
  else
    f(StageEquations<T>(net, u, layer, group));
}

}  // namespace ocdl
