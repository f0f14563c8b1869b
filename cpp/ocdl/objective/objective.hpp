#pragma once

#include <cstdint>

#include "ocdl/objective/curvature.hpp"
#include "ocdl/objective/loss.hpp"
#include "ocdl/objective/regulariser.hpp"
#include "ocdl/sweep/adjoint.hpp"
#include "ocdl/sweep/flow.hpp"

namespace ocdl {

/// J(u) = R(u) + scale * sum_i w_i loss(W y_i[N] + mu, c_i), with scale = 1 ("sum") or 1 / sum_i w_i
/// ("mean").
struct Objective {
  Loss loss = Loss::squared;
  bool mean = true;
  Regulariser regulariser;
};

/// Samples are rows of X; labels are 0 .. max(outputs, 2) - 1; no weights: all 1.
template <class T>
struct Data {
  const Passive<T>* X;
  const std::int64_t* labels;
  const Passive<T>* weights;
  Index samples;
  double batch_scale = 0;  ///< of a batch: what multiplies its sum of losses

  double scale(bool mean) const {
    if (batch_scale != 0) return batch_scale;
    if (!mean) return 1;
    if (!weights) return 1 / static_cast<double>(samples);
    double sum = 0;
    for (Index i = 0; i < samples; ++i) sum += static_cast<double>(value_of(weights[i]));
    return 1 / sum;
  }
};

/// Where the derivatives of an evaluation go; null pointers are not wanted.
template <class T>
struct Derivatives {
  T* controls = nullptr;  ///< dJ/du
  T* inputs = nullptr;    ///< dJ/dX = p[0], (samples, features)
  T* costates = nullptr;  ///< p, (N+1, samples, dim)
  /// Of dual numbers: the values of `controls` become a Gauss-Newton product, see curvature.hpp.
  bool gauss_newton = false;

  bool any() const { return controls || inputs || costates; }
};

/// One evaluation of J on all samples: forward, loss and, where derivatives are wanted, backward, block by
/// block.
template <class T>
class Evaluation {
 public:
  Evaluation(const Network& net, const T* controls, const Data<T>& data, const Objective& objective,
             const Derivatives<T>& derivatives, Workspace<T>& workspace)
      : Evaluation(net, controls, data, objective, derivatives, workspace,
                   plan_blocks<T>(net, data.samples)) {}

  /// With a plan of one's own: the result's bits depend on the cut into blocks, not on the storage.
  Evaluation(const Network& net, const T* controls, const Data<T>& data, const Objective& objective,
             const Derivatives<T>& derivatives, Workspace<T>& workspace, const BlockPlan& plan)
      : net_(net),
        controls_(controls),
        swept_(field_controls(net, controls, 0, workspace)),
        u_(net.split(swept_)),
        data_(data),
        objective_(objective),
        out_(derivatives),
        workspace_(workspace),
        plan_(plan),
        scale_(data.scale(objective.mean)),
        integrator_(net, swept_),
        state_rows_(derivatives.costates, net, data.samples) {
    if (!out_.any()) plan_.storage = Storage::states_only;
  }

  Wide<T> run() {
    const double sweeps = (out_.any() ? 2.5 : 1) * (is_dual<T> ? 3 : 1);
    const ThreadChoice choice(sweeps * forward_work(net_, data_.samples),
                              parallel_parts<T>(plan_, data_.samples));
    workspace_.reserve(plan_.by_team ? 1 : choice.most(), memory_size(choice.most()));
    loss_ = Wide<T>{};
    for_each_block(
        data_.samples, plan_, choice.threads(),
        [&](const Block& block, const Team& team, int worker) { process(block, team, worker); },
        [&](const Block& block, int worker) { merge(block, worker); });
    if (workspace_.watch) workspace_.watch->throw_if_stopped();
    if (out_.controls) pull_back_controls(net_, out_.controls);
    Wide<T> value = scale_ * loss_;
    if (!objective_.regulariser.none()) value += objective_.regulariser.add(net_, controls_, out_.controls);
    return value;
  }

 private:
  const Network& net_;
  const T* controls_;
  const T* swept_;  ///< the controls as the sweeps take them
  Controls<const T> u_;
  Data<T> data_;
  Objective objective_;
  Derivatives<T> out_;
  Workspace<T>& workspace_;
  BlockPlan plan_;
  double scale_;
  Integrator<T> integrator_;
  StateRows<T> state_rows_;
  Wide<T> loss_{};
  bool goes_on_ = true;  ///< what the first thread of a team tells the others

  /// A worker's memory: the same pieces for every block.
  struct Memory {
    T *trajectory, *stage, *costate, *outputs, *output_slopes, *targets, *weights, *tile_losses, *gradient;
    AdjointScratch<T> adjoint;
  };

