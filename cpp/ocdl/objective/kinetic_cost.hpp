#pragma once

#include "ocdl/sweep/cost.hpp"

namespace ocdl {

/// The kinetic energy weight sum_j |h_j| sum_i b_i |k_i|^2 of the samples: the running cost of a flow that
/// moves them far or fast. `weight_of(sample)` is the weight of a sample. Without a conjugate, so that the
/// complex step differentiates it.
template <class T, class WeightOf>
class KineticCost : public Cost<T> {
 public:
  /// `scale` multiplies the cotangents, as those of the losses.
  KineticCost(const Network& net, double weight, double scale, WeightOf weight_of)
      : layers_(net.layers),
        plane_size_(net.rows() * tile_width<T>),
        learns_steps_(net.learns_steps),
        weight_(weight),
        scale_(scale),
        weight_of_(std::move(weight_of)) {}

  CostNeeds needs() const override {
    return {.concerns_stages = true, .adds_control_gradient = true, .scratch_size = plane_size_ + layers_};
  }

  void add_layer(const CostBlock<T>& at, Index j, const Stages<T>& stages) const override {
    for (Index t = at.thread.range().begin; t < at.thread.range().end; ++t) {
      T sum{};
      for (Index s = 0; s < at.samples_in(t); ++s) {
        T of_sample{};
        for (Index i = 0; i < at.net.stages; ++i)
          if (at.net.weight(i) != 0)
            of_sample += T(at.net.weight(i)) * stages.value(i).tile(t).col(s).square().sum();
        sum += T(weight_ * weight_of_(at.block.first + t * tile_width<T> + s)) * of_sample;
      }
      sum_of(at, t, j) = sum;
      at.values[t] += Wide<T>(sign(at, j) * at.u.h(j) * sum);
    }
  }
  void add_stage_cotangent(const CostBlock<T>& at, Index j, Index i, const Stages<T>& stages,
                           LinearCombination<T>& g) const override {
    if (at.net.weight(i) == 0) return;
    const Plane<T> cotangent(at.scratch, at.net.rows(), at.thread.block_tiles);
    const double factor = 2 * scale_ * weight_ * at.net.weight(i);
    for (Index t = at.thread.range().begin; t < at.thread.range().end; ++t) {
      for (Index s = 0; s < at.samples_in(t); ++s)
        cotangent.tile(t).col(s) = sign(at, j) *
                                   T(factor * weight_of_(at.block.first + t * tile_width<T> + s)) *
                                   stages.value(i).tile(t).col(s);
      cotangent.tile(t).rightCols(tile_width<T> - at.samples_in(t)).setZero();
    }
    g.add(T(1), cotangent.slice(at.thread));
  }
  /// dC/dh_j is sum <g_i - s_i, k_i> + sign(h_j) sum b_i |k_i|^2, with the cotangents s_i of above, which
  /// <g_i, k_i> has twice.
  void add_control_gradient(const CostBlock<T>& at, const Controls<T>& gradient) const override {
    if (at.thread.team.rank() != 0 || !learns_steps_) return;
    for (Index j = 0; j < layers_; ++j)
      for (Index t = 0; t < at.thread.block_tiles; ++t)
        gradient.h(j) -= T(scale_) * sign(at, j) * sum_of(at, t, j);
  }

 private:
  Index layers_, plane_size_;
  bool learns_steps_;
  double weight_, scale_;
  WeightOf weight_of_;

  static T sign(const CostBlock<T>& at, Index j) { return T(value_of(at.u.h(j)) < 0 ? -1 : 1); }
  /// Of tile t and layer j.
  T& sum_of(const CostBlock<T>& at, Index t, Index j) const {
    return at.scratch[at.thread.block_tiles * plane_size_ + t * layers_ + j];
  }
};

}  // namespace ocdl
