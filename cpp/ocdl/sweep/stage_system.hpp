#pragma once

#include <concepts>
#include <limits>

#include "ocdl/kernel/lane_system.hpp"
#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/workspace.hpp"
#include "ocdl/trajectory/stages.hpp"

namespace ocdl {

/// Memory in which a thread solves for the stages of a group: planes of a chunk of tiles, planes of one tile,
/// and the system of one pack of samples, which may have one more unknown.
template <class T>
struct StageSystemScratch {
  T *states, *values, *slopes;
  T* unsolved;          ///< a pack for each pack of samples, see StageEquations
  T *base, *direction;  ///< of a tile, see StageBacktracking and StagePath
  T *matrix, *jacobian, *x;
  Index plane;

  T* state(Index i) const { return states + i * plane; }
  T* value(Index i) const { return values + i * plane; }
  T* slope(Index i) const { return slopes + i * plane; }
  /// The same with the planes of the chunk from another tile on.
  StageSystemScratch from(Index offset) const {
    StageSystemScratch other = *this;
    for (T** planes : {&other.states, &other.values, &other.slopes}) *planes += offset;
    return other;
  }
};

/// The equations of a group of stages of one layer,
///     k_i = f(y_i, u_i),   y_i = y + h sum_l a_il k_l,   i in the group,
/// and their matrix
///     M = I - h (a_il d_y f(y_i, u_i))_il.
/// Where a function takes h, a lane may have one of its own, which then counts for the l of the group alone.
///
/// Where they are not 0, `Dim` and `Group` are the dimension and the size of the group.
template <class T, int Dim, int Group>
class StageSystem {
 public:
  using Scratch = StageSystemScratch<T>;
  using Real = std::conditional_t<std::floating_point<T>, T, double>;

  /// A step of Newton's method that is this small beside the states is the last one, the roundoff to the
  /// power 2/3: as each step squares the error, the next one would be nothing but roundoff.
  static constexpr Real tolerance = std::same_as<Real, float> ? Real(2.5e-5) : Real(4e-11);

  StageSystem(const Network& network, const Controls<const T>& controls, Index layer, const StageGroup& group)
      : net_(network), field_(network.field<T>()), u_(controls), j_(layer), group_(group) {}

  static Scratch carve(const Network& net, Carver<T>& carver) {
    const Index tiles = chunk_tiles(net), stages = net.largest_group, size = stages * net.dim;
    Scratch s;
    s.plane = tiles * net.dim * tile_width<T>;
    for (T** planes : {&s.states, &s.values, &s.slopes}) *planes = carver.take(stages * s.plane);
    s.unsolved = carver.take(tiles * tile_width<T>);
    for (T** planes : {&s.base, &s.direction}) *planes = carver.take(size * tile_width<T>);
    s.matrix = carver.take((size + 1) * (size + 1) * lanes<T>);
    s.jacobian = carver.take(net.dim * net.dim * lanes<T>);
    s.x = carver.take((size + 1) * lanes<T>);
    return s;
  }

  const Field<T>& field() const { return field_; }
  const StageGroup& group() const { return group_; }
  Index dim() const { return Dim ? Dim : net_.dim; }
  Index count() const { return Group ? Group : group_.size(); }
  Index size() const { return dim() * count(); }
  Pack<T> h() const { return broadcast<T>(u_.h(j_)); }

  /// Asked before every elimination, which takes long where there are many unknowns. What has been stopped
  /// leaves numbers that nobody uses.
  bool should_continue(const StopToken& stop_token) const {
    if constexpr (Dim != 0) return true;
    const auto unknowns = static_cast<double>(size());
    return stop_token.should_continue(unknowns * unknowns * unknowns / 6);
  }

  /// f(offset, tiles) for parts of a run of tiles.
  template <class F>
  void for_chunks(Index tiles, const F& f) const {
    const Index most = chunk_tiles(net_);
    for (Index t = 0; t < tiles; t += most) f(field_.run(t), std::min(most, tiles - t));
  }

  /// f(at, number) for the packs of a chunk, whose first numbers stand at `at`.
  template <class F>
  [[gnu::always_inline]] void for_packs(Index tiles, const F& f) const {
    Index number = 0;
    for (Index t = 0; t < tiles; ++t)
      for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) f(field_.run(t) + lane, number++);
  }

  /// f(i, r, n) for the unknowns of a pack: component r of stage i of the group stands at n.
  template <class F>
  [[gnu::always_inline]] void for_entries(const F& f) const {
    for (Index i = 0, n = 0; i < count(); ++i)
      for (Index r = 0; r < dim(); ++r, n += lanes<T>) f(i, r, n);
  }

