#pragma once

#include <array>
#include <vector>

#include "ocdl/kernel/pack.hpp"
#include "ocdl/memory.hpp"
#include "ocdl/stop_source.hpp"
#include "ocdl/sweep/shard_tree.hpp"

namespace ocdl {

/// Scratch memory of the workers of one evaluation, kept for the next: a warm evaluation allocates nothing.
template <class T>
class Workspace {
 public:
  /// What stops the evaluation; null: nothing.
  StopSource* stop_source = nullptr;
  /// The sums over the shards.
  ShardTree<T> tree;

  /// Memory for `workers`, `size` numbers each.
  void reserve(int workers, Index size) {
    if (static_cast<int>(memory_.size()) < workers) memory_.resize(static_cast<std::size_t>(workers));
    const double bytes = static_cast<double>(size) * sizeof(T) * workers;
    for (int w = 0; w < workers; ++w)
      if (auto& buffer = memory_[static_cast<std::size_t>(w)]; buffer.size() < size) {
        if (w == 0) require_memory(bytes, purpose(workers));
        try {
          buffer.resize(size);
        } catch (const std::bad_alloc&) {
          throw OutOfMemory(purpose(workers) + " takes " + in_units(bytes) + ", which the system refuses");
        }
      }
  }
  T* memory(int worker) { return memory_[static_cast<std::size_t>(worker)].data(); }
  /// Memory of all workers for controls, or a direction of theirs, that a field maps; see field_controls.hpp.
  T* mapped_controls(int which, Index size) {
    auto& buffer = mapped_controls_[static_cast<std::size_t>(which)];
    if (buffer.size() < size) buffer.resize(size);
    return buffer.data();
  }
  /// Gives memory back to the system where it is much: what one large evaluation took does not stay for ever.
  void trim(Index max_bytes = Index(1) << 27) {
    Index bytes = tree.bytes();
    for (const auto& buffer : memory_) bytes += buffer.size() * Index(sizeof(T));
    if (bytes <= max_bytes) return;
    memory_.clear();
    tree.release();
  }

 private:
  static std::string purpose(int workers) {
    return "the sweep of a block of samples through all layers, by " + std::to_string(workers) +
           (workers == 1 ? " thread," : " threads at once,");
  }

  std::vector<Eigen::Array<T, Eigen::Dynamic, 1>> memory_;
  std::array<Eigen::Array<T, Eigen::Dynamic, 1>, 2> mapped_controls_;
};

/// The size of an array of whole packs, so that no pack of the next array lies across two cache lines.
template <class T>
constexpr Index whole_packs(Index size) {
  return (size + lanes<T> - 1) / lanes<T> * lanes<T>;
}

/// Allocates arrays from a worker's memory, or only counts them where there is none yet.
template <class T>
class Arena {
 public:
  explicit Arena(T* memory) : memory_(memory) {}
  T* allocate(Index size) {
    T* array = memory_ ? memory_ + used_ : nullptr;
    used_ += whole_packs<T>(size);
    return array;
  }
  Index used() const { return used_; }

 private:
  T* memory_;
  Index used_ = 0;
};

}  // namespace ocdl
