#pragma once

#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ocdl/field/narrow_dense.hpp"
#include "ocdl/parallel.hpp"
#include "ocdl/tableau/tableau.hpp"
#include "ocdl/trajectory/trajectory.hpp"

namespace ocdl {

/// What a part of the controls does: it moves the states, says how long a layer lasts, or reads the outputs.
enum class Role { field, steps, readout };

inline constexpr std::array<std::string_view, 3> role_names = {"field", "steps", "readout"};

/// A part of the vector of controls: its name, the names of its axes and their lengths, and where it stands.
struct Part {
  std::string name;
  Role role;
  std::vector<std::string> axes;
  std::vector<Index> shape;
  Range range;
  bool multiplies_states = false;  ///< within the field
};

template <class E>
class Controls;

/// What a network is made from. A feed-forward network (residual = false) has one stage per layer,
/// y[j+1] = f(y[j], u[j]), and no time steps.
struct NetworkOptions {
  Index features, dim, layers, outputs;
  Tableau tableau;
  Activation activation = Activation::tanh;
  FieldKind field_kind = FieldKind::dense;
  Index width = 0, degree = 0;  ///< of the fields that have one
  Index inputs = 0;             ///< of the fields that take them, known numbers x(t) beside the state
  bool linear_inputs = false;   ///< between x_j and x_(j+1) within layer j, else x_j
  bool residual = true, stage_controls = false, learns_steps = false;
  double horizon = 1;
  /// The set of the field's controls that each layer uses: 0, then the same or the next one. Empty: each
  /// layer has its own.
  std::vector<Index> layer_sets = {};
};

/// A group of stages that the result depends on, in the order of evaluation.
struct ScheduledGroup {
  StageGroup stages;
  Index next;             ///< the first stage of the next group; -1: the next state follows
  bool next_is_implicit;  ///< so its state cannot be completed here
};

/// A network: its shape and its choices, nothing that changes.
struct Network : NetworkOptions {
  explicit Network(NetworkOptions options)
      : NetworkOptions(std::move(options)),
        field_options(dim, activation, width, degree, inputs),
        hidden(field<double>().hidden()) {
    require_inputs_to_fit();
    stages = residual ? tableau.stages() : 1;
    control_stages = stage_controls ? stages : 1;
    sets = layer_sets.empty() ? layers : layer_sets.back() + 1;
    add_schedule();
    add_parts();
  }

  FieldOptions field_options;
  HiddenPlanes hidden;  ///< of the field
  Index stages, control_stages;
  Index sets;               ///< of the field's controls, each for one or more layers
  Index largest_group = 0;  ///< of the stages that are solved for together; 0: the method is explicit
  std::vector<ScheduledGroup> schedule;
  std::vector<bool> live;  ///< the stages that the result depends on

  /// Rows of the planes of states: the state and the inputs behind it.
  Index rows() const { return dim + inputs; }
  /// Numbers of a sample in the rows of X: its features, then the inputs x_0, x_1, ... of the layers.
  Index row_size() const { return features + inputs * (layers + linear_inputs); }
  /// Whether inputs change within a layer. A feed-forward layer takes x_j.
  bool changes_inputs() const { return inputs > 0 && linear_inputs && residual; }

  bool is_live(Index stage) const { return live[static_cast<std::size_t>(stage)]; }
  Index first_live() const { return schedule.front().stages.first; }
  Index last_live() const { return schedule.back().stages.last - 1; }
  /// Whether every set of the field's controls belongs to a live stage.
  bool uses_all_controls() const {
    return !stage_controls || std::find(live.begin(), live.end(), false) == live.end();
  }
  /// The weight of stage i in the next state.
  double weight(Index i) const { return residual ? tableau.b()(i) : 1; }
  /// The number of stages before stage i that its state depends on: none in a feed-forward layer.
  Index stages_before(Index i) const { return residual ? i : 0; }
  /// Whether its sweeps take the fused kernels of narrow_dense.hpp.
  template <class T>
  bool is_narrow() const {
    return ocdl::is_narrow<T>(dim) && traits_of(field_kind).is_dense && !largest_group &&
           stages <= LinearCombination<T>::capacity;
  }

  /// Numbers that a fused adjoint sweep adds up for each stage with controls of its own; 0: there is none.
  template <class T>
  Index fused_sums_size() const {
    return largest_group ? 0 : field<T>().fused_sums_size();
  }

  /// The parts of the controls in their order: those of the field, the time steps, those of the readout.
  std::vector<Part> parts;
  /// Of each part of the field: where its sets begin, one for each set of layers or stage, and the size of
  /// one.
  struct PartSets {
    Index begin, size;
  };
  std::vector<PartSets> field_sets;

  Index control_size() const { return parts.back().range.end; }
  /// Where the time steps stand; nowhere in a feed-forward network.
  Range steps() const { return parts[field_sets.size()].range; }
  Index step_count() const { return steps().end - steps().begin; }

  template <class E>
  Controls<E> split(E* u) const {
    return Controls<E>(*this, u);
  }

  Index set_of(Index j) const { return layer_sets.empty() ? j : layer_sets[static_cast<std::size_t>(j)]; }
  /// Whether layer j is the last one of its set, which a backward sweep visits first.
  bool ends_set(Index j) const { return j + 1 == layers || set_of(j + 1) != set_of(j); }
  bool begins_set(Index j) const { return j == 0 || set_of(j - 1) != set_of(j); }