  /// Component r of stage i of the group, of the pack of samples at `at`: in the k_i, and in planes of a
  /// tile.
  T* stage_value(const Stages<T>& stages, Index i, Index r, Index at) const {
    return stages.value(group_.first + i) + r * tile_width<T> + at;
  }
  T* tile_entry(T* planes, Index i, Index r, Index at) const {
    return planes + (i * dim() + r) * tile_width<T> + at;
  }

  /// y_i, from the k_l with l < last.
  void write_states(const T* y, const Stages<T>& stages, Index last, const Scratch& scratch,
                    Index tiles) const {
    for (Index i = 0; i < count(); ++i) {
      Combination<T> state(y, scratch.state(i), field_.run(tiles));
      for (Index l = 0; l < last; ++l)
        state.add(u_.h(j_) * T(net_.tableau.A()(group_.first + i, l)), stages.value(l));
      state.write();
    }
  }

  /// h sum_l a_il k_l over the l of the group, component r, for the pack of samples whose k_l stand at k(l).
  template <class F>
  [[gnu::always_inline]] Pack<T> sum_group(const Pack<T>& h, Index i, const F& k) const {
    Pack<T> sum{};
    for (Index l = 0; l < count(); ++l) multiply_add(sum, h * broadcast<T>(T(a(i, l))), load(k(l)));
    return sum;
  }
  Pack<T> sum_group(const Pack<T>& h, Index i, const Stages<T>& stages, Index r, Index at) const {
    return sum_group(h, i, [&](Index l) { return stage_value(stages, l, r, at); });
  }

  /// k_i = f(y_i) with the field's details.
  void evaluate(Index i, const StagePlanes<T>& at, const Scratch& scratch, T* product, Index tiles) const {
    field_.evaluate(u_.at(j_, group_.first + i), scratch.state(i), at, {}, tiles, product);
  }

  /// f(y_i) and the slopes there, while the k_i stay as they are.
  void evaluate_beside(const Stages<T>& stages, const Scratch& scratch, T* product, Index tiles) const {
    for (Index i = 0; i < count(); ++i) {
      StagePlanes<T> at = stages.planes(group_.first + i);
      at.k = scratch.value(i);
      evaluate(i, at, scratch, product, tiles);
      field_.write_slope(at, scratch.slope(i), tiles);
    }
  }

  /// A first guess of the k_i: the value of the stage before the group, or f(y).
  void guess(const T* y, const Stages<T>& stages, const Scratch& scratch, T* product, Index tiles) const {
    const Index first = group_.first, before = first - 1;
    const bool is_shared = !net_.stage_controls, has_value_before = first > 0 && net_.is_live(before);
    for (Index i = 0; !(is_shared && has_value_before) && i < (is_shared ? 1 : count()); ++i) {
      const T* state = stage_state(net_.tableau, first + i, first, u_.h(j_), y, stages, scratch.state(i),
                                   field_.run(tiles));
      field_.evaluate(u_.at(j_, first + i), state, stages.planes(first + i), {}, tiles, product);
    }
    for (Index i = has_value_before ? first : first + 1; is_shared && i < group_.last; ++i)
      std::copy_n(stages.value(i - 1), field_.run(tiles), stages.value(i));
  }

  /// x = f - k for the pack of samples at `at`, and the sum of its sizes.
  [[gnu::always_inline]] Values<T> write_residual(const Stages<T>& stages, const Scratch& scratch,
                                                  Index at) const {
    Values<T> sum{};
    for_entries([&](Index i, Index r, Index n) {
      const Pack<T> entry =
          load(scratch.value(i) + r * tile_width<T> + at) - load(stage_value(stages, i, r, at));
      sum += value_size<T>(entry);
      store<T>(scratch.x + n, entry);
    });
    return sum;
  }

  /// d_y f at stage i, for the pack of samples at `at`: dim x dim packs in rows.
  [[gnu::always_inline]] const T* jacobian(Index i, const Scratch& scratch, Index at) const {
    field_.jacobian(u_.at(j_, group_.first + i), scratch.slope(i) + at, scratch.jacobian);
    return scratch.jacobian;
  }

