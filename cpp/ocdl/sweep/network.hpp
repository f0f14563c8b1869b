#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ocdl/field/field.hpp"
#include "ocdl/field/narrow_dense.hpp"
#include "ocdl/parallel.hpp"
#include "ocdl/tableau/tableau.hpp"

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
  Range place;
  bool multiplies_states = false;  ///< within the field
};

template <class E>
class Controls;

/// A network: its shape and its choices, nothing that changes. A feed-forward network (residual = false) has
/// one stage per layer, y[j+1] = f(y[j], u[j]), and no time steps.
struct Network {
  Network(Index features_, Index dim_, Index layers_, Index outputs_, Tableau tableau_,
          Activation activation_, bool residual_, bool stage_controls_, bool learns_steps_, double horizon_,
          FieldKind field_kind_ = FieldKind::dense)
      : features(features_),
        dim(dim_),
        layers(layers_),
        outputs(outputs_),
        tableau(std::move(tableau_)),
        activation(activation_),
        residual(residual_),
        stage_controls(stage_controls_),
        learns_steps(learns_steps_),
        horizon(horizon_),
        field_kind(field_kind_) {
    stages = residual ? tableau.stages() : 1;
    control_stages = stage_controls ? stages : 1;
    groups = residual ? tableau.groups() : std::vector<StageGroup>{{0, 1, false}};
    // A group matters when one of its weights is not 0 or a later group that matters looks at it.
    live.assign(static_cast<std::size_t>(stages), !residual);
    for (auto group = groups.rbegin(); residual && group != groups.rend(); ++group) {
      bool matters = false;
      for (Index i = group->first; i < group->last; ++i) {
        matters |= tableau.b()(i) != 0;
        for (Index l = group->last; l < stages; ++l) matters |= is_live(l) && tableau.A()(l, i) != 0;
      }
      std::fill(live.begin() + group->first, live.begin() + group->last, matters);
      if (group->is_implicit) largest_group = std::max(largest_group, group->size());
    }
    first_live = std::find(live.begin(), live.end(), true) - live.begin();
    last_live = std::find(live.rbegin(), live.rend(), true).base() - live.begin() - 1;
    add_parts();
  }

  Index features, dim, layers, outputs;
  Tableau tableau;
  Activation activation;
  bool residual, stage_controls, learns_steps;
  double horizon;
  FieldKind field_kind;
  Index stages, control_stages;
  std::vector<StageGroup> groups;
  Index largest_group = 0;  ///< of the stages that are solved for together; 0: the method is explicit
  std::vector<bool> live;
  Index first_live, last_live;  ///< of the stages

  bool is_live(Index stage) const { return live[static_cast<std::size_t>(stage)]; }
  /// Whether every set of the field's controls belongs to a stage that matters.
  bool uses_all_controls() const {
    return !stage_controls || std::find(live.begin(), live.end(), false) == live.end();
  }
  /// With which stage i counts for the next state.
  double weight(Index i) const { return residual ? tableau.b()(i) : 1; }
  /// Whether its sweeps take the fused kernels of narrow_dense.hpp.
  template <class T>
  bool is_narrow() const {
    return ocdl::is_narrow<T>(dim) && facts_of(field_kind).swept_as == FieldKind::dense && !largest_group &&
           stages <= Combination<T>::capacity;
  }

  /// The parts of the controls in their order: those of the field, the time steps, those of the readout.
  std::vector<Part> parts;
  /// Of each part of the field: where its sets begin, one for each layer or stage, and how long one is.
  struct Sets {
    Index begin, size;
  };
  std::vector<Sets> field_sets;

  Index control_size() const { return parts.back().place.end; }
  /// Where the time steps stand; nowhere in a feed-forward network.
  Range steps() const { return parts[field_sets.size()].place; }
  Index step_count() const { return steps().end - steps().begin; }

  template <class E>
  Controls<E> split(E* u) const {
    return Controls<E>(*this, u);
  }

  /// Number of the set of the field's controls that stage i of layer j uses.
  Index set_number(Index j, Index i) const { return j * control_stages + (stage_controls ? i : 0); }

  template <class T>
  Field<T> field() const {
    return {field_kind, dim, activation};
  }
  /// Planes that the field keeps of a stage beside its value.
  Index detail_planes() const { return Field<double>::detail_planes(field_kind, activation); }

 private:
  void add_parts() {
    const auto add = [&](std::string_view name, Role role, std::vector<std::string> axes,
                         std::vector<Index> shape) {
      const Index begin = parts.empty() ? 0 : parts.back().place.end;
      // Sizes beyond any memory stay there instead of overflowing: such a network can be described, not used.
      constexpr Index beyond_memory = std::numeric_limits<Index>::max() / 32;
      Index size = 1;
      for (const Index length : shape)
        size = length > 0 && size > beyond_memory / length ? beyond_memory : size * length;
      parts.push_back({std::string(name), role, std::move(axes), std::move(shape), {begin, begin + size}});
    };
    for (const FieldPart& part : field_parts(field_kind, dim)) {
      std::vector<std::string> axes = {"layers"};
      std::vector<Index> shape = {layers};
      if (stage_controls) {
        axes.push_back("stages");
        shape.push_back(stages);
      }
      axes.insert(axes.end(), part.shape.size(), "dim");
      shape.insert(shape.end(), part.shape.begin(), part.shape.end());
      add(part.name, Role::field, axes, shape);
      parts.back().multiplies_states = part.shape.size() == 2;
      const Range place = parts.back().place;
      field_sets.push_back({place.begin, (place.end - place.begin) / (layers * control_stages)});
    }
    add("h", Role::steps, {"layers"}, {residual ? layers : 0});
    add("W", Role::readout, {"outputs", "dim"}, {outputs, dim});
    add("mu", Role::readout, {"outputs"}, {outputs});
  }
};

/// f(layer, stage) for every set of the field's controls.
template <class F>
void for_each_set(const Network& net, const F& f) {
  for (Index j = 0; j < net.layers; ++j)
    for (Index i = 0; i < net.control_stages; ++i) f(j, i);
}

/// One vector of controls, or of anything of their shape, seen by its parts. Null is a zero direction. E is T
/// or const T.
template <class E>
class Controls {
 public:
  Controls(const Network& net, E* u) : net_(net), u_(u) {}

  explicit operator bool() const { return u_ != nullptr; }

  /// What the field takes at stage i of layer j.
  StageControls<E> at(Index j, Index i) const {
    std::array<E*, most_field_parts> starts{};
    if (u_)
      for (std::size_t p = 0; p < net_.field_sets.size(); ++p) starts[p] = set(net_.field_sets[p], j, i);
    return {starts, net_.dim};
  }
  /// Sets that to 0.
  void clear(Index j, Index i) const {
    for (const Network::Sets& sets : net_.field_sets) std::fill_n(set(sets, j, i), sets.size, E(0));
  }
  E& h(Index j) const { return u_[net_.steps().begin + j]; }
  MatrixView<E> W() const { return {u_ + net_.steps().end, net_.outputs, net_.dim}; }
  VectorView<E> mu() const { return {u_ + net_.control_size() - net_.outputs, net_.outputs}; }

 private:
  const Network& net_;
  E* u_;

  E* set(const Network::Sets& sets, Index j, Index i) const {
    return u_ + sets.begin + net_.set_number(j, i) * sets.size;
  }
};

}  // namespace ocdl
