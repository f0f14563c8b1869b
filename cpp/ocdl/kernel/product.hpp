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

/// Z = M Y + bias, M of rows x cols numbers in rows; no bias: 0.
template <class T>
void affine(Index rows, Index cols, const T* M, const T* bias, const T* Y, T* Z, Index tiles) {
  const bool done = with_unrolled_shape(
      rows, cols, [&]<int R, int C>() { unrolled::affine<R, C, T>(M, bias, Y, Z, tiles); });
  if (!done) panel::affine<T>(rows, cols, M, bias, Y, Z, tiles);
}

/// E = M^T D. `scratch` is the calling thread's own, of panel::scratch_size<T>() numbers.
template <class T>
void transposed_product(Index rows, Index cols, const T* M, const T* D, T* E, Index tiles, T* scratch) {
  const bool done = with_unrolled_shape(
      rows, cols, [&]<int R, int C>() { unrolled::transposed_product<R, C, T>(M, D, E, tiles); });
  if (!done) panel::transposed_product<T>(rows, cols, M, D, E, tiles, scratch);
}

/// g = [g +] D 1, rows [first_row, last_row).
template <class T>
void row_sums(Index rows, const T* D, Index tiles, Index first_row, Index last_row, bool accumulate, T* g) {
  constexpr Index width = tile_width<T>;
  for (Index i = first_row; i < last_row; ++i) {
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
/// thread has written its share of the tiles of D and Y before, and may overwrite it afterwards. `panels` is
/// shared by the team.
template <class T>
void outer_product(Index rows, Index cols, const T* D, const T* Y, Index tiles, bool accumulate, T* G, T* g,
                   T* panels, const Team& team) {
  const bool done = with_unrolled_shape(rows, cols, [&]<int R, int C>() {
    assert(team.size() == 1);  // small matrices are not worth a team
    unrolled::outer_product<R, C, T>(D, Y, tiles, accumulate, G, g);
  });
  if (done) return;
  const Range mine = team.share(tiles);
  panel::transpose_tiles(cols, Y, tiles, mine.begin, mine.end, panels);
  team.barrier();
  const Range groups = team.share((rows + panel::kernel_rows<T> - 1) / panel::kernel_rows<T>);
  const Index first = groups.begin * panel::kernel_rows<T>,
              last = std::min(groups.end * panel::kernel_rows<T>, rows);
  panel::outer_product(rows, cols, D, panels, tiles, first, last, accumulate, G);
  if (g) row_sums(rows, D, tiles, first, last, accumulate, g);
  team.barrier();
}

}  // namespace ocdl