  /// M or its transpose for the pack of samples at `at`, in rows of `width` packs.
  [[gnu::always_inline]] void assemble(bool transposed, const Pack<T>& h, const Scratch& scratch, Index at,
                                       Index width) const {
    for (Index i = 0; i < count(); ++i) {
      const T* derivative = jacobian(i, scratch, at);
      for (Index l = 0; l < count(); ++l) {
        const Pack<T> factor = -h * broadcast<T>(T(a(i, l)));
        for (Index r = 0; r < dim(); ++r)
          for (Index c = 0; c < dim(); ++c) {
            const Index row = i * dim() + r, column = l * dim() + c;
            const Index entry = transposed ? column * width + row : row * width + column;
            const Pack<T> df = load(derivative + (r * dim() + c) * lanes<T>);
            store<T>(scratch.matrix + entry * lanes<T>,
                     row == column ? fma(factor, df, broadcast<T>(T(1))) : factor * df);
          }
      }
    }
  }

  /// x <- M^-1 x, which overwrites M. Returns the lanes in which its determinant is negative.
  [[gnu::always_inline]] LaneMask<T> solve(const Scratch& scratch) const {
    constexpr int known_size = Dim * Group;
    if constexpr (known_size > 0 && known_size <= 4)
      return detail::eliminate_unrolled<known_size>(scratch.matrix, scratch.x);
    else
      return solve_lanes(size(), scratch.matrix, scratch.x);
  }

  /// How far the step x moves the stages' states, and how large they are.
  [[gnu::always_inline]] std::pair<Values<T>, Values<T>> measure_step(const T* y, const Pack<T>& h,
                                                                      const Scratch& scratch,
                                                                      Index at) const {
    Values<T> moved{}, scale{};
    for_entries([&](Index i, Index r, Index) {
      const Index here = r * tile_width<T> + at;
      moved +=
          value_size<T>(sum_group(h, i, [&](Index l) { return scratch.x + (l * dim() + r) * lanes<T>; }));
      scale += value_size<T>(load(scratch.state(i) + here)) + value_size<T>(load(y + here));
    });
    return {moved, scale};
  }

 private:
  const Network& net_;
  Field<T> field_;
  Controls<const T> u_;
  Index j_;
  StageGroup group_;

  double a(Index i, Index l) const { return net_.tableau.A()(group_.first + i, group_.first + l); }

  /// Tiles that are solved for at the same time: enough for the products to run well, few enough for one slow
  /// lane not to hold up many.
  static Index chunk_tiles(const Network& net) { return std::max<Index>(4, 256 / (net.dim * tile_width<T>)); }
};

/// What there is of one tile: y and the stages begin there.
template <class T>
struct StageTile {
  const T* y;
  Stages<T> stages;
  StageSystemScratch<T> scratch;
};

/// Solves the equations in the lanes of a tile that `unsolved` marks, by a method that takes one evaluation
/// of f after the other; where it arrives, `unsolved` becomes 0. A Method is made for a pack of samples, with
/// f(y_i) evaluated at the y_i to which the group contributes nothing; it has
///     h()         the h of its lanes, with which the next evaluation is made,
///     advance()   what it does with that: moves the k_i of its active lanes, returns those that have
///     arrived, active()    the lanes that go on.
template <class Method, class T, int Dim, int Group>
[[gnu::noinline]] void solve_tile(const StageSystem<T, Dim, Group>& system, const StageTile<T>& tile,
                                  T* product, T* unsolved, const StopToken& stop_token) {
  if (!system.should_continue(stop_token)) return;
  const T* y = tile.y;
  const Stages<T>& stages = tile.stages;
  const StageSystemScratch<T>& scratch = tile.scratch;
  system.write_states(y, stages, system.group().first, scratch, 1);
  system.evaluate_beside(stages, scratch, product, 1);
  const auto marked = [&](Index at) { return value_size<T>(load(unsolved + at)) > Values<T>{}; };
  Method packs[] = {Method(system, tile, 0, marked(0)), Method(system, tile, lanes<T>, marked(lanes<T>))};
  static_assert(std::size(packs) * lanes<T> == tile_width<T>);

  bool is_active = true;
  for (int evaluation = 0; evaluation < Method::most_evaluations && is_active; ++evaluation) {
    system.write_states(y, stages, system.group().first, scratch, 1);
    system.for_packs(1, [&](Index at, Index number) {
      const Pack<T> h = packs[number].h();
      system.for_entries([&](Index i, Index r, Index) {
        T* state = scratch.state(i) + r * tile_width<T> + at;
        store<T>(state, load(state) + system.sum_group(h, i, stages, r, at));
      });
    });
    system.evaluate_beside(stages, scratch, product, 1);
    is_active = false;
    system.for_packs(1, [&](Index at, Index number) {
      if (!any_lane(packs[number].active()) || !system.should_continue(stop_token)) return;
      store<T>(unsolved + at, select(packs[number].advance(), Pack<T>{}, load(unsolved + at)));
      is_active |= any_lane(packs[number].active());
    });
  }
}

}  // namespace ocdl
