#pragma once

#include "ocdl/sweep/adjoint.hpp"
#include "ocdl/sweep/block_loop.hpp"
#include "ocdl/sweep/cotangents.hpp"
#include "ocdl/sweep/derivatives.hpp"

namespace ocdl {

/// Begins a sum of so many samples, which may be a part of all, and unless null of their gradients.
template <class T>
void start_sum(const Network& net, const Shards& shards, Index samples, T* gradient,
               Workspace<T>& workspace) {
  workspace.tree.start(shards, shards.count(samples), net.control_size(), gradient);
}

/// Whether sweeps can show that all controls and the gradient are finite: where states are wide and samples
/// few, to read them again would take a while.
inline bool can_check_finite_inline(const Network& net, const BlockPlan& plan, Index samples) {
  return plan.by_team && block_count(plan, samples) == 1 && !traits_of(net.field_kind).is_mapped &&
         net.uses_all_controls();
}

/// The costs of all samples and their derivatives: forward, costs and backward, block by block. Without
/// derivatives there is no way back.
template <class T>
class AdjointSweep {
 public:
  AdjointSweep(const Network& net, const T* controls, const SampleRows<T>& X, Index samples,
               const CostList<T>& costs, const Derivatives<T>& derivatives, Workspace<T>& workspace)
      : AdjointSweep(net, controls, X, samples, costs, derivatives, workspace,
                     plan_blocks<T>(net, samples, costs.kept_per_sample())) {}

  /// With another plan: the result's bits depend on the cut into blocks and shards, not on the storage.
  AdjointSweep(const Network& net, const T* controls, const SampleRows<T>& X, Index samples,
               const CostList<T>& costs, const Derivatives<T>& derivatives, Workspace<T>& workspace,
               const BlockPlan& plan)
      : net_(net),
        swept_(field_controls(net, controls, 0, workspace)),
        u_(net.split(swept_)),
        X_(X),
        samples_(samples),
        costs_(costs),
        out_(derivatives),
        workspace_(workspace),
        plan_(plan),
        integrator_(net, swept_),
        costate_rows_(derivatives.costates, net, samples),
        row_gradient_(net, derivatives.rows),
        known_finite_(out_.controls && can_check_finite_inline(net, plan, samples)) {}

  // Defined outside the class, so that only adjoint_sweep.cpp compiles what they call: it is most of the
  // core.

  /// The sum of the costs.
  Wide<T> run();

  /// The same of some of the samples, after those before them: what is summed stays in the workspace's tree,
  /// and the field's map is not transposed yet.
  void add_up();

 private:
  const Network& net_;
  const T* swept_;  ///< the controls as the sweeps take them
  Controls<const T> u_;
  SampleRows<T> X_;
  Index samples_;
  CostList<T> costs_;
  Derivatives<T> out_;
  Workspace<T>& workspace_;
  BlockPlan plan_;
  Integrator<T> integrator_;
  StateRows<T> costate_rows_;
  RowGradient<T> row_gradient_;
  std::atomic<bool> known_finite_;  ///< p[0], and the gradient by what multiplies states

  /// Where everything stands in a worker's memory.
  struct Memory {
    StageMemory<T> stages;
    Index values, cost_scratch, fused_sums = 0, panels = 0, tile_dots = 0, gradient = 0;
    PlaneSlot outputs, output_cotangents, more_cotangents;
    PlaneSlot costate, stage_cotangents, hidden_cotangent, state_cotangent, eta, input_cotangent;

    Memory(const AdjointSweep& sweep, BlockLayout<T>& layout)
        : stages(sweep.net_, sweep.trajectory_shape(), true, layout),
          values(layout.array(layout.tiles() * Index(sizeof(Wide<T>) / sizeof(T)))),
          cost_scratch(layout.array(layout.tiles() * sweep.costs_.needs().scratch_size)) {
      const Network& net = sweep.net_;
      const CostList<T>& costs = sweep.costs_;
      outputs = layout.planes(costs.needs().outputs == OutputUse::read_and_write_cotangents, net.outputs);
      if (!sweep.out_.any()) return;
      output_cotangents = layout.planes(costs.output_costs() > 0, net.outputs);
      more_cotangents = layout.planes(costs.output_costs() > 1, net.outputs);
      const Field<T> field = net.field<T>();
      const Index hidden_rows = net.hidden.rows;
      const Index rows = net.rows();
      costate = layout.planes(1, rows);
      stage_cotangents = layout.planes(net.largest_group ? net.stages : 1, rows);
      hidden_cotangent = layout.planes(1, hidden_rows);
      state_cotangent = layout.planes(field.needs_state_cotangent(), rows);
      eta = layout.planes(net.stages, rows);
      input_cotangent = layout.planes(sweep.row_gradient_.has_inputs(), net.inputs);
      fused_sums = layout.array(net.control_stages * net.fused_sums_size<T>());
      panels = layout.array(panel::transposed_size<T>(std::max(rows, hidden_rows), layout.tiles()));
      tile_dots = layout.array(layout.tiles() * lanes<T>);
      // A team adds to the shard's sum itself; a thread with a block of its own merges one.
      if (sweep.out_.controls && !sweep.plan_.by_team) gradient = layout.array(net.control_size());
    }

