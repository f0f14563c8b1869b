#pragma once

#include <vector>

#include "ocdl/field/field.hpp"
#include "ocdl/tableau/tableau.hpp"

namespace ocdl {

/// Pointers into one vector of controls, ordered K, b, h, W, mu, each in rows. E is T or const T.
template <class E>
struct Controls {
  E *K, *b, *h, *W, *mu;
};

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

  bool is_live(Index stage) const { return live[static_cast<std::size_t>(stage)]; }

  Index K_size() const { return layers * control_stages * dim * dim; }
  Index b_size() const { return layers * control_stages * dim; }
  Index h_size() const { return residual ? layers : 0; }
  Index W_size() const { return outputs * dim; }
  Index control_size() const { return K_size() + b_size() + h_size() + W_size() + outputs; }

  template <class E>
  Controls<E> split(E* u) const {
    E* K = u;
    E* b = K + K_size();
    E* h = b + b_size();
    E* W = h + h_size();
    return {K, b, h, W, W + W_size()};
  }

  /// Number of the pair (K, b) that stage i of layer j uses.
  Index pair(Index j, Index i) const { return j * control_stages + (stage_controls ? i : 0); }
  template <class E>
  E* K_of(const Controls<E>& u, Index j, Index i) const {
    return u.K + pair(j, i) * dim * dim;
  }
  template <class E>
  E* b_of(const Controls<E>& u, Index j, Index i) const {
    return u.b + pair(j, i) * dim;
  }

  template <class T>
  Field<T> field() const {
    return {field_kind, dim, activation};
  }
  /// Planes that the field keeps of a stage beside its value.
  Index detail_planes() const { return Field<double>::detail_planes(field_kind, activation); }
};

}  // namespace ocdl
