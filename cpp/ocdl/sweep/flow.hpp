#pragma once

#include "ocdl/sweep/block_loop.hpp"
#include "ocdl/sweep/tangent.hpp"

/// Sweeps of all samples: blocks in, rows out.
namespace ocdl {

/// Samples of a narrow state whose planes stay in the first cache while nothing else is kept of a block.
template <class T>
Index cached_samples(Index dim) {
  constexpr Index bytes = 8192;
  return tiles_for<T>(bytes / Index(sizeof(T)) / dim) * tile_width<T>;
}

/// What a forward sweep writes; null pointers are left out.
template <class T>
struct ForwardResults {
  T* states = nullptr;       ///< y, (N+1, samples, dim)
  T* final_state = nullptr;  ///< y[N], (samples, dim)
  T* outputs = nullptr;      ///< W y[N] + mu, (samples, outputs)
};

template <class T>
void forward(const Network& net, const T* controls, const T* X, Index samples, const ForwardResults<T>& out,
             Workspace<T>& workspace) {
  BlockPlan plan = plan_rows<T>(net, samples);
  if (net.is_narrow<T>()) plan.samples = std::min(plan.samples, cached_samples<T>(net.dim));
  BlockLoop<T> loop(net, plan, samples, 1, workspace);
  const T* swept = field_controls(net, controls, 0, workspace);
  const Integrator<T> integrator(net, swept);
  const Controls<const T> u = net.split(swept);
  const SampleRows<T> data(net, X);
  const StateRows<T> state_rows(out.states, net, samples), final_rows(out.final_state, net, samples);
  BlockLayout<T> layout = loop.layout();
  const StageMemory<T> stage_memory(net, single_state_shape(net), net.field<T>().needs_scratch_forward(),
                                    layout);
  const PlaneSlot outputs = layout.planes(1, net.outputs);

  loop.run(layout, [&](const BlockTask<T>& task) {
    const auto& [thread, rows] = std::tie(task.thread, task.rows);
    const StageScratch<T> scratch = stage_memory.scratch(task);
    const Trajectory<T> trajectory = stage_memory.trajectory(task);
    const Plane<T> y = trajectory.state(0);
    data.write_features(rows, y.slice(thread));
    state_rows.write(0, y.slice(thread), rows);
    for (Index j = 0; j < net.layers; ++j) {
      if (!task.should_continue()) return;
      data.write_inputs(rows, j, y.slice(thread), stage_memory.input_changes(task));
      integrator.step(j, y, trajectory.stages(0), y, scratch, thread);
      state_rows.write(j + 1, y.slice(thread), rows);
    }
    final_rows.write(0, y.slice(thread), rows);
    if (!out.outputs) return;
    const Plane<T> z = task.plane(outputs);
    read_out<T>(u, y, z, thread);
    plane_to_rows<T>(z.slice(thread), rows.size(), net.outputs, out.outputs + rows.begin * net.outputs);
  });
}

/// The variational trajectory (N+1, samples, dim) along the controls' direction and the direction dX of the
/// rows of X; null pointers are zero directions.
template <class T>
void tangent(const Network& net, const T* controls, const T* X, Index samples, const T* direction,
             const T* dX, T* tangents, Workspace<T>& workspace) {
  BlockPlan plan = plan_rows<T>(net, samples);
  plan.by_team = false;
  BlockLoop<T> loop(net, plan, samples, 2, workspace);
  const Tangent<T> sweep(net, field_controls(net, controls, 0, workspace),
                         field_controls(net, direction, 1, workspace));
  const StateRows<T> tangent_rows(tangents, net, samples);
  const Index hidden_rows = net.hidden.rows;
  BlockLayout<T> layout = loop.layout();
  const StageMemory<T> stage_memory(net, single_state_shape(net), net.field<T>().needs_scratch_forward(),
                                    layout);
  const SampleRows<T> data(net, X), data_direction(net, dX);
  const Index state_rows = net.rows();
  const PlaneSlot state = layout.planes(1, state_rows), v_stage = layout.planes(1, state_rows),
                  k_tangents = layout.planes(net.stages, state_rows), hidden = layout.planes(2, hidden_rows),
                  work = layout.planes(1, state_rows),
                  input_changes = layout.planes(net.inputs ? 2 : 0, net.inputs);

  loop.run(layout, [&](const BlockTask<T>& task) {
    const TangentScratch<T> tangent_scratch{
        task.plane(v_stage),
        {task.planes(k_tangents), {}, 0, net.changes_inputs() ? task.plane(input_changes) : Plane<T>()},
        {task.planes(hidden), task.plane(work)}};
    const Trajectory<T> trajectory = stage_memory.trajectory(task);
    const Plane<T> y = trajectory.state(0), v = task.plane(state);
    const Range& rows = task.rows;
    data.write_features(rows, y);
    data_direction.write_features(rows, v);
    tangent_rows.write(0, v, rows);
    for (Index j = 0; j < net.layers; ++j) {
      if (!task.should_continue()) return;
      data.write_inputs(rows, j, y, stage_memory.input_changes(task));
      data_direction.write_inputs(rows, j, v, task.planes(input_changes));
      sweep.step(j, y, v, trajectory.stages(0), stage_memory.scratch(task), tangent_scratch);
      tangent_rows.write(j + 1, v, rows);
    }
  });
}

// Compiled once, in flow.cpp.
extern template void forward<double>(const Network&, const double*, const double*, Index,
                                     const ForwardResults<double>&, Workspace<double>&);
extern template void forward<float>(const Network&, const float*, const float*, Index,
                                    const ForwardResults<float>&, Workspace<float>&);
extern template void tangent<double>(const Network&, const double*, const double*, Index, const double*,
                                     const double*, double*, Workspace<double>&);
extern template void tangent<float>(const Network&, const float*, const float*, Index, const float*,
                                    const float*, float*, Workspace<float>&);

}  // namespace ocdl
