#pragma once

#include <array>
#include <vector>

#include "ocdl/sweep/network.hpp"

/// States between the layers, by cubic polynomials through the states of some layers.
namespace ocdl {

/// The layers whose states make up the state at a time, from `first` on, and their weights.
struct Stencil {
  static constexpr Index capacity = 4;

  Index first, count;
  std::array<double, capacity> weights;
};

/// The times t_j = h_0 + ... + h_(j-1) of the layers, or their numbers where the steps are learned or where
/// there are none.
///
/// The state at t_j is y[j]. For t in (t_j, t_(j+1)) it is the Lagrange polynomial through the layers l, ...,
/// l + 3 with l = min(max(j - 1, 0), N - 3), of all layers where N < 3: its error is of the order h^4 where
/// controls are smooth. A stencil stays on its side of a boundary between sets of controls, where the states
/// are not smooth, if this side has four of them.
class LayerTimes {
 public:
  /// h: the steps, all positive, with digits of the precision `epsilon`.
  template <class T>
  LayerTimes(const Network& net, const Controls<const T>& u, double epsilon) : net_(net), times_(1, 0.0) {
    const bool are_numbers = net.learns_steps || !net.residual;
    for (Index j = 0; j < net.layers; ++j)
      times_.push_back(are_numbers ? static_cast<double>(j + 1)
                                   : times_.back() + static_cast<double>(value_of(u.h(j))));
    tolerance_ = std::max(1e-9, 4 * epsilon) * times_.back();
    place_stencils();
  }

  /// Times that differ by no more are equal.
  double tolerance() const { return tolerance_; }

  Stencil at(double time) const {
    const auto after = std::upper_bound(times_.begin(), times_.end(), time);
    const Index j = std::clamp<Index>(after - times_.begin() - 1, 0, net_.layers - 1);
    for (const Index layer : {j, j + 1})
      if (std::abs(time - this->time(layer)) <= tolerance_) return {layer, 1, {1}};
    Stencil stencil{
        first_states_[static_cast<std::size_t>(j)], std::min(net_.layers + 1, Stencil::capacity), {}};
    for (Index n = 0; n < stencil.count; ++n) {
      double& weight = stencil.weights[static_cast<std::size_t>(n)] = 1;
      const double node = this->time(stencil.first + n);
      for (Index m = 0; m < stencil.count; ++m)
        if (const double other = this->time(stencil.first + m); m != n)
          weight *= (time - other) / (node - other);
    }
    return stencil;
  }

 private:
  const Network& net_;
  std::vector<double> times_;
  double tolerance_;
  std::vector<Index> first_states_;  ///< of the stencils within each layer

  double time(Index layer) const { return times_[static_cast<std::size_t>(layer)]; }

  /// Where stencils begin that stay on the side of their layer, or of all where that has too few states.
  void place_stencils() {
    for (Index begin = 0, end = 0; begin < net_.layers; begin = end) {
      while (end < net_.layers && (net_.layer_sets.empty() || net_.set_of(end) == net_.set_of(begin))) ++end;
      Range states{begin, end + 1};
      if (states.size() < Stencil::capacity) states = {0, net_.layers + 1};
      for (Index j = begin; j < end; ++j)
        first_states_.push_back(
            std::clamp(j - 1, states.begin, std::max(states.end - Stencil::capacity, states.begin)));
    }
  }
};

}  // namespace ocdl
