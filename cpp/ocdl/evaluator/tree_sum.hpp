#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ocdl/sweep/shard_tree.hpp"

/// Sums over shards that several ranks hold, in the order of sweep/shards.hpp: each rank finishes some nodes
/// of the tree, and the rest is added up from all of these.
namespace ocdl {

/// Numbers that are added in double precision, and a vector that is added in single precision; one of the two
/// may be empty.
struct Sums {
  std::vector<double> wide;
  std::vector<float> single;

  bool fits(const Sums& other) const {
    return wide.size() == other.wide.size() && single.size() == other.single.size();
  }
  void operator+=(const Sums& other) {
    std::transform(wide.begin(), wide.end(), other.wide.begin(), wide.begin(), std::plus());
    std::transform(single.begin(), single.end(), other.single.begin(), single.begin(), std::plus());
  }
};

struct TreeNode {
  int level;
  Index index;
  Sums sums;
};

/// Takes the nodes that one rank has finished, and returns the sum over all ranks: the root of the tree.
using AddUp = std::function<Sums(std::vector<TreeNode> nodes)>;

/// The finished nodes of a tree, with sums_of(node).
template <class T, class SumsOf>
std::vector<TreeNode> finished_nodes(const ShardTree<T>& tree, const SumsOf& sums_of) {
  std::vector<TreeNode> nodes;
  for (const auto& node : tree.finished()) nodes.push_back({node.level, node.index, sums_of(node)});
  return nodes;
}

/// Some numbers of each of so many rows, which come in chunks, added up by the tree.
class SumOverShards {
 public:
  SumOverShards(const Shards& shards, Index rows, Index size)
      : shards_(shards), rows_(rows), size_(size), first_(static_cast<std::size_t>(size)) {
    tree_.start(shards, shards.count(rows), size, first_.data());
  }
  SumOverShards(const SumOverShards&) = delete;
  SumOverShards& operator=(const SumOverShards&) = delete;

  /// of_rows(rows, sums) adds those of some rows of the next chunk, all in one shard.
  template <class OfRows>
  void add(Index count, const OfRows& of_rows) {
    for (Index begin = 0, end; begin < count; begin = end) {
      const Index in_shard = done_ % shards_.size;
      end = std::min(begin + shards_.size - in_shard, count);
      double* sums = tree_.open().vector;
      if (in_shard == 0) std::fill_n(sums, size_, 0.0);
      of_rows(Range{begin, end}, sums);
      done_ += end - begin;
      if (done_ % shards_.size == 0 || done_ == rows_) tree_.close(Team::alone());
    }
  }

  std::vector<TreeNode> finished() const {
    return finished_nodes(tree_,
                          [&](const auto& node) { return Sums{{node.vector, node.vector + size_}, {}}; });
  }

 private:
  Shards shards_;
  Index rows_, size_, done_ = 0;
  std::vector<double> first_;
  ShardTree<double> tree_;
};

/// The same of all rows at once; the finished nodes.
template <class OfRows>
std::vector<TreeNode> sum_over_shards(const Shards& shards, Index rows, Index size, const OfRows& of_rows) {
  SumOverShards sum(shards, rows, size);
  sum.add(rows, of_rows);
  return sum.finished();
}

/// The sum of the numbers of all rows.
inline double sum_in_order(std::span<const double> numbers) {
  const Index count = static_cast<Index>(numbers.size());
  return sum_over_shards(Shards::of(count), count, 1,
                         [&](Range rows, double* sum) {
                           for (Index i = rows.begin; i < rows.end; ++i)
                             *sum += numbers[static_cast<std::size_t>(i)];
                         })[0]
      .sums.wide[0];
}

/// The root of the tree over `count` shards, from finished nodes that make it up, in any order.
inline Sums root_of(std::vector<TreeNode> nodes, Index count) {
  const auto incomplete = [] { return std::invalid_argument("the nodes do not make up the tree"); };
  if (count < 1) throw incomplete();
  std::map<std::pair<int, Index>, Sums> finished;
  for (TreeNode& node : nodes)
    if (!finished.emplace(std::pair(node.level, node.index), std::move(node.sums)).second) throw incomplete();
  const auto take = [&](auto& self, int level, Index index) -> Sums {
    if (auto node = finished.extract({level, index})) return std::move(node.mapped());
    if (level == 0) throw incomplete();
    const Index below = (count + (Index(1) << (level - 1)) - 1) >> (level - 1);
    Sums sums = self(self, level - 1, 2 * index);
    if (2 * index + 1 < below) {
      const Sums right = self(self, level - 1, 2 * index + 1);
      if (!sums.fits(right)) throw incomplete();
      sums += right;
    }
    return sums;
  };
  const auto levels = static_cast<int>(std::bit_width(static_cast<std::size_t>(count - 1)));
  Sums root = take(take, levels, 0);
  if (!finished.empty()) throw incomplete();
  return root;
}

}  // namespace ocdl
