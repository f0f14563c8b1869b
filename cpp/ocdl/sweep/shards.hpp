#pragma once

#include <algorithm>
#include <bit>

#include "ocdl/types.hpp"

/// Whatever is summed over samples is summed in one order, wherever the samples are: rows within a shard in
/// their order, and shards by a binary tree. Node (0, k) of the tree is shard k; node (l, i) is node (l-1,
/// 2i) plus node (l-1, 2i+1), and where there is no second one it is the first. So the order of the additions
/// follows from the number of all rows alone.
namespace ocdl {

/// Shard k holds the rows from k S on. Long enough that their sums cost little beside their work, and enough
/// of them that a thousand parts find one each.
inline Index shard_size(Index all_rows) {
  constexpr Index min_size = 4096, max_shards = 1024;
  return std::max(min_size, (all_rows + max_shards - 1) / max_shards);
}

/// The shards of some rows that follow each other.
struct Shards {
  Index size;        ///< rows of each, but for the last one of all
  Index first, all;  ///< the number of the first, and how many there are of all rows

  static Shards of(Index all_rows, Index first_row = 0) {
    const Index size = shard_size(all_rows);
    return {size, first_row / size, (all_rows + size - 1) / size};
  }
  Index count(Index rows) const { return (rows + size - 1) / size; }
};

/// The node that is finished when shard k comes, last of those from `first` on, out of `all`.
struct FinishedNode {
  int level = 0;
  Index index;
  Index joins = 0;  ///< with finished nodes before it

  FinishedNode(Index k, Index first, Index all) : index(k) {
    const bool is_last = k == all - 1;  // a node without a right neighbour rises alone
    for (; index > 0 && (is_last || index % 2 == 1); ++level, index /= 2)
      if (index % 2 == 1) {
        const Index left_begins = (index - 1) << level;
        if (left_begins < first) return;
        ++joins;
      }
  }
};

/// The sum of so many numbers, of which term(k) is number k, by the tree; without memory.
template <class Term>
double tree_sum(Index first, Index count, const Term& term) {
  if (count == 1) return term(first);
  const auto left = static_cast<Index>(std::bit_floor(static_cast<std::size_t>(count - 1)));
  return tree_sum(first, left, term) + tree_sum(first + left, count - left, term);
}

}  // namespace ocdl