  template <class T>
  Field<T> field() const {
    return Field<T>(field_kind, field_options);
  }
  TrajectoryShape trajectory_shape(Storage storage) const {
    return {rows(), layers, stages, hidden, storage};
  }

 private:
  void require_inputs_to_fit() const {
    if (inputs == 0) return;
    if (!traits_of(field_kind).takes_inputs)
      throw std::invalid_argument("the field " + std::string(traits_of(field_kind).name) +
                                  " takes no inputs");
    const Vector row_sums = tableau.A().rowwise().sum();
    if ((row_sums - tableau.c()).cwiseAbs().maxCoeff() > 1e-12)
      throw std::invalid_argument("the tableau's c is not the sum of the rows of A, which inputs need");
  }

  void add_schedule() {
    const std::vector<StageGroup> groups =
        residual ? tableau.groups() : std::vector<StageGroup>{{0, 1, false}};
    // A group is live when one of its weights is not 0 or a later live group depends on it.
    live.assign(static_cast<std::size_t>(stages), !residual);
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      bool is_live_group = !residual;
      for (Index i = group->first; residual && i < group->last; ++i) {
        is_live_group |= tableau.b()(i) != 0;
        for (Index l = group->last; l < stages; ++l) is_live_group |= is_live(l) && tableau.A()(l, i) != 0;
      }
      std::fill(live.begin() + group->first, live.begin() + group->last, is_live_group);
      if (group->is_implicit) largest_group = std::max(largest_group, group->size());
      if (!is_live_group) continue;
      const bool is_last = schedule.empty();
      schedule.insert(schedule.begin(), {*group, is_last ? Index(-1) : schedule.front().stages.first,
                                         !is_last && schedule.front().stages.is_implicit});
    }
  }

  void add_parts() {
    const auto add = [&](std::string_view name, Role role, std::vector<std::string> axes,
                         std::vector<Index> shape) {
      const Index begin = parts.empty() ? 0 : parts.back().range.end;
      // Sizes beyond any memory stay there instead of overflowing: such a network can be described, not used.
      constexpr Index beyond_memory = std::numeric_limits<Index>::max() / 32;
      Index size = 1;
      for (const Index length : shape)
        size = length > 0 && size > beyond_memory / length ? beyond_memory : size * length;
      parts.push_back({std::string(name), role, std::move(axes), std::move(shape), {begin, begin + size}});
    };
    for (const FieldPart& part : field<double>().parts()) {
      std::vector<std::string> axes = {layer_sets.empty() ? "layers" : "intervals"};
      std::vector<Index> shape = {sets};
      if (stage_controls) {
        axes.push_back("stages");
        shape.push_back(stages);
      }
      axes.insert(axes.end(), part.axes.begin(), part.axes.end());
      shape.insert(shape.end(), part.shape.begin(), part.shape.end());
      add(part.name, Role::field, axes, shape);
      parts.back().multiplies_states = part.multiplies_states;
      const Range range = parts.back().range;
      field_sets.push_back({range.begin, range.size() / (sets * control_stages)});
    }
    add("h", Role::steps, {"layers"}, {residual ? layers : 0});
    add("W", Role::readout, {"outputs", "dim"}, {outputs, dim});
    add("mu", Role::readout, {"outputs"}, {outputs});
  }
};

/// One vector of controls, or of anything of their shape, seen by its parts. Null is a zero direction. E is T
/// or const T.
template <class E>
class Controls {
 public:
  Controls(const Network& net, E* u) : net_(net), u_(u) {}

  explicit operator bool() const { return u_ != nullptr; }

  /// What the field takes at stage i of layer j.
  StageControls<E> at(Index j, Index i) const { return set(net_.set_of(j), net_.stage_controls ? i : 0); }
  /// The field's controls number `set`, of stage i where stages have their own.
  StageControls<E> set(Index set, Index i) const {
    StageControls<E> controls;
    for (std::size_t p = 0; u_ && p < net_.field_sets.size(); ++p) {
      const auto [begin, size] = net_.field_sets[p];
      controls.parts[p] = u_ + begin + (set * net_.control_stages + i) * size;
    }
    return controls;
  }
  /// Sets what the field takes at stage i of layer j to 0.
  void clear(Index j, Index i) const {
    const StageControls<E> controls = at(j, i);
    for (std::size_t p = 0; p < net_.field_sets.size(); ++p)
      std::fill_n(controls.parts[p], net_.field_sets[p].size, E(0));
  }
  E& h(Index j) const { return u_[net_.steps().begin + j]; }
  MatrixView<E> W() const { return {u_ + net_.steps().end, net_.outputs, net_.dim}; }
  VectorView<E> mu() const { return {u_ + net_.control_size() - net_.outputs, net_.outputs}; }

 private:
  const Network& net_;
  E* u_;
};

/// f(set, stage) for every set of the field's controls.
template <class F>
void for_each_set(const Network& net, const F& f) {
  for (Index set = 0; set < net.sets; ++set)
    for (Index i = 0; i < net.control_stages; ++i) f(set, i);
}

}  // namespace ocdl