  Index plane() const { return net_.dim * plan_.samples; }
  /// Without derivatives a state is overwritten by the next one.
  Index stored_layers() const { return out_.any() ? net_.layers : 0; }

  Memory carve(Carver<T>&& carver, int rank) const { return carve(carver, rank); }
  Memory carve(Carver<T>& carver, int rank) const {
    constexpr Index wide = sizeof(Wide<T>) / sizeof(T);
    const Index tiles = plan_.samples / tile_width<T>;
    const bool backward = out_.any();
    Memory m;
    m.trajectory = carver.take(
        plane() * Trajectory<T>::planes(stored_layers(), net_.stages, net_.detail_planes(), plan_.storage));
    m.stage = carver.take(plane());
    m.outputs = carver.take(net_.outputs * plan_.samples);
    m.output_slopes = carver.take(net_.outputs * plan_.samples);
    m.targets = carver.take(net_.outputs * plan_.samples);
    m.weights = carver.take(plan_.samples);
    m.tile_losses = carver.take(tiles * wide);
    m.costate = carver.take(backward ? plane() : 0);
    m.adjoint.cotangent = carver.take(backward ? (net_.largest_group ? net_.stages : 1) * plane() : 0);
    m.adjoint.delta = carver.take(backward ? plane() : 0);
    m.adjoint.rotated = carver.take(backward && net_.field_kind == FieldKind::hamiltonian ? plane() : 0);
    m.adjoint.stage = m.stage;
    m.adjoint.eta = carver.take(backward ? net_.stages * plane() : 0);
    m.adjoint.panels = carver.take(backward ? panel::transposed_size<T>(net_.dim, tiles) : 0);
    m.adjoint.tile_dots = carver.take(backward ? tiles * lanes<T> : 0);
    // A team adds to the result itself; a thread with a block of its own hands in a sum.
    m.gradient = plan_.by_team ? out_.controls : carver.take(out_.controls ? net_.control_size() : 0);
    if (!out_.controls) m.gradient = nullptr;
    const Index equations = StageEquations<T>::scratch_size(net_);
    carver.take(rank * (panel::scratch_size<T>() + equations));
    m.adjoint.product = carver.take(panel::scratch_size<T>());
    m.adjoint.equations = carver.take(equations);
    return m;
  }

  StageScratch<T> stage_scratch(const Memory& memory, Index offset) const {
    return {memory.stage + offset, memory.adjoint.product, memory.adjoint.equations};
  }

  Index memory_size(int threads) const {
    Carver<T> counter(nullptr);
    carve(counter, plan_.by_team ? threads - 1 : 0);
    return counter.used();
  }

  void process(const Block& block, const Team& team, int worker) {
    const Memory memory = carve(Carver<T>(workspace_.memory(worker)), team.rank());
    const Share<T> share = Share<T>::of(team, tiles_for<T>(block.samples));
    const Trajectory<T> trajectory(memory.trajectory, plane(), stored_layers(), net_.stages,
                                   net_.detail_planes(), plan_.storage);
    const bool is_caller = worker == 0 && team.rank() == 0;
    if (!team.agree(run_forward(block, share, trajectory, memory, is_caller), goes_on_)) return;
    run_loss(block, share, trajectory.state(stored_layers()), memory);
    if (out_.any()) run_backward(block, share, trajectory, memory, team, is_caller);
  }

  /// Whether it came to its end.
  bool run_forward(const Block& block, const Share<T>& share, const Trajectory<T>& trajectory,
                   const Memory& memory, bool is_caller) const {
    const Index offset = share.offset(net_.dim);
    const Range samples = share.samples(block);
    rows_to_plane(data_.X + samples.begin * net_.features, samples.end - samples.begin, net_.features,
                  net_.dim, trajectory.state(0) + offset);
    for (Index j = 0; j < net_.layers; ++j) {
      if (!goes_on(workspace_, net_, share, is_caller)) return false;
      const T* y = trajectory.state(std::min(j, stored_layers())) + offset;
      T* next = trajectory.state(std::min(j + 1, stored_layers())) + offset;
      const Stages<T> stages = trajectory.stages(j, offset);
      integrator_.evaluate_stages(j, y, stages, stage_scratch(memory, offset), share.tiles);
      integrator_.advance(j, y, stages, next, share.tiles);
    }
    return true;
  }

