#pragma once

#include <cstdint>

#include "ocdl/objective/curvature.hpp"
#include "ocdl/objective/loss.hpp"
#include "ocdl/objective/regulariser.hpp"
#include "ocdl/sweep/pull_back.hpp"

namespace ocdl {

/// J(u) = R(u) + scale * sum_i w_i loss(W y_i[N] + mu, c_i), with scale = 1 ("sum") or 1 / sum_i w_i
/// ("mean").
struct Objective {
  Loss loss;
  bool mean = true;
  Regulariser regulariser;
};

/// What the outputs are compared with: labels 0 .. max(outputs, 2) - 1, or numbers in rows (samples,
/// outputs); the loss says which.
template <class T>
struct Targets {
  const std::int64_t* labels = nullptr;
  const Passive<T>* numbers = nullptr;
};

/// Samples are rows of X; no weights: all 1.
template <class T>
struct Data {
  const Passive<T>* X;
  Targets<T> targets;
  const Passive<T>* weights;
  Index samples;
  double batch_scale = 0;  ///< of a batch or a part: what multiplies its sum of losses

  double weight(Index i) const { return weights ? static_cast<double>(value_of(weights[i])) : 1; }

  double scale(bool mean) const {
    if (batch_scale != 0) return batch_scale;
    if (!mean) return 1;
    if (!weights) return 1 / static_cast<double>(samples);
    const Shards shards = Shards::of(samples);
    return 1 / tree_sum(0, shards.all, [&](Index k) {
             const Index begin = k * shards.size;
             return sum_of_weights({begin, std::min(begin + shards.size, samples)});
           });
  }

  double sum_of_weights(Range rows) const {
    double sum = 0;
    for (Index i = rows.begin; i < rows.end; ++i) sum += weight(i);
    return sum;
  }
};

/// The losses of the samples: what the flow's outputs are put into.
template <class T>
class LossSeed : public Seed<T> {
 public:
  /// `gauss_newton`, of dual numbers: the slopes become those of a Gauss-Newton product, see curvature.hpp.
  LossSeed(Index outputs, const Data<T>& data, const Loss& loss, double scale, bool gauss_newton = false)
      : outputs_(outputs), data_(data), loss_(loss), scale_(scale), gauss_newton_(gauss_newton) {}

  bool needs_outputs() const override { return true; }
  Index scratch_size() const override { return (outputs_ + 1) * tile_width<T>; }

  /// The sums of the weighted losses, and their slopes times the scale.
  void evaluate(const Block& block, Range tiles, const T* z, T* slopes, T* scratch,
                Wide<T>* values) const override;

 private:
  Index outputs_;
  const Data<T>& data_;
  const Loss& loss_;
  double scale_;
  bool gauss_newton_;

