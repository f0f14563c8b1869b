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

/// What the forward sweep writes and the backward sweep reads, for one block of samples: y[0..N] and the k_i
/// of each layer, in memory that somebody else owns.
template <class T>
class Trajectory {
 public:
  /// `details`: planes that the field keeps of a stage beside its value.
  Trajectory(T* memory, Index plane, Index layers, Index stages, Index details, Storage storage)
      : states_(memory), plane_(plane), stages_(stages), details_(details), storage_(storage) {
    stage_planes_ = memory + (layers + 1) * plane;
  }

  /// Planes in all.
  static Index planes(Index layers, Index stages, Index details, Storage storage) {
    const Index stored_layers = storage == Storage::all_stages ? layers : 1;
    return layers + 1 + stored_layers * stages * (1 + details);
  }

  Storage storage() const { return storage_; }
  T* state(Index j) const { return states_ + j * plane_; }
  /// The stages of layer j, of which only the tiles from `offset` on are looked at.
  Stages<T> stages(Index j, Index offset) const {
    const Index layer_size = stages_ * plane_ * (1 + details_);
    T* values = stage_planes_ + (storage_ == Storage::all_stages ? j : 0) * layer_size + offset;
    return {values, values + stages_ * plane_, plane_, details_};
  }

 private:
  T* states_;
  T* stage_planes_;
  Index plane_, stages_, details_;
  Storage storage_;
};

}  // namespace ocdl