    Wide<T>* values_in(T* memory) const { return reinterpret_cast<Wide<T>*>(memory + values); }
    AdjointScratch<T> adjoint(const BlockTask<T>& task, const StageScratch<T>& scratch) const {
      return {task.planes(stage_cotangents),
              {task.plane(hidden_cotangent), task.plane(state_cotangent)},
              scratch.state,
              task.planes(eta),
              task.memory + fused_sums,
              task.memory + panels,
              task.memory + tile_dots,
              scratch.product,
              scratch.equations,
              scratch.stop_token};
    }
  };

  /// Without derivatives a state is overwritten by the next one, unless a cost reads them.
  bool keeps_states() const { return out_.any() || costs_.needs().reads_states; }
  TrajectoryShape trajectory_shape() const {
    return keeps_states() ? net_.trajectory_shape(out_.any() ? plan_.storage : Storage::states_only)
                          : single_state_shape(net_);
  }

  void process(const BlockTask<T>& task, const Memory& memory) {
    const StageScratch<T> scratch = memory.stages.scratch(task);
    const Trajectory<T> trajectory = memory.stages.trajectory(task);
    const Plane<T> final_state = trajectory.state(keeps_states() ? net_.layers : 0);
    const Plane<T> outputs = task.plane(memory.outputs), cotangents = task.plane(memory.output_cotangents);
    const BlockCosts<T> costs(costs_,
                              {net_, u_, task.block, task.thread, trajectory, outputs, cotangents,
                               memory.values_in(task.memory), task.memory + memory.cost_scratch},
                              plan_.samples / tile_width<T>, task.plane(memory.more_cotangents));
    if (!run_forward(task, trajectory, costs, scratch, memory)) return;
    if (outputs) read_out<T>(u_, final_state, outputs, task.thread);
    costs.evaluate();
    if (out_.any()) run_backward(task, trajectory, costs, scratch, memory);
  }

  /// Whether it came to its end.
  bool run_forward(const BlockTask<T>& task, const Trajectory<T>& trajectory, const BlockCosts<T>& costs,
                   const StageScratch<T>& scratch, const Memory& memory) const {
    X_.write_features(task.rows, trajectory.state(0).slice(task.thread));
    const Index step = keeps_states() ? 1 : 0;
    for (Index j = 0; j < net_.layers; ++j) {
      if (!task.should_continue()) return false;
      const Stages<T> stages = trajectory.stages(j);
      const Plane<T> y = trajectory.state(j * step);
      X_.write_inputs(task.rows, j, y.slice(task.thread), memory.stages.input_changes(task));
      integrator_.step(j, y, stages, trajectory.state((j + 1) * step), scratch, task.thread);
      costs.add_layer(j, stages);
    }
    return true;
  }

