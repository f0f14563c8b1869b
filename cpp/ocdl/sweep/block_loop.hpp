#pragma once

#include "ocdl/sweep/blocks.hpp"
#include "ocdl/sweep/field_controls.hpp"
#include "ocdl/sweep/integrator.hpp"
#include "ocdl/sweep/sample_rows.hpp"
#include "ocdl/thread_policy.hpp"

/// What the sweeps over all samples have in common: the memory of a block and the loop over blocks and
/// layers.
namespace ocdl {

/// Where planes of one shape, or an array, stand in the memory of a worker.
struct PlaneSlot {
  Index offset = -1, rows = 0, stride = 0;  ///< nowhere: -1
};

/// The memory of a worker: offsets that are computed once for all blocks of an evaluation.
template <class T>
class BlockLayout {
 public:
  /// `samples`: of the longest block, `threads`: of a team.
  BlockLayout(Index samples, int threads) : samples_(samples), threads_(threads) {}

  PlaneSlot planes(Index count, Index rows) {
    if (count == 0) return {};
    const Index stride = plane_stride<T>(rows * samples_);
    return {take(count * stride), rows, stride};
  }
  Index array(Index size) { return take(size); }
  /// An array for each thread of a team.
  Index thread_arrays(Index size) { return take(size * threads_); }

  Index samples() const { return samples_; }
  Index tiles() const { return tiles_for<T>(samples_); }
  Index size() const { return size_; }

 private:
  Index samples_, threads_, size_ = 0;

  Index take(Index size) {
    const Index offset = size_;
    size_ += whole_packs<T>(size);
    return offset;
  }
};

/// A thread of a team with a block: its slice, its rows of the data and the worker's memory.
template <class T>
struct BlockTask {
  Block block;
  ThreadSlice<T> thread;
  Range rows;
  T* memory;
  StopToken stop_token;
  double layer_work;    ///< of this thread
  bool& is_continuing;  ///< what the first thread of a team decides for the others

  BlockTask(const Network& net, const Block& block_, const Team& team, int worker, Workspace<T>& workspace,
            bool& decision)
      : block(block_),
        thread(ThreadSlice<T>::of(team, block.samples)),
        rows(thread.samples_from(block.first)),
        memory(workspace.memory(worker)),
        stop_token{workspace.stop_source, worker == 0 && team.rank() == 0},
        layer_work(forward_work(net, thread.tiles * tile_width<T>) / double(net.layers)),
        is_continuing(decision) {}

  Planes<T> planes(const PlaneSlot& slot) const {
    if (slot.offset < 0) return {};
    return {{memory + slot.offset, slot.rows, thread.block_tiles}, slot.stride};
  }
  Plane<T> plane(const PlaneSlot& slot) const { return planes(slot)[0]; }
  /// Whether the sweep continues with the next layer. The thread that called, and only that one, reports its
  /// work.
  bool should_continue() const {
    return thread.team.broadcast(stop_token.should_continue(layer_work), is_continuing);
  }
};

/// Where a block keeps a trajectory and what stages are evaluated in.
template <class T>
class StageMemory {
 public:
  StageMemory(const Network& net, const TrajectoryShape& shape, bool needs_product, BlockLayout<T>& layout)
      : shape_(shape),
        samples_(layout.samples()),
        trajectory_(layout.array(Trajectory<T>::size(shape, samples_))),
        state_(layout.planes(1, net.rows())),
        input_changes_(layout.planes(net.inputs ? 2 : 0, net.inputs)),
        changes_inputs_(net.changes_inputs()),
        product_size_(needs_product ? panel::scratch_size<T>() : 0),
        equations_size_(StageEquations<T>::scratch_size(net)),
        product_(layout.thread_arrays(product_size_)),
        equations_(layout.thread_arrays(equations_size_)) {}

  Trajectory<T> trajectory(const BlockTask<T>& task) const {
    return {task.memory + trajectory_, shape_, samples_, task.thread.block_tiles,
            changes_inputs_ ? task.plane(input_changes_) : Plane<T>()};
  }
  /// What `SampleRows::write_inputs` takes, of this thread's slice.
  Planes<T> input_changes(const BlockTask<T>& task) const {
    return task.planes(input_changes_).slice(task.thread);
  }
  StageScratch<T> scratch(const BlockTask<T>& task) const {
    const Index rank = task.thread.team.rank();
    return {task.plane(state_), task.memory + product_ + rank * product_size_,
            task.memory + equations_ + rank * equations_size_, task.stop_token};
  }

 private:
  TrajectoryShape shape_;
  Index samples_, trajectory_;
  PlaneSlot state_, input_changes_;
  bool changes_inputs_;
  Index product_size_, equations_size_, product_, equations_;
};

/// The trajectory of a sweep that overwrites a state by the next one: one state and the stages of one layer.
inline TrajectoryShape single_state_shape(const Network& net) {
  TrajectoryShape shape = net.trajectory_shape(Storage::states_only);
  shape.layers = 0;
  return shape;
}

/// The loop over the blocks of all samples, by as many threads as pay.
template <class T>
class BlockLoop {
 public:
  /// `sweeps`: the work, in forward sweeps.
  BlockLoop(const Network& net, const BlockPlan& plan, Index samples, double sweeps, Workspace<T>& workspace)
      : net_(net),
        plan_(plan),
        samples_(samples),
        workspace_(workspace),
        choice_(sweeps * forward_work(net, samples), parallel_parts<T>(net, plan, samples)) {}

  BlockLayout<T> layout() const { return {plan_.samples, plan_.by_team ? choice_.max_threads() : 1}; }

  /// process(task) for each block, then merge(block, team, worker) in their order unless it is null.
  template <class Process, class Merge = std::nullptr_t>
  void run(const BlockLayout<T>& layout, const Process& process, const Merge& merge = nullptr) {
    workspace_.reserve(plan_.by_team ? 1 : choice_.max_threads(), layout.size());
    bool is_continuing = true;
    const auto process_block = [&](const Block& block, const Team& team, int worker) {
      process(BlockTask<T>(net_, block, team, worker, workspace_, is_continuing));
    };
    if constexpr (std::is_null_pointer_v<Merge>)
      for_each_block(samples_, plan_, choice_.threads(), process_block);
    else
      for_each_block(samples_, plan_, choice_.threads(), process_block, merge);
    if (workspace_.stop_source) workspace_.stop_source->throw_if_stopped();
  }

 private:
  const Network& net_;
  const BlockPlan& plan_;
  Index samples_;
  Workspace<T>& workspace_;
  ThreadChoice choice_;
};

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

/// z = W y + mu, a plane of the outputs from a plane of the state.
template <class T>
void read_out(const Controls<const T>& u, const Plane<const T>& y, const Plane<T>& z,
              const ThreadSlice<T>& thread) {
  affine(u.W(), u.mu().data(), y, z, thread);
}

}  // namespace ocdl