  /// Targets and weights of tile t; the padding has weight 0. Labels were checked, but the array is the
  /// caller's: where a callback or another thread has written to it since, a label may name no output.
  void fill(const Block& block, Index t, T* targets, T* weights) const {
    constexpr Index width = tile_width<T>;
    const Index first = block.first + t * width, count = std::min(width, block.samples - t * width);
    if (outputs_ == 1 && data_.targets.labels && !data_.weights && count == width) {
      const std::int64_t* labels = data_.targets.labels + first;
      for (Index s = 0; s < width; ++s) targets[s] = labels[s] == 1 ? T(1) : T(0);
      std::fill_n(weights, width, T(1));
      return;
    }
    if (data_.targets.labels) std::fill_n(targets, outputs_ * width, T(0));
    for (Index s = 0; s < width; ++s) {
      const Index i = first + std::min(s, count - 1);
      weights[s] = s >= count ? T(0) : data_.weights ? T(data_.weights[i]) : T(1);
      if (!data_.targets.labels) {
        for (Index o = 0; o < outputs_; ++o)
          targets[o * width + s] = T(data_.targets.numbers[i * outputs_ + o]);
        continue;
      }
      const Index label = static_cast<Index>(data_.targets.labels[i]);
      if (outputs_ == 1)
        targets[s] = T(label == 1);
      else if (0 <= label && label < outputs_)
        targets[label * width + s] = T(1);
    }
  }
};

/// Out of line: where the type is known, as in `output_slopes`, all losses would be inlined, and GCC 12
/// crashes on seven of them.
template <class T>
[[gnu::noinline]] void LossSeed<T>::evaluate(const Block& block, Range tiles, const T* z, T* slopes,
                                             T* scratch, Wide<T>* values) const {
  const Index size = outputs_ * tile_width<T>, count = tiles.end - tiles.begin;
  T *targets = scratch, *weights = scratch + count * size;
  for (Index t = 0; t < count; ++t)
    fill(block, tiles.begin + t, targets + t * size, weights + t * tile_width<T>);
  std::visit(
      [&](const auto& record) {
        for (Index t = 0; t < count; ++t) {
          const OutputTile<T> tile{outputs_, z + t * size, targets + t * size, weights + t * tile_width<T>};
          T* dz = slopes ? slopes + t * size : nullptr;
          values[t] = tile_loss(record, tile, dz);
          if constexpr (is_dual<T>)
            if (gauss_newton_) keep_curvature(record, tile, dz);
        }
      },
      loss_);
  for (Index n = 0; slopes && n < count * size; ++n) slopes[n] *= T(scale_);
}

/// The losses without the regulariser, of a piece of the data that knows its scale, after `start_sum` and the
/// pieces before it: the sums by the controls and the value, not yet scaled, stay in the workspace's tree.
template <class T>
void add_up_losses(const Network& net, const T* controls, const Data<T>& data, const Objective& objective,
                   T* gradient, Workspace<T>& workspace, const BlockPlan& plan, bool gauss_newton = false) {
  const LossSeed<T> seed(net.outputs, data, objective.loss, data.scale(objective.mean), gauss_newton);
  PullBack<T>(net, controls, data.X, data.samples, &seed, {}, {.controls = gradient}, workspace, plan)
      .add_up();
}

/// J and its derivatives: forward, losses and, where derivatives are wanted, backward, block by block.
template <class T>
Wide<T> value_and_derivatives(const Network& net, const T* controls, const Data<T>& data,
                              const Objective& objective, const Derivatives<T>& derivatives,
                              Workspace<T>& workspace, const BlockPlan& plan) {
  const double scale = data.scale(objective.mean);
  const LossSeed<T> seed(net.outputs, data, objective.loss, scale);
  PullBack<T> pull_back(net, controls, data.X, data.samples, &seed, {}, derivatives, workspace, plan);
  Wide<T> value = scale * pull_back.run();
  if (derivatives.shown_finite)
    *derivatives.shown_finite = objective.regulariser.none() && pull_back.has_shown_finite();
  if (!objective.regulariser.none()) value += objective.regulariser.add(net, controls, derivatives.controls);
  return value;
}

template <class T>
Wide<T> value_and_derivatives(const Network& net, const T* controls, const Data<T>& data,
                              const Objective& objective, const Derivatives<T>& derivatives,
                              Workspace<T>& workspace) {
  return value_and_derivatives<T>(net, controls, data, objective, derivatives, workspace,
                                  plan_blocks<T>(net, data.samples));
}

template <class T>
Wide<T> value(const Network& net, const T* controls, const Data<T>& data, const Objective& objective,
              Workspace<T>& workspace) {
  return value_and_derivatives<T>(net, controls, data, objective, {}, workspace);
}

/// What `value_and_derivatives` pulls back: the slopes of the losses at these outputs, (samples, outputs).
template <class T>
void output_slopes(const Objective& objective, const Data<T>& data, Index outputs, const T* rows, T* slopes) {
  constexpr Index width = tile_width<T>;
  const LossSeed<T> seed(outputs, data, objective.loss, data.scale(objective.mean));
  const Block all{0, 0, data.samples};
  std::vector<T> memory(static_cast<std::size_t>(2 * outputs * width + seed.scratch_size()));
  T *z = memory.data(), *dz = z + outputs * width, *scratch = dz + outputs * width;
  for (Index t = 0; t < tiles_for<T>(data.samples); ++t) {
    const Index first = t * width, count = std::min(width, data.samples - first);
    Wide<T> value;
    rows_to_plane<T>(rows + first * outputs, count, outputs, {z, outputs, 1});
    seed.evaluate(all, {t, t + 1}, z, dz, scratch, &value);
    plane_to_rows<T>({dz, outputs, 1}, count, outputs, slopes + first * outputs);
  }
}

// Compiled once, in objective.cpp.
extern template class LossSeed<double>;
extern template class LossSeed<float>;
extern template double value_and_derivatives<double>(const Network&, const double*, const Data<double>&,
                                                     const Objective&, const Derivatives<double>&,
                                                     Workspace<double>&, const BlockPlan&);
extern template double value_and_derivatives<float>(const Network&, const float*, const Data<float>&,
                                                    const Objective&, const Derivatives<float>&,
                                                    Workspace<float>&, const BlockPlan&);

}  // namespace ocdl