  void run_backward(const BlockTask<T>& task, const Trajectory<T>& trajectory, const BlockCosts<T>& costs,
                    const StageScratch<T>& scratch, const Memory& memory) {
    const ThreadSlice<T>& thread = task.thread;
    const bool accumulate = plan_.by_team && task.block.number > 0;
    const Plane<T> p = task.plane(memory.costate), p_slice = p.slice(thread);
    const AdjointScratch<T> adjoint_scratch = memory.adjoint(task, scratch);
    T* const gradient = !out_.controls  ? nullptr
                        : plan_.by_team ? workspace_.tree.open().vector
                                        : task.memory + memory.gradient;
    const Controls<T> du = net_.split(gradient);
    start_costate(task, trajectory.state(net_.layers), task.plane(memory.output_cotangents), p, du,
                  accumulate, adjoint_scratch);
    costs.add_state_cotangents(net_.layers, p_slice);
    costate_rows_.write(net_.layers, p_slice, task.rows);

    const Adjoint<T> adjoint(net_, swept_, gradient, accumulate);
    FiniteProbe probe;
    for (Index j = net_.layers - 1; j >= 0; --j) {
      if (!task.should_continue()) return;
      const Plane<T> y = trajectory.state(j);
      const Stages<T> stages = trajectory.stages(j);
      X_.write_inputs(task.rows, j, y.slice(thread), memory.stages.input_changes(task));
      if (trajectory.storage() == Storage::states_only)
        integrator_.evaluate_stages(j, y, stages, scratch, thread);
      adjoint.step(j, y, stages, p, costs, adjoint_scratch, thread, probe);
      detail::clear_rows(p_slice, net_.dim);
      costs.add_state_cotangents(j, p_slice);
      costate_rows_.write(j, p_slice, task.rows);
      row_gradient_.add_layer(task.rows, j, adjoint_scratch.eta.slice(thread),
                              task.plane(memory.input_cotangent).slice(thread));
    }
    costs.add_control_gradient(du);
    if (known_finite_ && (!probe.known_finite() || first_non_finite(p_slice.data(), 0, p_slice.size()) >= 0))
      known_finite_ = false;
    row_gradient_.write_features(task.rows, p_slice);
  }

  /// p = W^T times the cotangents of the outputs, and the gradient of the readout; 0 where no cost has
  /// outputs.
  void start_costate(const BlockTask<T>& task, const Plane<const T>& final_state, const Plane<T>& cotangents,
                     const Plane<T>& p, const Controls<T>& du, bool accumulate,
                     const AdjointScratch<T>& scratch) const {
    if (!cotangents) {
      const Plane<T> p_slice = p.slice(task.thread);
      std::fill_n(p_slice.data(), p_slice.size(), T(0));
      if (du && !accumulate && task.thread.team.rank() == 0) {
        du.W().setZero();
        du.mu().setZero();
      }
      return;
    }
    if (du)
      outer_product(cotangents, final_state, task.thread, accumulate, du.W(), du.mu().data(), scratch.panels);
    transposed_product(u_.W(), cotangents, p, task.thread, scratch.product);
    detail::clear_rows(p.slice(task.thread), net_.dim);
  }

  /// Adds a block to its shard, and a complete shard to those before it.
  void merge(const Block& block, const Team& team, const T* gradient, const Wide<T>* values) {
    if (team.rank() == 0) add_to_shard(block, gradient, values);
    if (block.ends_shard) workspace_.tree.close(team);
  }

  void add_to_shard(const Block& block, const T* gradient, const Wide<T>* values) {
    auto& shard = workspace_.tree.open();
    for (Index t = 0; !costs_.empty() && t < tiles_for<T>(block.samples); ++t) shard.value += values[t];
    if (!out_.controls || plan_.by_team) return;
    for (Index n = 0; n < net_.control_size(); ++n)
      shard.vector[n] = block.number == 0 ? gradient[n] : shard.vector[n] + gradient[n];
  }

  /// Where a control that multiplies states is not finite, p[0] is not; the others are few.
  bool is_known_finite() const {
    return known_finite_ && std::all_of(net_.parts.begin(), net_.parts.end(), [&](const Part& part) {
             const auto [begin, end] = part.range;
             return part.multiplies_states || (first_non_finite(swept_, begin, end) < 0 &&
                                               first_non_finite(out_.controls, begin, end) < 0);
           });
  }
};

template <class T>
Wide<T> AdjointSweep<T>::run() {
  start_sum(net_, plan_.shards, samples_, out_.controls, workspace_);
  add_up();
  if (out_.controls) transpose_field_map(net_, out_.controls);
  if (out_.known_finite) *out_.known_finite = is_known_finite();
  return workspace_.tree.finished()[0].value;
}

template <class T>
void AdjointSweep<T>::add_up() {
  BlockLoop<T> loop(net_, plan_, samples_, (out_.any() ? 2.5 : 1) * (is_dual<T> ? 3 : 1), workspace_);
  BlockLayout<T> layout = loop.layout();
  const Memory memory(*this, layout);
  loop.run(
      layout, [&](const BlockTask<T>& task) { process(task, memory); },
      [&](const Block& block, const Team& team, int worker) {
        const T* base = workspace_.memory(worker);
        merge(block, team, base + memory.gradient, memory.values_in(workspace_.memory(worker)));
      });
}

extern template class AdjointSweep<double>;
extern template class AdjointSweep<float>;

}  // namespace ocdl
