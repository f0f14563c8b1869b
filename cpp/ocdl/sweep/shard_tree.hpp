#pragma once

#include <bit>
#include <span>
#include <vector>

#include "ocdl/parallel.hpp"
#include "ocdl/sweep/shards.hpp"

namespace ocdl {

/// Adds up shards as they come, a value and a vector each. Of n shards there are at capacity log2(n) + 1
/// vectors at a time, twice as many where the first one is not the first of all; their memory is kept for the
/// next sum.
template <class T>
class ShardTree {
 public:
  struct Node {
    int level;
    Index index;
    Wide<T> value;
    T* vector;
  };

  /// Begins a sum of `count` shards, with vectors of `size` numbers. The first node's vector is `result`: it
  /// becomes the sum where these are all shards. Null: there are no vectors.
  void start(const Shards& shards, Index count, Index size, T* result) {
    shards_ = shards;
    size_ = result ? size : 0;
    next_ = shards.first;
    finished_ = 0;
    const auto levels =
        static_cast<Index>(std::bit_width(static_cast<std::size_t>(std::max<Index>(count, 1) - 1)));
    const Index capacity = (shards.first == 0 ? levels : 2 * levels) + 1;
    if (memory_.size() < (capacity - 1) * size_) memory_.resize((capacity - 1) * size_);
    nodes_.resize(static_cast<std::size_t>(capacity));
    for (Index n = 0; n < capacity; ++n)
      node(n) = {0, 0, {}, n == 0 || !result ? result : memory_.data() + (n - 1) * size_};
  }

  /// The shard that is being added up. Its value begins with 0; its vector is overwritten first.
  Node& open() { return node(finished_); }

  /// It is complete: joins it to what belongs to it. Called by all of a team, whose threads wait for each
  /// other before they go on.
  void close(const Team& team) {
    const FinishedNode node_position(next_, shards_.first, shards_.all);
    const Range mine = team.range_of(size_);
    for (Index n = finished_; n > finished_ - node_position.joins; --n) {
      T* left = node(n - 1).vector;
      const T* right = node(n).vector;
      for (Index i = mine.begin; i < mine.end; ++i) left[i] += right[i];
    }
    team.barrier();
    if (team.rank() != 0) return;
    for (Index n = 0; n < node_position.joins; ++n, --finished_)
      node(finished_ - 1).value += node(finished_).value;
    node(finished_).level = node_position.level;
    node(finished_).index = node_position.index;
    ++next_;
    ++finished_;
    if (finished_ < static_cast<Index>(nodes_.size())) open().value = Wide<T>{};
  }

  /// What has been finished: of all shards the root alone.
  std::span<const Node> finished() const {
    return std::span(nodes_).first(static_cast<std::size_t>(finished_));
  }
  /// Numbers in a vector.
  Index size() const { return size_; }

  Index bytes() const { return memory_.size() * Index(sizeof(T)); }
  void release() { memory_.resize(0); }

 private:
  Shards shards_{};
  Index size_ = 0, next_ = 0, finished_ = 0;
  std::vector<Node> nodes_;
  Eigen::Array<T, Eigen::Dynamic, 1> memory_;

  Node& node(Index n) { return nodes_[static_cast<std::size_t>(n)]; }
};

}  // namespace ocdl
