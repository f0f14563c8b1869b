#pragma once

#include <cassert>

#include "ocdl/kernel/panel_product.hpp"
#include "ocdl/kernel/unrolled_product.hpp"
#include "ocdl/parallel.hpp"

/// The three products of a layer, each with the kernel that fits the shape of the matrix.
namespace ocdl {

/// Calls f<Rows, Cols>() when that shape has an unrolled kernel.
template <class F>
bool with_unrolled_shape(Index rows, Index cols, const F& f) {
  if (rows == cols) switch (rows) {
      case 1:
        return f.template operator()<1, 1>(), true;
      case 2:
        return f.template operator()<2, 2>(), true;
      case 3:
        return f.template operator()<3, 3>(), true;
      case 4:
        return f.template operator()<4, 4>(), true;
    }
  if (rows == 1) switch (cols) {
      case 2:
        return f.template operator()<1, 2>(), true;
      case 3:
        return f.template operator()<1, 3>(), true;
      case 4:
        return f.template operator()<1, 4>(), true;
    }
  return false;
}

/// Calls f(rows, tile, samples) for this thread's part of a product of `rows` rows: all rows of its own tiles
/// or, where that shares the work more evenly, some rows of the block's tiles, which begin at `tile`, counted
/// from the thread's own.
template <class T, class F>
void for_part_of_product(Index rows, const Share<T>& share, const F& f) {
  constexpr Index group = panel::kernel_rows<T>;
  const Index groups = (rows + group - 1) / group;
  if (!share.is_better_by_rows(groups)) return f(Range{0, rows}, Index(0), share.samples());
  const Range mine = share.team.share(groups);
  share.team.barrier();
  f(Range{mine.begin * group, std::min(mine.end * group, rows)}, -share.first, share.block_samples);
  share.team.barrier();
}

/// Z = M Y + bias, M of rows x cols numbers in rows; no bias: 0. Y and Z are this thread's tiles; a team
/// calls it together.
template <class T>
void affine(Index rows, Index cols, const T* M, const T* bias, const T* Y, T* Z,
            const std::type_identity_t<Share<T>>& share) {
  const bool done = with_unrolled_shape(
      rows, cols, [&]<int R, int C>() { unrolled::affine<R, C, T>(M, bias, Y, Z, share.tiles); });
  if (done) return;
  for_part_of_product<T>(rows, share, [&](const Range& mine, Index tile, Index samples) {
    tile *= tile_width<T>;
    panel::affine<T>(rows, cols, M, bias, Y + tile * cols, Z + tile * rows, samples, mine);
  });
}

/// E = M^T D; the same holds for D and E. `scratch` is the calling thread's own, of panel::scratch_size<T>()
/// numbers.
template <class T>
void transposed_product(Index rows, Index cols, const T* M, const T* D, T* E,
                        const std::type_identity_t<Share<T>>& share, T* scratch) {
  const bool done = with_unrolled_shape(
      rows, cols, [&]<int R, int C>() { unrolled::transposed_product<R, C, T>(M, D, E, share.tiles); });
  if (done) return;
  for_part_of_product<T>(cols, share, [&](const Range& mine, Index tile, Index samples) {
    tile *= tile_width<T>;
    panel::transposed_product<T>(rows, cols, M, D + tile * rows, E + tile * cols, samples, mine, scratch);
  });
}

/// g = [g +] D 1, rows [mine.begin, mine.end).
template <class T>
void row_sums(Index rows, const T* D, Index tiles, const Range& mine, bool accumulate, T* g) {
  constexpr Index width = tile_width<T>;
  for (Index i = mine.begin; i < mine.end; ++i) {
    Pack<T> left{}, right{};
    for (Index t = 0; t < tiles; ++t) {
      left += load(D + (t * rows + i) * width);
      right += load(D + (t * rows + i) * width + lanes<T>);
    }
    const T total = sum_lanes<T>(left + right);
    g[i] = accumulate ? g[i] + total : total;
  }
}

/// G = [G +] D Y^T and, unless g is null, g = [g +] D 1 over all tiles of a block, by the whole team: each
/// thread has written its share of the tiles of D before, and may overwrite it afterwards; its share of Y is
/// a sum that is still to be added up. `panels` is shared by the team. Returns whether what this thread wrote
/// to G is known to be finite.
template <class T>
bool outer_product(Index rows, Index cols, const T* D, Combination<T>& Y,
                   const std::type_identity_t<Share<T>>& share, bool accumulate, T* G, T* g, T* panels) {
  const Team& team = share.team;
  const bool done = with_unrolled_shape(rows, cols, [&]<int R, int C>() {
    assert(team.size() == 1);  // small matrices are not worth a team
    unrolled::outer_product<R, C, T>(D, Y.result(), share.block_tiles, accumulate, G, g);
  });
  if (done) return false;
  const Index first = share.first, last = first + share.tiles;
  if constexpr (!std::floating_point<T>)
    panel::transpose_tiles(cols, Y.result(), share.block_tiles, first, last, panels);
  else if (Y.is_plane())
    panel::transpose_tiles<true>(cols, Y, share.block_tiles, first, last, panels);
  else
    panel::transpose_tiles<false>(cols, Y, share.block_tiles, first, last, panels);
  team.barrier();
  const Range groups = team.share((rows + panel::kernel_rows<T> - 1) / panel::kernel_rows<T>);
  const Range mine = {groups.begin * panel::kernel_rows<T>,
                      std::min(groups.end * panel::kernel_rows<T>, rows)};
  const bool finite = panel::outer_product(rows, cols, D, panels, share.block_samples, mine, accumulate, G);
  if (g) row_sums(rows, D, share.block_tiles, mine, accumulate, g);
  team.barrier();
  return finite;
}
/// The same with the block's plane Y.
template <class T>
bool outer_product(Index rows, Index cols, const T* D, const T* Y,
                   const std::type_identity_t<Share<T>>& share, bool accumulate, T* G, T* g, T* panels) {
  Combination<T> mine(Y + share.offset(cols), nullptr, 0);
  return outer_product(rows, cols, D, mine, share, accumulate, G, g, panels);
}

}  // namespace ocdl
