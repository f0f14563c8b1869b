#pragma once

#include <cstdint>

#include "ocdl/objective/curvature.hpp"
#include "ocdl/objective/kinetic_cost.hpp"
#include "ocdl/objective/loss.hpp"
#include "ocdl/objective/observed_loss.hpp"
#include "ocdl/objective/regulariser.hpp"
#include "ocdl/sweep/adjoint_sweep.hpp"
#include "ocdl/sweep/flow.hpp"

namespace ocdl {

/// J(u) = R(u) + scale * sum_i w_i loss(W y_i[N] + mu, c_i), with scale = 1 ("sum") or 1 / sum_i w_i
/// ("mean"). Of observations, the loss of a sample is the sum over what was observed, n_i numbers, and the
/// mean divides by sum_i w_i n_i / outputs.
struct Objective {
  Loss loss;
  bool mean = true;
  Regulariser regulariser;
  double kinetic = 0;  ///< the weight of the kinetic energy
};

/// Rows of `width` numbers each.
template <class S>
struct RowTable {
  const S* data = nullptr;
  Index width = 0;

  explicit operator bool() const { return data != nullptr; }
  const S* row(Index i) const { return data + i * width; }
  RowTable from(Index first) const { return data ? RowTable{row(first), width} : *this; }
};

/// How a row of numbers holds what was observed of a sample: (times, outputs) values, NaN where nothing was,
/// and behind them the times unless all samples share them. No times: no observations.
struct ObservationGrid {
  Index times = 0;
  const double* shared = nullptr;

  explicit operator bool() const { return times > 0; }
  Index outputs(Index row_width) const { return row_width / times - (shared ? 0 : 1); }
  Index row_width(Index outputs) const { return times * (outputs + (shared ? 0 : 1)); }
  /// Numbers of a sample that the cost of its loss keeps beside its trajectory.
  Index kept_per_sample(const Network& net) const { return times > 0 ? observation_size(net) : 0; }
  /// Outputs of a sample that a loss takes.
  Index row_size(Index outputs) const { return std::max<Index>(times, 1) * outputs; }
};

/// What the outputs are compared with: labels 0 .. max(outputs, 2) - 1, or rows of numbers, which may be
/// observations; the loss says which.
template <class S>
struct Targets {
  const std::int64_t* labels = nullptr;
  RowTable<S> numbers = {};
  ObservationGrid grid = {};

  Targets from(Index first) const { return {labels ? labels + first : nullptr, numbers.from(first), grid}; }
  ObservationTimes<S> times() const {
    return {grid.times, grid.shared, grid.shared ? nullptr : numbers.data + numbers.width - grid.times,
            numbers.width};
  }
  /// How much sample i counts in a mean: the fraction of the outputs at one time that was observed.
  double observed(Index i) const {
    if (!grid) return 1;
    const Index outputs = grid.outputs(numbers.width);
    const S* row = numbers.row(i);
    const auto count =
        std::count_if(row, row + grid.times * outputs, [](const S& x) { return value_of(x) == value_of(x); });
    return static_cast<double>(count) / static_cast<double>(outputs);
  }
};

/// Samples: rows of X with their targets; no weights: all 1. They may be numbers of S beside controls of
/// another scalar.
template <class S>
struct Data {
  RowTable<S> X;
  Targets<S> targets;
  const S* weights;
  Index samples;
  double batch_scale = 0;  ///< of a batch or some of the rows: what multiplies its sum of losses

  Data slice(const Range& rows) const {
    return {X.from(rows.begin), targets.from(rows.begin), weights ? weights + rows.begin : nullptr,
            rows.size(), batch_scale};
  }

  double weight(Index i) const { return weights ? static_cast<double>(value_of(weights[i])) : 1; }

  double scale(bool mean) const {
    if (batch_scale != 0) return batch_scale;
    if (!mean) return 1;
    if (!weights && !targets.grid) return 1 / static_cast<double>(samples);
    const Shards shards = Shards::of(samples);
    return 1 / tree_sum(0, shards.all, [&](Index k) {
             const Index begin = k * shards.size;
             return sum_of_weights({begin, std::min(begin + shards.size, samples)});
           });
  }

  double sum_of_weights(Range rows) const {
    double sum = 0;
    for (Index i = rows.begin; i < rows.end; ++i) sum += weight_in_mean(i);
    return sum;
  }
  double weight_in_mean(Index i) const { return weight(i) * targets.observed(i); }
};

/// The losses of the samples: the cost of the outputs.
template <class T, class S>
class LossCost : public Cost<T> {
 public:
  /// `gauss_newton`, of dual numbers: the cotangents become those of a Gauss-Newton product, see
  /// curvature.hpp.
  LossCost(Index outputs, const Data<S>& data, const Loss& loss, double scale, bool gauss_newton = false)
      : outputs_(outputs), data_(data), loss_(loss), scale_(scale), gauss_newton_(gauss_newton) {}