  void run_loss(const Block& block, const Share<T>& share, const T* final_state, const Memory& memory) const {
    constexpr Index width = tile_width<T>;
    const Index q = net_.outputs, offset = share.offset(q);
    affine(q, net_.dim, u_.W, u_.mu, final_state + share.offset(net_.dim), memory.outputs + offset,
           share.tiles);
    Wide<T>* losses = reinterpret_cast<Wide<T>*>(memory.tile_losses);
    for (Index t = share.first; t < share.first + share.tiles; ++t) {
      T *targets = memory.targets + t * q * width, *weights = memory.weights + t * width;
      fill_labels(block, t, targets, weights);
      T* slopes = out_.any() ? memory.output_slopes + t * q * width : nullptr;
      const OutputTile<T> tile{q, memory.outputs + t * q * width, targets, weights};
      losses[t] = tile_loss(objective_.loss, tile, slopes);
      if constexpr (is_dual<T>)
        if (out_.gauss_newton) keep_curvature(objective_.loss, tile, slopes);
      for (Index n = 0; slopes && n < q * width; ++n) slopes[n] *= T(scale_);
    }
  }

  /// One-hot targets and weights of tile t; the padding has weight 0. Labels were checked, but the array is
  /// the caller's: where a callback or another thread has written to it since, a label may name no output.
  void fill_labels(const Block& block, Index t, T* targets, T* weights) const {
    constexpr Index width = tile_width<T>;
    std::fill_n(targets, net_.outputs * width, T(0));
    for (Index s = 0; s < width; ++s) {
      const Index in_block = t * width + s;
      const bool padding = in_block >= block.samples;
      const Index i = block.first + std::min(in_block, block.samples - 1);
      weights[s] = padding ? T(0) : data_.weights ? T(data_.weights[i]) : T(1);
      const Index label = static_cast<Index>(data_.labels[i]);
      if (net_.outputs == 1)
        targets[s] = T(static_cast<double>(label));
      else if (0 <= label && label < net_.outputs)
        targets[label * width + s] = T(1);
    }
  }

  void run_backward(const Block& block, const Share<T>& share, const Trajectory<T>& trajectory,
                    const Memory& memory, const Team& team, bool is_caller) {
    const Index tiles = share.block_tiles, offset = share.offset(net_.dim);
    const Range samples = share.samples(block);
    const Index count = samples.end - samples.begin;
    const bool accumulate = plan_.by_team && block.number > 0;
    if (memory.gradient) {
      const Controls<T> du = net_.split(memory.gradient);
      outer_product(net_.outputs, net_.dim, memory.output_slopes, trajectory.state(net_.layers), tiles,
                    accumulate, du.W, du.mu, memory.adjoint.panels, team);
    }
    T* p = memory.costate;
    transposed_product(net_.outputs, net_.dim, u_.W, memory.output_slopes + share.offset(net_.outputs),
                       p + offset, share.tiles, memory.adjoint.product);
    state_rows_.write(net_.layers, p + offset, samples.begin, count);

    const Adjoint<T> adjoint(net_, swept_, memory.gradient, accumulate);
    for (Index j = net_.layers - 1; j >= 0; --j) {
      if (!team.agree(goes_on(workspace_, net_, share, is_caller), goes_on_)) return;
      const T* y = trajectory.state(j);
      if (trajectory.storage() == Storage::states_only)
        integrator_.evaluate_stages(j, y + offset, trajectory.stages(j, offset),
                                    stage_scratch(memory, offset), share.tiles);
      adjoint.step(j, y, trajectory, p, memory.adjoint, share, team);
      state_rows_.write(j, p + offset, samples.begin, count);
    }
    if (out_.inputs)
      plane_to_rows(p + offset, count, net_.features, net_.dim, out_.inputs + samples.begin * net_.features);
  }

  void merge(const Block& block, int worker) {
    const Memory memory = carve(Carver<T>(workspace_.memory(worker)), 0);
    const Wide<T>* losses = reinterpret_cast<const Wide<T>*>(memory.tile_losses);
    for (Index t = 0; t < tiles_for<T>(block.samples); ++t) loss_ += losses[t];
    if (!out_.controls || plan_.by_team) return;
    for (Index n = 0; n < net_.control_size(); ++n)
      out_.controls[n] = block.number == 0 ? memory.gradient[n] : out_.controls[n] + memory.gradient[n];
  }
};

// Compiled once, in objective.cpp: it is most of the core.
extern template class Evaluation<double>;
extern template class Evaluation<float>;

template <class T>
Wide<T> value(const Network& net, const T* controls, const Data<T>& data, const Objective& objective,
              Workspace<T>& workspace) {
  return Evaluation<T>(net, controls, data, objective, {}, workspace).run();
}

template <class T>
Wide<T> value_and_derivatives(const Network& net, const T* controls, const Data<T>& data,
                              const Objective& objective, const Derivatives<T>& derivatives,
                              Workspace<T>& workspace) {
  return Evaluation<T>(net, controls, data, objective, derivatives, workspace).run();
}

}  // namespace ocdl
