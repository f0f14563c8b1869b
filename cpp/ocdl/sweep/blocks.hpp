#pragma once

#include "ocdl/parallel.hpp"
#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/workspace.hpp"
#include "ocdl/trajectory/trajectory.hpp"

namespace ocdl {

/// How the samples are cut into blocks. A function of the problem alone, never of the number of threads.
struct BlockPlan {
  Index samples;    ///< per block, whole tiles
  bool by_team;     ///< all threads on one block after the other (wide states), or a block per thread (narrow
                    ///< ones)
  Storage storage;  ///< of a block's trajectory
};

struct Block {
  Index number, first, samples;
};

inline Index block_count(const BlockPlan& plan, Index samples) {
  return (samples + plan.samples - 1) / plan.samples;
}

/// How many threads find something to do: one per block, or one per tile of the block that a team shares.
template <class T>
Index parallel_parts(const BlockPlan& plan, Index samples) {
  return plan.by_team ? tiles_for<T>(plan.samples) : block_count(plan, samples);
}

/// The tiles of a block that one thread works on.
template <class T>
struct Share {
  Index first, tiles, block_tiles;

  static Share of(const Team& team, Index block_tiles) {
    const Range mine = team.share(block_tiles);
    return {mine.begin, mine.end - mine.begin, block_tiles};
  }
  Index offset(Index dim) const { return first * dim * tile_width<T>; }
  /// The samples in these tiles; none where they are all padding.
  Range samples(const Block& block) const {
    const Index in_block = first * tile_width<T>;
    return {block.first + std::min(in_block, block.samples),
            block.first + std::min(in_block + tiles * tile_width<T>, block.samples)};
  }
};

/// Bytes of one block's trajectory that stay in a core's own cache beside the controls. Where not even a
/// short block fits, stage values are still better read from the next cache than evaluated again, up to a
/// limit. A team's block streams through memory, for which there is a limit as well.
inline constexpr Index cache_budget = 256 * 1024, stage_budget = 4 * 1024 * 1024,
                       team_budget = 64 * 1024 * 1024;

/// From this dimension on, a block's work is worth sharing and a gradient per thread would be too large.
inline constexpr Index team_dim = 96;

template <class T>
BlockPlan plan_blocks(const Network& net, Index samples) {
  constexpr Index width = tile_width<T>;
  const auto whole_tiles = [](Index n) { return std::max<Index>(1, (n + width - 1) / width) * width; };
  const auto bytes_per_sample = [&](Storage storage) {
    return Trajectory<T>::planes(net.layers, net.stages, net.detail_planes(), storage) * net.dim *
           Index(sizeof(T));
  };
  const auto storage_within = [&](Index budget, Index length) {
    const bool affordable = net.stages == 1 || length * bytes_per_sample(Storage::all_stages) <= budget;
    return affordable ? Storage::all_stages : Storage::states_only;
  };
  const auto length_within = [&](Index budget, Storage storage, Index least, Index most) {
    return std::clamp(budget / bytes_per_sample(storage) / width * width, least, most);
  };
  if (net.dim >= team_dim) {
    const Index most = std::min<Index>(whole_tiles(samples), 512), least = std::min(4 * width, most);
    const Storage storage = storage_within(team_budget, most);
    return {length_within(team_budget, storage, least, most), true, storage};
  }
  const Storage storage = storage_within(stage_budget, 4 * width);
  // At least four blocks where that leaves each a decent length, so that threads have something to share;
  // shorter ones lose more to the start of each kernel than a fifth thread could gain.
  const Index shared = whole_tiles(std::max<Index>(64, samples / 4));
  // Of narrow states, a plane shorter than this is worse than a trajectory that leaves the core's own cache.
  constexpr Index short_plane = 512;
  const Index longest = std::min(short_plane / net.dim, stage_budget / bytes_per_sample(storage));
  const Index least = std::max(longest / width * width, 4 * width);
  return {std::min(length_within(cache_budget, storage, least, 1024), shared), false, storage};
}

/// Activations of a forward sweep, each with its share of the products and of the solution of equations.
inline double forward_work(const Network& net, Index samples) {
  const double products = 1.0 + static_cast<double>(net.dim) / 8;
  const double explicit_work = static_cast<double>(samples * net.layers * net.stages * net.dim) * products;
  if (!net.largest_group) return explicit_work;
  constexpr double usual_steps = 4, eliminations_per_activation = 24;
  const double unknowns = static_cast<double>(net.largest_group * net.dim);
  return explicit_work * usual_steps * (1 + unknowns * unknowns / eliminations_per_activation);
}

/// Asked between two layers: whether a worker goes on. The thread that called, and only that one, reports its
/// work.
template <class T>
bool goes_on(const Workspace<T>& workspace, const Network& net, const Share<T>& share, bool is_caller) {
  if (!workspace.watch) return true;
  if (is_caller)
    workspace.watch->progress(forward_work(net, share.tiles * tile_width<T>) / double(net.layers));
  return !workspace.watch->stopped();
}

/// process(block, team, worker) for every block, then merge(block, worker) in the order of the blocks, one at
/// a time. `worker` numbers the scratch memory to use: 0 for a team, else the thread.
template <class Process, class Merge>
void for_each_block(Index samples, const BlockPlan& plan, int threads, const Process& process,
                    const Merge& merge) {
  const Index count = block_count(plan, samples);
  const auto block = [&](Index number) {
    const Index first = number * plan.samples;
    return Block{number, first, std::min(plan.samples, samples - first)};
  };
  if (plan.by_team) {
    parallel(threads, [&](const Team& team) {
      for (Index number = 0; number < count; ++number) {
        process(block(number), team, 0);
        team.barrier();
        if (team.rank() == 0) merge(block(number), 0);
        team.barrier();
      }
    });
    return;
  }
  Turnstile turnstile;
  parallel(threads, [&](const Team& team) {
    for (Index number = turnstile.take(); number < count; number = turnstile.take()) {
      process(block(number), Team::alone(), team.rank());
      turnstile.wait_for_turn(number);
      merge(block(number), team.rank());
      turnstile.pass(number);
    }
  });
}

}  // namespace ocdl
