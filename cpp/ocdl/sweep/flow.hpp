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

  void write(Index j, const T* plane, Index first, Index count) const {
    if (rows_) plane_to_rows(plane, count, dim_, dim_, rows_ + (j * samples_ + first) * dim_);
  }

 private:
  T* rows_;
  Index dim_, samples_;
};

/// Memory of one thread for the evaluation of stages, behind that of the threads before it in a team.
template <class T>
StageScratch<T> carve_thread(const Network& net, int rank, T* state, const StopToken& stop_token,
                             Carver<T>& carver) {
  const Index product = Field<T>::evaluates_by_scratch(net.field_kind) ? panel::scratch_size<T>() : 0;
  const Index equations = StageEquations<T>::scratch_size(net);
  carver.take(rank * (product + equations));
  T* first = carver.take(product);
  return {state, first, carver.take(equations), stop_token};
}

/// z = W y + mu, a plane of the outputs from a plane of the state.
template <class T>
void read_out(const Network& net, const Controls<const T>& u, const T* y, T* z, const Share<T>& share) {
  affine(net.outputs, net.dim, u.W().data(), u.mu().data(), y, z, share);
}

/// Samples of a narrow state whose planes stay in the first cache while nothing else is kept of a block.
template <class T>
Index cached_samples(Index dim) {
  constexpr Index bytes = 8192;
  return tiles_for<T>(bytes / Index(sizeof(T)) / dim) * tile_width<T>;
}

/// What a forward sweep writes; null pointers are not asked for.
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
  const Index plane = plane_stride<T>(net.dim * plan.samples);
  const ThreadChoice choice(forward_work(net, samples), parallel_parts<T>(net, plan, samples));
  const T* swept = field_controls(net, controls, 0, workspace);
  const Integrator<T> integrator(net, swept);
  const Controls<const T> u = net.split(swept);
  const StateRows<T> state_rows(out.states, net, samples), final_rows(out.final_state, net, samples);
  const Index stage_planes = net.stages * net.detail_planes();
  const Index planes = 2 + net.stages + stage_planes;
  Carver<T> counter(nullptr);
  carve_thread<T>(net, plan.by_team ? choice.most() - 1 : 0, nullptr, {}, counter);
  workspace.reserve(plan.by_team ? 1 : choice.most(),
                    planes * plane + net.outputs * plan.samples + counter.used());

  bool agreed = true;  // what the first thread of a team tells the others
  const auto process = [&](const Block& block, const Team& team, int worker) {
    const Share<T> share = Share<T>::of(team, block.samples);
    const Range samples_here = share.samples_from(block.first);
    const Index first = samples_here.begin, count = samples_here.end - first;
    Carver<T> carve(workspace.memory(worker));
    T* y = carve.take(plane) + share.offset(net.dim);
    T* state = carve.take(plane) + share.offset(net.dim);
    T* values = carve.take(net.stages * plane) + share.offset(net.dim);
    T* details = carve.take(stage_planes * plane) + share.offset(net.dim);
    const Stages<T> stages{values, details, plane, net.detail_planes()};
    T* z = carve.take(net.outputs * plan.samples) + share.offset(net.outputs);
    const StopToken stop_token{workspace.stop_source, worker == 0 && team.rank() == 0};
    const StageScratch<T> scratch = carve_thread<T>(net, team.rank(), state, stop_token, carve);

    rows_to_plane(X + first * net.features, count, net.features, net.dim, y);
    state_rows.write(0, y, first, count);
    for (Index j = 0; j < net.layers; ++j) {
      if (!team.agree(should_continue(workspace, net, share, stop_token.is_caller), agreed)) return;
      integrator.step(j, y, stages, y, scratch, share);
      state_rows.write(j + 1, y, first, count);
    }
    final_rows.write(0, y, first, count);
    if (!out.outputs) return;
    read_out(net, u, y, z, share);
    plane_to_rows(z, count, net.outputs, net.outputs, out.outputs + first * net.outputs);
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
  const Index plane = plane_stride<T>(net.dim * plan.samples);
  const ThreadChoice choice(2 * forward_work(net, samples), parallel_parts<T>(net, plan, samples));
  const Tangent<T> sweep(net, field_controls(net, controls, 0, workspace),
                         field_controls(net, direction, 1, workspace));
  const StateRows<T> tangent_rows(tangents, net, samples);
  const Index scratch_planes = Tangent<T>::scratch_planes(net.stages);
  const Index stage_planes = net.stages * net.detail_planes();
  Carver<T> counter(nullptr);
  carve_thread<T>(net, 0, nullptr, {}, counter);
  workspace.reserve(choice.most(), (3 + net.stages + stage_planes + scratch_planes) * plane + counter.used());

  const auto process = [&](const Block& block, const Team&, int worker) {
    const Index tiles = tiles_for<T>(block.samples);
    Carver<T> carve(workspace.memory(worker));
    T* y = carve.take(plane);
    T* v = carve.take(plane);
    T* state = carve.take(plane);
    T* values = carve.take(net.stages * plane);
    T* details = carve.take(stage_planes * plane);
    const Stages<T> stages{values, details, plane, net.detail_planes()};
    T* planes = carve.take(scratch_planes * plane);
    const StageScratch<T> scratch =
        carve_thread<T>(net, 0, state, {workspace.stop_source, worker == 0}, carve);

    rows_to_plane(X + block.first * net.features, block.samples, net.features, net.dim, y);
    if (dX)
      rows_to_plane(dX + block.first * net.features, block.samples, net.features, net.dim, v);
    else
      std::fill_n(v, plane, T(0));
    tangent_rows.write(0, v, block.first, block.samples);
    const Share<T> share(tiles);
    for (Index j = 0; j < net.layers; ++j) {
      if (!should_continue(workspace, net, share, worker == 0)) return;
      sweep.step(j, y, v, stages, scratch, planes, tiles);
      tangent_rows.write(j + 1, v, block.first, block.samples);
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
