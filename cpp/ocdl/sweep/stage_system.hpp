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
  Planes<T> states, values;   ///< one for each stage of the group
  Planes<T> slopes;           ///< the same, with the rows of the field's hidden planes
  T* unsolved;                ///< a pack for each pack of samples, see StageEquations
  Planes<T> base, direction;  ///< of a tile, see StageBacktracking and StagePath
  T *matrix, *jacobian, *x;

  /// The same with the planes of the chunk for some of its tiles.
  StageSystemScratch slice(const Range& tiles) const {
    StageSystemScratch other = *this;
    for (Planes<T>* planes : {&other.states, &other.values, &other.slopes}) *planes = planes->slice(tiles);
    return other;
  }
};

/// A pack of samples of a plane.
struct PackPosition {
  Index tile, lane;
};

/// The equations of a group of stages of one layer,
///     k_i = f(y_i, u_i),   y_i = y + h sum_l a_il k_l,   i in the group,
/// and their matrix
///     M = I - h (a_il d_y f(y_i, u_i))_il.
/// Where a function takes h, a lane may have one of its own, which then counts for the l of the group alone.
///
/// Where they are not 0, `Dim` and `Group` are the dimension and the size of the group; then there are no
/// inputs.
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

  static Scratch allocate(const Network& net, Arena<T>& arena) {
    const Index tiles = chunk_tiles(net), stages = net.largest_group, size = stages * net.dim;
    const auto planes = [&](Index rows, Index of_tiles) {
      const Index plane = rows * of_tiles * tile_width<T>;
      return Planes<T>({arena.allocate(stages * plane), rows, of_tiles}, plane);
    };
    Scratch s;
    for (Planes<T>* of_state : {&s.states, &s.values}) *of_state = planes(net.rows(), tiles);
    s.slopes = planes(net.hidden.rows, tiles);
    s.unsolved = arena.allocate(tiles * tile_width<T>);
    for (Planes<T>* of_tile : {&s.base, &s.direction}) *of_tile = planes(net.rows(), 1);
    s.matrix = arena.allocate((size + 1) * (size + 1) * lanes<T>);
    s.jacobian = arena.allocate(net.dim * net.dim * lanes<T>);
    s.x = arena.allocate((size + 1) * lanes<T>);
    return s;
  }

  const Field<T>& field() const { return field_; }
  const StageGroup& group() const { return group_; }
  Index dim() const { return Dim ? Dim : net_.dim; }
  /// Of the planes of states.
  Index rows() const { return Dim ? Dim : net_.rows(); }
  Index count() const { return Group ? Group : group_.size(); }
  Index size() const { return dim() * count(); }
  Pack<T> h() const { return broadcast<T>(u_.h(j_)); }

  /// Asked before every elimination, which takes long where there are many unknowns. What has been stopped
  /// leaves numbers that are not used.
  bool should_continue(const StopToken& stop_token) const {
    if constexpr (Dim != 0) return true;
    const auto unknowns = static_cast<double>(size());
    return stop_token.should_continue(unknowns * unknowns * unknowns / 6);
  }

  /// f(tiles) for chunks of so many tiles.
  template <class F>
  void for_chunks(Index tiles, const F& f) const {
    const Index longest = chunk_tiles(net_);
    for (Index t = 0; t < tiles; t += longest) f(Range{t, std::min(t + longest, tiles)});
  }

  /// f(at, number) for the packs of so many tiles.
  template <class F>
  [[gnu::always_inline]] void for_packs(Index tiles, const F& f) const {
    Index number = 0;
    for (Index t = 0; t < tiles; ++t)
      for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) f(PackPosition{t, lane}, number++);
  }

  /// f(i, r, n) for the unknowns of a pack: component r of stage i of the group stands at n.
  template <class F>
  [[gnu::always_inline]] void for_entries(const F& f) const {
    for (Index i = 0, n = 0; i < count(); ++i)
      for (Index r = 0; r < dim(); ++r, n += lanes<T>) f(i, r, n);
  }

  /// Component r of the pack of samples at `at`, of a plane of states.
  [[gnu::always_inline]] T* entry(const Plane<T>& plane, Index r, PackPosition at) const {
    return plane.data() + (at.tile * rows() + r) * tile_width<T> + at.lane;
  }
  [[gnu::always_inline]] const T* entry(const Plane<const T>& plane, Index r, PackPosition at) const {
    return plane.data() + (at.tile * rows() + r) * tile_width<T> + at.lane;
  }
  /// The same of the k_i of stage i of the group.
  [[gnu::always_inline]] T* stage_value(const Stages<T>& stages, Index i, Index r, PackPosition at) const {
    return entry(stages.value(group_.first + i), r, at);
  }

  /// y_i, from the k_l with l < last.
  void write_states(const Plane<const T>& y, const Stages<T>& stages, Index last,
                    const Scratch& scratch) const {
    for (Index i = 0; i < count(); ++i) {
      LinearCombination<T> state(y, scratch.states[i]);
      for (Index l = 0; l < last; ++l)
        state.add(u_.h(j_) * T(net_.tableau.A()(group_.first + i, l)), stages.value(l));
      state.write();
      add_input_changes(net_.tableau, group_.first + i, stages, scratch.states[i]);
    }
  }

  /// h sum_l a_il k_l over the l of the group, component r, for the pack of samples whose k_l stand at k(l).
  template <class F>
  [[gnu::always_inline]] Pack<T> sum_group(const Pack<T>& h, Index i, const F& k) const {
    Pack<T> sum{};
    for (Index l = 0; l < count(); ++l) multiply_add(sum, h * broadcast<T>(T(a(i, l))), load(k(l)));
    return sum;
  }
  Pack<T> sum_group(const Pack<T>& h, Index i, const Stages<T>& stages, Index r, PackPosition at) const {
    return sum_group(h, i, [&](Index l) { return stage_value(stages, l, r, at); });
  }

  /// k_i = f(y_i) with what the field keeps of it.
  void evaluate(Index i, const StagePlanes<T>& at, const Scratch& scratch, T* product) const {
    field_.evaluate(u_.at(j_, group_.first + i), scratch.states[i], at, {}, ThreadSlice<T>(at.value.tiles()),
                    product);
  }

  /// f(y_i) and the slopes there, while the k_i stay as they are.
  void evaluate_beside(const Stages<T>& stages, const Scratch& scratch, T* product) const {
    for (Index i = 0; i < count(); ++i) {
      StagePlanes<T> at = stages[group_.first + i];
      at.value = scratch.values[i];
      evaluate(i, at, scratch, product);
      field_.write_slope(at, scratch.slopes[i]);
    }
  }

  /// A first guess of the k_i: the value of the stage before the group, or f(y).
  void guess(const Plane<const T>& y, const Stages<T>& stages, const Scratch& scratch, T* product) const {
    const Index first = group_.first, before = first - 1;
    const ThreadSlice<T> all(y.tiles());
    const bool is_shared = !net_.stage_controls, has_value_before = first > 0 && net_.is_live(before);
    for (Index i = 0; !(is_shared && has_value_before) && i < (is_shared ? 1 : count()); ++i) {
      const Plane<const T> state =
          stage_state(net_.tableau, first + i, first, u_.h(j_), y, stages, scratch.states[i], all);
      field_.evaluate(u_.at(j_, first + i), state, stages[first + i], {}, all, product);
    }
    for (Index i = has_value_before ? first : first + 1; is_shared && i < group_.last; ++i)
      std::copy_n(stages.value(i - 1).data(), y.size(), stages.value(i).data());
  }

  /// x = f - k for the pack of samples at `at`, and the sum of its sizes.
  [[gnu::always_inline]] Values<T> write_residual(const Stages<T>& stages, const Scratch& scratch,
                                                  PackPosition at) const {
    Values<T> sum{};
    for_entries([&](Index i, Index r, Index n) {
      const Pack<T> difference = load(entry(scratch.values[i], r, at)) - load(stage_value(stages, i, r, at));
      sum += value_size<T>(difference);
      store<T>(scratch.x + n, difference);
    });
    return sum;
  }

  /// d_y f at stage i, for the pack of samples at `at`: dim x dim packs in rows.
  [[gnu::always_inline]] const T* jacobian(Index i, const Scratch& scratch, PackPosition at) const {
    const Plane<T> slopes = scratch.slopes[i];
    field_.jacobian(u_.at(j_, group_.first + i), slopes.data() + at.tile * slopes.tile_size() + at.lane,
                    scratch.jacobian);
    return scratch.jacobian;
  }

  /// M or its transpose for the pack of samples at `at`, in rows of `width` packs.
  [[gnu::always_inline]] void assemble(bool transposed, const Pack<T>& h, const Scratch& scratch,
                                       PackPosition at, Index width) const {
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
  [[gnu::always_inline]] std::pair<Values<T>, Values<T>> measure_step(const Plane<const T>& y,
                                                                      const Pack<T>& h,
                                                                      const Scratch& scratch,
                                                                      PackPosition at) const {
    Values<T> moved{}, scale{};
    for_entries([&](Index i, Index r, Index) {
      moved +=
          value_size<T>(sum_group(h, i, [&](Index l) { return scratch.x + (l * dim() + r) * lanes<T>; }));
      scale += value_size<T>(load(entry(scratch.states[i], r, at))) + value_size<T>(load(entry(y, r, at)));
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

/// The planes of one tile.
template <class T>
struct StageTile {
  Plane<const T> y;
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
  const Plane<const T>& y = tile.y;
  const Stages<T>& stages = tile.stages;
  const StageSystemScratch<T>& scratch = tile.scratch;
  system.write_states(y, stages, system.group().first, scratch);
  system.evaluate_beside(stages, scratch, product);
  const auto marked = [&](Index lane) { return value_size<T>(load(unsolved + lane)) > Values<T>{}; };
  Method packs[] = {Method(system, tile, {0, 0}, marked(0)),
                    Method(system, tile, {0, lanes<T>}, marked(lanes<T>))};
  static_assert(std::size(packs) * lanes<T> == tile_width<T>);

  bool is_active = true;
  for (int evaluation = 0; evaluation < Method::max_evaluations && is_active; ++evaluation) {
    system.write_states(y, stages, system.group().first, scratch);
    system.for_packs(1, [&](PackPosition at, Index number) {
      const Pack<T> h = packs[number].h();
      system.for_entries([&](Index i, Index r, Index) {
        T* state = system.entry(scratch.states[i], r, at);
        store<T>(state, load(state) + system.sum_group(h, i, stages, r, at));
      });
    });
    system.evaluate_beside(stages, scratch, product);
    is_active = false;
    system.for_packs(1, [&](PackPosition at, Index number) {
      if (!any_lane(packs[number].active()) || !system.should_continue(stop_token)) return;
      T* marks = unsolved + at.lane;
      store<T>(marks, select(packs[number].advance(), Pack<T>{}, load(marks)));
      is_active |= any_lane(packs[number].active());
    });
  }
}

}  // namespace ocdl