  CostNeeds needs() const override {
    return {.outputs = OutputUse::read_and_write_cotangents, .scratch_size = (outputs_ + 1) * tile_width<T>};
  }

  /// Adds the sums of the weighted losses; the cotangents are those of the losses times the scale.
  void evaluate(const CostBlock<T>& at) const override {
    const Index scratch = needs().scratch_size * at.thread.first;
    const Plane<T> cotangents = at.output_cotangents.slice(at.thread);
    evaluate(at.block, at.thread.range(), at.outputs.slice(at.thread).data(), cotangents.data(),
             at.scratch + scratch, at.values + at.thread.first);
  }

  /// The same for some tiles of a block; pointers are to the first of these tiles, `dz` may be null.
  void evaluate(const Block& block, const Range& tiles, const T* z, T* dz, T* scratch, Wide<T>* values) const;

 private:
  Index outputs_;
  const Data<S>& data_;
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
        for (Index o = 0; o < outputs_; ++o) targets[o * width + s] = T(data_.targets.numbers.row(i)[o]);
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

/// Out of line: where the type is known, as in `output_gradient`, all losses would be inlined, and GCC 12
/// crashes on seven of them.
template <class T, class S>
[[gnu::noinline]] void LossCost<T, S>::evaluate(const Block& block, const Range& tiles, const T* z, T* dz,
                                                T* scratch, Wide<T>* values) const {
  const Index size = outputs_ * tile_width<T>, count = tiles.size();
  T *targets = scratch, *weights = scratch + count * size;
  for (Index t = 0; t < count; ++t)
    fill(block, tiles.begin + t, targets + t * size, weights + t * tile_width<T>);
  std::visit(
      [&](const auto& loss) {
        for (Index t = 0; t < count; ++t) {
          const OutputTile<T> tile{outputs_, z + t * size, targets + t * size, weights + t * tile_width<T>};
          T* tile_dz = dz ? dz + t * size : nullptr;
          values[t] += tile_loss(loss, tile, tile_dz);
          if constexpr (is_dual<T>)
            if (gauss_newton_) keep_curvature(loss, tile, tile_dz);
        }
      },
      loss_);
  for (Index n = 0; dz && n < count * size; ++n) dz[n] *= T(scale_);
}

/// f(loss, kinetic) with the costs of the samples: their losses and, unless null, their kinetic energy, which
/// a Gauss-Newton product leaves out.
template <class T, class S, class F>
auto with_costs(const Network& net, const T* controls, const Data<S>& data, const Objective& objective,
                double scale, bool gauss_newton, const F& of_costs) {
  const auto weight_of = [&data](Index i) { return data.weight(i); };
  const KineticCost<T, decltype(weight_of)> energy(net, objective.kinetic, scale, weight_of);
  const Cost<T>* kinetic = objective.kinetic > 0 && !gauss_newton ? &energy : nullptr;
  const auto f = [&](const Cost<T>& loss) { return of_costs(loss, kinetic); };
  if (!data.targets.grid) return f(LossCost<T, S>(net.outputs, data, objective.loss, scale, gauss_newton));
  const RowTable<S>& values = data.targets.numbers;
  const Observed<S> observed{data.targets.times(), values.data, values.width, data.weights};
  return f(ObservedLossCost<T, S>(net, controls, observed, objective.loss, scale, gauss_newton));
}

/// The losses without the regulariser, of some of the rows with their scale, after `start_sum` and the rows
/// before them: the sums by the controls and the value, not yet scaled, stay in the workspace's tree.
template <class T, class S>
void add_up_losses(const Network& net, const T* controls, const Data<S>& data, const Objective& objective,
                   const Derivatives<T>& out, Workspace<T>& workspace, const BlockPlan& plan,
                   bool gauss_newton = false) {
  with_costs(net, controls, data, objective, data.scale(objective.mean), gauss_newton,
             [&](const Cost<T>& loss, const Cost<T>* kinetic) {
               AdjointSweep<T>(net, controls, {net, data.X.data}, data.samples, {&loss, kinetic}, out,
                               workspace, plan)
                   .add_up();
             });
}

/// J and its derivatives: forward, losses and, where derivatives are wanted, backward, block by block.
/// `more_cost`, unless null, adds its derivatives; its values are scaled as the losses.
template <class T, class S>
Wide<T> value_and_derivatives(const Network& net, const T* controls, const Data<S>& data,
                              const Objective& objective, const Derivatives<T>& derivatives,
                              Workspace<T>& workspace, const BlockPlan& plan,
                              const Cost<T>* more_cost = nullptr) {
  const double scale = data.scale(objective.mean);
  const Wide<T> value =
      scale * with_costs(net, controls, data, objective, scale, false,
                         [&](const Cost<T>& loss, const Cost<T>* kinetic) {
                           return AdjointSweep<T>(net, controls, {net, data.X.data}, data.samples,
                                                  {&loss, kinetic, more_cost}, derivatives, workspace, plan)
                               .run();
                         });
  if (objective.regulariser.none()) return value;
  if (derivatives.known_finite) *derivatives.known_finite = false;
  return value + objective.regulariser.add(net, controls, derivatives.controls);
}

template <class T, class S>
Wide<T> value_and_derivatives(const Network& net, const T* controls, const Data<S>& data,
                              const Objective& objective, const Derivatives<T>& derivatives,
                              Workspace<T>& workspace, const Cost<T>* more_cost = nullptr) {
  return value_and_derivatives<T>(net, controls, data, objective, derivatives, workspace,
                                  plan_blocks<T>(net, data.samples, data.targets.grid.kept_per_sample(net)),
                                  more_cost);
}

template <class T, class S>
Wide<T> value(const Network& net, const T* controls, const Data<S>& data, const Objective& objective,
              Workspace<T>& workspace) {
  return value_and_derivatives<T>(net, controls, data, objective, {}, workspace);
}

/// What the loss compares with the targets: the outputs, (samples, outputs), or of observations those at
/// their times, (samples, times, outputs).
template <class T>
void predict(const Network& net, const T* controls, const Data<T>& data, T* outputs,
             Workspace<T>& workspace) {
  if (data.samples == 0) return;
  if (!data.targets.grid)
    return forward<T>(net, controls, data.X.data, data.samples, {.outputs = outputs}, workspace);
  const ObservedOutputs<T> cost(net, controls, data.targets.times(), outputs);
  AdjointSweep<T>(net, controls, {net, data.X.data}, data.samples, {&cost}, {}, workspace).run();
}

/// f(cost) with the cost of given cotangents of these.
template <class T, class F>
void with_given_cotangents(const Network& net, const T* controls, const Data<T>& data, const T* cotangents,
                           const F& f) {
  if (data.targets.grid)
    f(ObservedCotangents<T>(net, controls, data.targets.times(), cotangents));
  else
    f(GivenCotangents<T>(cotangents));
}

/// The gradient of the losses by these outputs, (samples, outputs), of which `value_and_derivatives` is the
/// vjp.
template <class T>
void output_gradient(const Objective& objective, const Data<T>& data, Index outputs, const T* rows,
                     T* gradient) {
  constexpr Index width = tile_width<T>;
  const LossCost<T, T> cost(outputs, data, objective.loss, data.scale(objective.mean));
  const Block all{0, 0, data.samples};
  std::vector<T> memory(static_cast<std::size_t>(2 * outputs * width + cost.needs().scratch_size));
  T *z = memory.data(), *dz = z + outputs * width, *scratch = dz + outputs * width;
  for (Index t = 0; t < tiles_for<T>(data.samples); ++t) {
    const Index first = t * width, count = std::min(width, data.samples - first);
    Wide<T> value{};
    rows_to_plane<T>(rows + first * outputs, count, outputs, {z, outputs, 1});
    cost.evaluate(all, {t, t + 1}, z, dz, scratch, &value);
    plane_to_rows<T>({dz, outputs, 1}, count, outputs, gradient + first * outputs);
  }
}

// Compiled once, in objective.cpp.
extern template class LossCost<double, double>;
extern template class LossCost<float, float>;
extern template class ObservedLossCost<double, double>;
extern template class ObservedLossCost<float, float>;
extern template double value_and_derivatives<double>(const Network&, const double*, const Data<double>&,
                                                     const Objective&, const Derivatives<double>&,
                                                     Workspace<double>&, const BlockPlan&,
                                                     const Cost<double>*);
extern template double value_and_derivatives<float>(const Network&, const float*, const Data<float>&,
                                                    const Objective&, const Derivatives<float>&,
                                                    Workspace<float>&, const BlockPlan&, const Cost<float>*);

}  // namespace ocdl
