#pragma once

#include "ocdl/sweep/blocks.hpp"
#include "ocdl/sweep/field_controls.hpp"
#include "ocdl/sweep/tangent.hpp"
#include "ocdl/sweep/workspace.hpp"
#include "ocdl/thread_policy.hpp"

/// Sweeps of all samples: blocks in, rows out.
namespace ocdl {

/// Writes the rows of one state of all samples: state j of (N+1, samples, dim) numbers, or nothing.
template <class T>
class StateRows {
 public:
  StateRows(T* rows, const Network& net, Index samples) : rows_(rows), dim_(net.dim), samples_(samples) {}

  /// `plane`: a thread's slice, whose samples are the rows [rows.begin, rows.end).
  void write(Index j, const Plane<const T>& plane, const Range& rows) const {
    if (rows_) plane_to_rows(plane, rows.size(), dim_, rows_ + (j * samples_ + rows.begin) * dim_);
  }

 private:
  T* rows_;
  Index dim_, samples_;
};

/// Memory of one thread for the evaluation of stages, behind that of the threads before it in a team.
template <class T>
StageScratch<T> allocate_thread(const Network& net, int rank, const Plane<T>& state,
                                const StopToken& stop_token, Arena<T>& arena) {
  const Index product = net.field<T>().needs_scratch_forward() ? panel::scratch_size<T>() : 0;
  const Index equations = StageEquations<T>::scratch_size(net);
  arena.allocate(rank * (product + equations));
  T* first = arena.allocate(product);
  return {state, first, arena.allocate(equations), stop_token};
}

/// z = W y + mu, a plane of the outputs from a plane of the state.
template <class T>
void read_out(const Controls<const T>& u, const Plane<const T>& y, const Plane<T>& z,
              const ThreadSlice<T>& own) {
  affine(u.W(), u.mu().data(), y, z, own);
}

/// Samples of a narrow state whose planes stay in the first cache while nothing else is kept of a block.
template <class T>
Index cached_samples(Index dim) {
  constexpr Index bytes = 8192;
  return tiles_for<T>(bytes / Index(sizeof(T)) / dim) * tile_width<T>;
}

/// The memory of a forward sweep that overwrites a state by the next one: a trajectory without layers has one
/// state and the stages of one layer.
template <class T>
struct ForwardMemory {
  T* trajectory;
  Plane<T> stage;

  ForwardMemory(const Network& net, const BlockPlan& plan, Index tiles, Arena<T>& arena)
      : trajectory(arena.allocate(Trajectory<T>::size(shape(net), plan.samples))),
        stage(arena.allocate(plane_stride<T>(net.dim * plan.samples)), net.dim, tiles) {}

  static TrajectoryShape shape(const Network& net) {
    TrajectoryShape shape = net.trajectory_shape(Storage::states_only);
    shape.layers = 0;
    return shape;
  }
};

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
  const ThreadChoice choice(forward_work(net, samples), parallel_parts<T>(net, plan, samples));
  const T* swept = field_controls(net, controls, 0, workspace);
  const Integrator<T> integrator(net, swept);
  const Controls<const T> u = net.split(swept);
  const StateRows<T> state_rows(out.states, net, samples), final_rows(out.final_state, net, samples);
  const auto allocate = [&](Arena<T>& arena, Index tiles, int rank, const StopToken& stop_token) {
    const ForwardMemory<T> memory(net, plan, tiles, arena);
    const Plane<T> z(arena.allocate(net.outputs * plan.samples), net.outputs, tiles);
    return std::tuple(memory, z, allocate_thread<T>(net, rank, memory.stage, stop_token, arena));
  };
  Arena<T> counter(nullptr);
  allocate(counter, 0, plan.by_team ? choice.most() - 1 : 0, {});
  workspace.reserve(plan.by_team ? 1 : choice.most(), counter.used());

