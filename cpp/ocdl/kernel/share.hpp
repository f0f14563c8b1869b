#pragma once

#include "ocdl/kernel/tile.hpp"
#include "ocdl/parallel.hpp"

namespace ocdl {

/// The tiles of a block that one thread of a team works on; alone it has all of them. Tiles are shared, so
/// that a thread finds most of what it reads in its own cache. A matrix product may be shared by rows of its
/// result instead, over the tiles of the whole block.
template <class T>
struct Share {
  Index first, tiles, block_tiles;
  Index block_samples;  ///< lanes behind them are padding
  Team team;

  /// Of a thread that works alone on so many tiles, without padding.
  Share(Index all_tiles)  // NOLINT(google-explicit-constructor): a number of tiles is the share of one thread
      : Share(Team::alone(), {0, all_tiles}, all_tiles * tile_width<T>) {}

  static Share of(const Team& team, Index block_samples) {
    return Share(team, team.share(tiles_for<T>(block_samples)), block_samples);
  }

  Index offset(Index dim) const { return first * dim * tile_width<T>; }
  /// How many samples these tiles hold.
  Index samples() const {
    return std::min((first + tiles) * tile_width<T>, block_samples) -
           std::min(first * tile_width<T>, block_samples);
  }
  /// Where they stand among all samples.
  Range samples_from(Index block_first) const {
    const Index begin = block_first + std::min(first * tile_width<T>, block_samples);
    return {begin, begin + samples()};
  }

  /// Whether the slowest thread has less to do when a product's groups of rows are shared instead of tiles.
  bool is_better_by_rows(Index row_groups) const {
    const auto most = [&](Index count) { return (count + team.size() - 1) / team.size(); };
    const Index packs = (block_samples + lanes<T> - 1) / lanes<T>;
    return most(row_groups) * packs < row_groups * 2 * most(block_tiles);
  }

 private:
  Share(const Team& team_, const Range& mine, Index block_samples_)
      : first(mine.begin),
        tiles(mine.end - mine.begin),
        block_tiles(tiles_for<T>(block_samples_)),
        block_samples(block_samples_),
        team(team_) {}
};

}  // namespace ocdl
