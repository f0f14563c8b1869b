#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ocdl/sweep/shard_tree.hpp"

/// Sums over shards that several parts hold, in the order of sweep/shards.hpp: each part hands in the nodes
/// of the tree that it has finished, and whoever has them all adds up the rest.
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

/// Receives the nodes that one part has finished, and returns the sum over all parts: the root of the tree.
using AddUp = std::function<Sums(std::vector<TreeNode> nodes)>;

/// The finished nodes of a tree, with sums_of(node).
template <class T, class SumsOf>
std::vector<TreeNode> finished_nodes(const ShardTree<T>& tree, const SumsOf& sums_of) {
  std::vector<TreeNode> nodes;
  for (const auto& node : tree.finished()) nodes.push_back({node.level, node.index, sums_of(node)});
  return nodes;
}

/// Some numbers of each of so many rows, which come one piece after the other, added up by the tree.
class SumOverShards {
 public:
  SumOverShards(const Shards& shards, Index rows, Index size)
      : shards_(shards), rows_(rows), size_(size), first_(static_cast<std::size_t>(size)) {
    tree_.start(shards, shards.count(rows), size, first_.data());
  }
  SumOverShards(const SumOverShards&) = delete;
  SumOverShards& operator=(const SumOverShards&) = delete;

  /// of_rows(rows, sums) adds those of some rows of the next piece, all in one shard.
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
  for (int level = 0; count > 1; ++level, count = (count + 1) / 2) {
    std::sort(nodes.begin(), nodes.end(), [](const TreeNode& a, const TreeNode& b) {
      return std::pair(a.level, a.index) < std::pair(b.level, b.index);
    });
    std::vector<TreeNode> above;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      TreeNode& node = nodes[n];
      if (node.level == level) {
        const bool has_right = node.index + 1 < count;
        const bool right_follows =
            n + 1 < nodes.size() && nodes[n + 1].level == level && nodes[n + 1].index == node.index + 1;
        if (node.index % 2 != 0 || has_right != right_follows) throw incomplete();
        if (has_right && !node.sums.fits(nodes[n + 1].sums)) throw incomplete();
        if (has_right) node.sums += nodes[++n].sums;
        ++node.level;
        node.index /= 2;
      }
      above.push_back(std::move(node));
    }
    nodes = std::move(above);
  }
  if (nodes.size() != 1 || nodes[0].index != 0) throw incomplete();
  return std::move(nodes[0].sums);
}

}  // namespace ocdl
