#pragma once

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ocdl/types.hpp"

/// Sums of vectors whose bits do not depend on who adds which of them. Node (0, k) of a binary tree is vector
/// k; node (l, i) is node (l-1, 2i) plus node (l-1, 2i+1), and where there is no second one it is the first.
/// So the order of the additions follows from the number of vectors alone.
namespace ocdl {

struct TreeNode {
  int level;
  Index index;
  std::vector<double> vector;
};

/// Receives the nodes that one part has finished, and returns the sum over all parts: the root of the tree.
using AddUp = std::function<std::vector<double>(std::vector<TreeNode> nodes)>;

/// The nodes of neighbouring vectors, added as far as they belong together: at most 2 log2 of them are left.
class TreeBuilder {
 public:
  explicit TreeBuilder(Index first) : next_(first) {}

  void add(std::vector<double> vector) {
    nodes_.push_back({0, next_++, std::move(vector)});
    while (nodes_.size() > 1) {
      TreeNode &left = nodes_[nodes_.size() - 2], &right = nodes_.back();
      if (left.level != right.level || left.index % 2 != 0 || right.index != left.index + 1) break;
      join(left, right.vector);
      nodes_.pop_back();
    }
  }
  std::vector<TreeNode> take() { return std::move(nodes_); }

  /// left + right, the node above them, in the place of the left one.
  static void join(TreeNode& left, const std::vector<double>& right) {
    for (std::size_t n = 0; n < right.size(); ++n) left.vector[n] += right[n];
    ++left.level;
    left.index /= 2;
  }

 private:
  Index next_;
  std::vector<TreeNode> nodes_;
};

/// The root of the tree over `count` vectors, from finished nodes that make it up, in any order.
inline std::vector<double> root_of(std::vector<TreeNode> nodes, Index count) {
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
        TreeBuilder::join(node, has_right ? nodes[++n].vector : std::vector<double>());
      }
      above.push_back(std::move(node));
    }
    nodes = std::move(above);
  }
  if (nodes.size() != 1 || nodes[0].index != 0) throw incomplete();
  return std::move(nodes[0].vector);
}

}  // namespace ocdl
