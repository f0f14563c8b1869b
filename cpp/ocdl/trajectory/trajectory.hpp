#pragma once

#include "ocdl/trajectory/stages.hpp"

namespace ocdl {

/// How much of a block's trajectory is kept between the forward and the backward sweep.
enum class Storage {
  all_stages,   ///< states and stage values of every layer
  states_only,  ///< states of every layer; the backward sweep evaluates the stages of a layer again
};

/// Numbers from the beginning of a plane of that size to that of the next. Planes that begin whole pages
/// apart get in each other's way in the first cache, which was measured to cost gradients up to a twelfth.
template <class T>
constexpr Index plane_stride(Index size) {
  constexpr Index page = 4096 / sizeof(T), apart = page / 4;
  return size < page ? size : size + std::max<Index>(0, apart - size % page);
}

/// What a trajectory holds: y[0..N] with the inputs behind them, and of some layers the k_i with what the
/// field keeps of each.
struct TrajectoryShape {
  Index rows, layers, stages;
  HiddenPlanes hidden;
  Storage storage;

  Index stored_layers() const { return storage == Storage::all_stages ? layers : 1; }
  /// Numbers in all, where a plane of the state takes `state` and one of the hidden ones `hidden_plane`.
  Index size(Index state, Index hidden_plane) const {
    return (layers + 1) * state + stored_layers() * layer_size(state, hidden_plane);
  }
  Index layer_size(Index state, Index hidden_plane) const {
    return stages * (state + hidden.count * hidden_plane);
  }
  Index numbers_per_sample() const { return size(rows, hidden.rows); }
};

/// What the forward sweep writes and the backward sweep reads, for one block of samples. It does not own its
/// memory.
template <class T>
class Trajectory {
 public:
  /// `samples`: of the longest block, `tiles`: of this one. `input_changes`: see Stages, of the layer that is
  /// swept.
  Trajectory(T* memory, const TrajectoryShape& shape, Index samples, Index tiles,
             const Plane<T>& input_changes = {})
      : memory_(memory),
        shape_(shape),
        tiles_(tiles),
        state_stride_(plane_stride<T>(shape.rows * samples)),
        hidden_stride_(plane_stride<T>(shape.hidden.rows * samples)),
        input_changes_(input_changes) {}

  static Index size(const TrajectoryShape& shape, Index samples) {
    return shape.size(plane_stride<T>(shape.rows * samples), plane_stride<T>(shape.hidden.rows * samples));
  }

  Storage storage() const { return shape_.storage; }
  Plane<T> state(Index j) const { return {memory_ + j * state_stride_, shape_.rows, tiles_}; }
  Stages<T> stages(Index j) const {
    T* values =
        memory_ + (shape_.layers + 1) * state_stride_ +
        (shape_.storage == Storage::all_stages ? j : 0) * shape_.layer_size(state_stride_, hidden_stride_);
    T* hidden = shape_.hidden.count ? values + shape_.stages * state_stride_ : nullptr;
    return {{{values, shape_.rows, tiles_}, state_stride_},
            {{hidden, shape_.hidden.rows, tiles_}, hidden_stride_},
            shape_.hidden.count,
            input_changes_};
  }

 private:
  T* memory_;
  TrajectoryShape shape_;
  Index tiles_, state_stride_, hidden_stride_;
  Plane<T> input_changes_;
};

}  // namespace ocdl