  bool agreed = true;  // what the first thread of a team decides for the others
  const auto process = [&](const Block& block, const Team& team, int worker) {
    const ThreadSlice<T> own = ThreadSlice<T>::of(team, block.samples);
    const Range rows = own.samples_from(block.first);
    const StopToken stop_token{workspace.stop_source, worker == 0 && team.rank() == 0};
    Arena<T> arena(workspace.memory(worker));
    const auto [memory, z, scratch] = allocate(arena, own.block_tiles, team.rank(), stop_token);
    const Trajectory<T> trajectory(memory.trajectory, memory.shape(net), plan.samples, own.block_tiles);
    const Plane<T> y = trajectory.state(0);

    rows_to_plane<T>(X + rows.begin * net.features, rows.size(), net.features, y.slice(own));
    state_rows.write(0, y.slice(own), rows);
    for (Index j = 0; j < net.layers; ++j) {
      if (!team.agree(should_continue(workspace, net, own, stop_token.is_caller), agreed)) return;
      integrator.step(j, y, trajectory.stages(0), y, scratch, own);
      state_rows.write(j + 1, y.slice(own), rows);
    }
    final_rows.write(0, y.slice(own), rows);
    if (!out.outputs) return;
    read_out<T>(u, y, z, own);
    plane_to_rows<T>(z.slice(own), rows.size(), net.outputs, out.outputs + rows.begin * net.outputs);
  };
  for_each_block(samples, plan, choice.threads(), process);
  if (workspace.stop_source) workspace.stop_source->throw_if_stopped();
}

/// The variational trajectory (N+1, samples, dim) along the controls' direction and the inputs' direction dX
/// (samples, features); null pointers are zero directions.
template <class T>
void tangent(const Network& net, const T* controls, const T* X, Index samples, const T* direction,
             const T* dX, T* tangents, Workspace<T>& workspace) {
  BlockPlan plan = plan_rows<T>(net, samples);
  plan.by_team = false;
  const ThreadChoice choice(2 * forward_work(net, samples), parallel_parts<T>(net, plan, samples));
  const Tangent<T> sweep(net, field_controls(net, controls, 0, workspace),
                         field_controls(net, direction, 1, workspace));
  const StateRows<T> tangent_rows(tangents, net, samples);
  const Index hidden_rows = net.field<T>().hidden().rows;
  const auto allocate = [&](Arena<T>& arena, Index tiles, const StopToken& stop_token) {
    const auto planes = [&](Index count, Index rows) {
      const Index stride = plane_stride<T>(rows * plan.samples);
      return Planes<T>({arena.allocate(count * stride), rows, tiles}, stride);
    };
    const ForwardMemory<T> memory(net, plan, tiles, arena);
    const Plane<T> v = planes(1, net.dim)[0], v_stage = planes(1, net.dim)[0];
    const Planes<T> k_tangents = planes(net.stages, net.dim), hidden = planes(2, hidden_rows);
    const TangentScratch<T> scratch{v_stage, k_tangents, {hidden, planes(1, net.dim)[0]}};
    return std::tuple(memory, v, scratch, allocate_thread<T>(net, 0, memory.stage, stop_token, arena));
  };
  Arena<T> counter(nullptr);
  allocate(counter, 0, {});
  workspace.reserve(choice.most(), counter.used());

  const auto process = [&](const Block& block, const Team&, int worker) {
    const ThreadSlice<T> own = ThreadSlice<T>::of(Team::alone(), block.samples);
    const Range rows = own.samples_from(block.first);
    Arena<T> arena(workspace.memory(worker));
    const auto [memory, v, tangent_scratch, scratch] =
        allocate(arena, own.block_tiles, StopToken{workspace.stop_source, worker == 0});
    const Trajectory<T> trajectory(memory.trajectory, memory.shape(net), plan.samples, own.block_tiles);
    const Plane<T> y = trajectory.state(0);

    rows_to_plane<T>(X + rows.begin * net.features, rows.size(), net.features, y);
    if (dX)
      rows_to_plane<T>(dX + rows.begin * net.features, rows.size(), net.features, v);
    else
      std::fill_n(v.data(), v.size(), T(0));
    tangent_rows.write(0, v, rows);
    for (Index j = 0; j < net.layers; ++j) {
      if (!should_continue(workspace, net, own, worker == 0)) return;
      sweep.step(j, y, v, trajectory.stages(0), scratch, tangent_scratch);
      tangent_rows.write(j + 1, v, rows);
    }
  };
  for_each_block(samples, plan, choice.threads(), process);
  if (workspace.stop_source) workspace.stop_source->throw_if_stopped();
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
