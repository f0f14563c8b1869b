#pragma once

#include "ocdl/kernel/tile.hpp"
#include "ocdl/parallel.hpp"

namespace ocdl {

/// The tiles of a block that one thread of a team works on; alone it has all of them. Threads keep their
/// tiles, so that a thread finds most of what it reads in its own cache. A matrix product may be split by
/// rows of its result instead, over the tiles of the whole block.
template <class T>
struct ThreadSlice {
  Index first, tiles, block_tiles;
  Index block_samples;  ///< lanes behind them are padding
  Team team;

  /// The slice of a thread that works alone on so many tiles, without padding.
  explicit ThreadSlice(Index all_tiles)
      : ThreadSlice(Team::alone(), {0, all_tiles}, all_tiles * tile_width<T>) {}

  static ThreadSlice of(const Team& team, Index block_samples) {
    return ThreadSlice(team, team.range_of(tiles_for<T>(block_samples)), block_samples);
  }

  Range range() const { return {first, first + tiles}; }
  /// The number of samples in these tiles.
  Index samples() const {
    return std::min((first + tiles) * tile_width<T>, block_samples) -
           std::min(first * tile_width<T>, block_samples);
  }
  /// Their row numbers, where the block begins with row `block_first`.
  Range samples_from(Index block_first) const {
    const Index begin = block_first + std::min(first * tile_width<T>, block_samples);
    return {begin, begin + samples()};
  }

  /// Whether the slowest thread has less to do when a product is split by groups of rows instead of tiles.
  bool is_better_by_rows(Index row_groups) const {
    const auto max_per_thread = [&](Index count) { return (count + team.size() - 1) / team.size(); };
    const Index packs = (block_samples + lanes<T> - 1) / lanes<T>;
    return max_per_thread(row_groups) * packs < row_groups * 2 * max_per_thread(block_tiles);
  }

 private:
  ThreadSlice(const Team& team_, const Range& range_, Index block_samples_)
      : first(range_.begin),
        tiles(range_.end - range_.begin),
        block_tiles(tiles_for<T>(block_samples_)),
        block_samples(block_samples_),
        team(team_) {}
};

}  // namespace ocdl
