#pragma once

#include "ocdl/parallel.hpp"
#include "ocdl/sweep/network.hpp"
#include "ocdl/sweep/shards.hpp"
#include "ocdl/sweep/workspace.hpp"

namespace ocdl {

/// How the samples are cut into blocks. A function of the problem alone, never of the number of threads nor
/// of where the samples are.
struct BlockPlan {
  Index samples;    ///< per block, whole tiles
  bool by_team;     ///< all threads on one block after the other (wide states), or a block per thread (narrow
                    ///< ones)
  Storage storage;  ///< of a block's trajectory
  Shards shards;    ///< no block crosses the end of one
  Index rows_before = 0;    ///< of the first shard, whole blocks, that come before these rows
  bool is_complete = true;  ///< whether the last shard ends with these rows

  Index per_shard() const { return (shards.size + samples - 1) / samples; }
  /// For some of `all` rows, which begin with a block.
  BlockPlan of_rows(const Range& rows, Index all) const {
    BlockPlan plan = *this;
    plan.rows_before = rows.begin % shards.size;
    plan.is_complete = rows.end % shards.size == 0 || rows.end == all;
    return plan;
  }
};

struct Block {
  Index number;  ///< in its shard
  Index first, samples;
  bool ends_shard = true;
};

inline Index block_count(const BlockPlan& plan, Index samples) {
  const auto up_to = [&](Index row) {
    const Index whole_shards = row / plan.shards.size, rest = row % plan.shards.size;
    return whole_shards * plan.per_shard() + (rest + plan.samples - 1) / plan.samples;
  };
  return up_to(plan.rows_before + samples) - plan.rows_before / plan.samples;
}

inline Block block_at(const BlockPlan& plan, Index samples, Index number) {
  const Index before = plan.rows_before, all = before + samples;
  number += before / plan.samples;
  const Index begin = number / plan.per_shard() * plan.shards.size, in_shard = number % plan.per_shard();
  const Index end = std::min(begin + plan.shards.size, all), first = begin + in_shard * plan.samples;
  const bool is_last = first + plan.samples >= end;
  return {in_shard, first - before, std::min(plan.samples, end - first),
          is_last && (end < all || plan.is_complete)};
}

/// How many threads find something to do: one per block, or one per tile or row group of the products of the
/// block that a team shares.
template <class T>
Index parallel_parts(const Network& net, const BlockPlan& plan, Index samples) {
  if (!plan.by_team) return block_count(plan, samples);
  return std::max(tiles_for<T>(plan.samples), net.dim / panel::kernel_rows<T>);
}

/// Bytes of one block's trajectory that stay in a core's own cache beside the controls. Where not even a
/// short block fits, stage values are still better read from the next cache than evaluated again, up to a
/// limit. A team's block streams through memory, for which there is a limit as well. Gaps between planes do
/// not count.
inline constexpr Index cache_budget = 256 * 1024, stage_budget = 4 * 1024 * 1024,
                       team_budget = 64 * 1024 * 1024;

/// From this dimension on, a block's work is worth sharing and a gradient per thread would be too large.
inline constexpr Index team_dim = 96;

/// `samples`: all of them; a part of them is cut as all are. `kept_per_sample`: numbers beside its
/// trajectory.
template <class T>
BlockPlan plan_blocks(const Network& net, Index samples, Index kept_per_sample = 0) {
  constexpr Index width = tile_width<T>;
  const auto whole_tiles = [](Index n) { return std::max<Index>(1, (n + width - 1) / width) * width; };
  const auto bytes_per_sample = [&](Storage storage) {
    return (net.trajectory_shape(storage).numbers_per_sample() + kept_per_sample) * Index(sizeof(T));
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
    return {length_within(team_budget, storage, least, most), true, storage, Shards::of(samples)};
  }
  // A block of at least four tiles; of fields that keep much of a stage fewer, where stages then stay.
  Index few = 4 * width;
  if (net.hidden.rows > net.rows())
    while (few > width && storage_within(stage_budget, few) == Storage::states_only) few /= 2;
  const Storage storage = storage_within(stage_budget, few);
  if (storage == Storage::states_only) few = 4 * width;
  // At least four blocks where that leaves each a decent length, so that threads have something to share;
  // shorter ones lose more to the start of each kernel than a fifth thread could gain.
  const Index decent = net.is_narrow<T>() ? 128 : 64;
  const Index shared = whole_tiles(std::max(decent, samples / 4));
  // Of narrow states, a plane shorter than this is worse than a trajectory that leaves the core's own cache.
  constexpr Index short_plane = 512;
  const Index longest =
      std::min(short_plane / std::max(net.rows(), net.hidden.rows), stage_budget / bytes_per_sample(storage));
  const Index least = std::max(longest / width * width, few);
  return {std::min(length_within(cache_budget, storage, least, 1024), shared), false, storage,
          Shards::of(samples)};
}

/// About the bytes of scratch memory that a gradient takes: for each thread the trajectory of a block and a
/// gradient, and the sums over the shards.
template <class T>
double scratch_bytes(const Network& net, Index samples, int threads) {
  const BlockPlan plan = plan_blocks<T>(net, samples);
  const auto trajectory =
      static_cast<double>(Trajectory<T>::size(net.trajectory_shape(plan.storage), plan.samples));
  const double workers =
      plan.by_team ? 1 : static_cast<double>(std::min<Index>(threads, block_count(plan, samples)));
  const double vectors = plan.by_team ? 0 : workers;
  const auto levels =
      static_cast<double>(std::bit_width(static_cast<std::size_t>(plan.shards.count(samples) - 1)));
  return (workers * trajectory + (vectors + levels) * static_cast<double>(net.control_size())) * sizeof(T);
}

/// For sweeps that add nothing up: rows in one piece.
template <class T>
BlockPlan plan_rows(const Network& net, Index samples) {
  BlockPlan plan = plan_blocks<T>(net, samples);
  plan.shards = {samples, 0, 1};
  return plan;
}

/// Activations of a forward sweep, each with its share of the products and of the solution of equations.
inline double forward_work(const Network& net, Index samples) {
  const double products = 1.0 + static_cast<double>(net.dim) / 8;
  const double explicit_work =
      static_cast<double>(samples * net.layers * net.stages * net.hidden.rows) * products;
  if (!net.largest_group) return explicit_work;
  constexpr double usual_steps = 4, eliminations_per_activation = 24;
  const double unknowns = static_cast<double>(net.largest_group * net.dim);
  return explicit_work * usual_steps * (1 + unknowns * unknowns / eliminations_per_activation);
}

/// process(block, team, worker) for every block, then merge(block, team, worker) in the order of the blocks,
/// one at a time. `worker` numbers the scratch memory to use: 0 for a team, else the thread.
template <class Process, class Merge>
void for_each_block(Index samples, const BlockPlan& plan, int threads, const Process& process,
                    const Merge& merge) {
  const Index count = block_count(plan, samples);
  const auto block = [&](Index number) { return block_at(plan, samples, number); };
  if (plan.by_team) {
    parallel(threads, [&](const Team& team) {
      for (Index number = 0; number < count; ++number) {
        process(block(number), team, 0);
        team.barrier();
        merge(block(number), team, 0);
        team.barrier();
      }
    });
    return;
  }
  OrderedGate gate;
  parallel(threads, [&](const Team& team) {
    for (Index number = gate.take(); number < count; number = gate.take()) {
      process(block(number), Team::alone(), team.rank());
      gate.wait_for_turn(number);
      merge(block(number), Team::alone(), team.rank());
      gate.pass(number);
    }
  });
}

/// The same where nothing is merged: no thread waits for its turn.
template <class Process>
void for_each_block(Index samples, const BlockPlan& plan, int threads, const Process& process) {
  if (plan.by_team)
    return for_each_block(samples, plan, threads, process, [](const Block&, const Team&, int) {});
  const Index count = block_count(plan, samples);
  OrderedGate gate;
  parallel(threads, [&](const Team& team) {
    for (Index number = gate.take(); number < count; number = gate.take())
      process(block_at(plan, samples, number), Team::alone(), team.rank());
  });
}

}  // namespace ocdl
