#pragma once

#include <utility>

#include "ocdl/kernel/tile.hpp"
#include "ocdl/kernel/transpose.hpp"

/// Matrix products with planes, for matrices of any size.
///
/// One register kernel serves the three products of a layer: R rows of a matrix A, broadcast number by
/// number, times a panel B that is one tile wide. Each result is one chain of multiply-adds over the depth,
/// in order: its bits depend neither on the place of its row nor on how the rows or tiles are shared among
/// threads.
namespace ocdl::panel {

/// Rows of the register tile: 6 x 2 packs leave 4 of 16 registers for operands, 12 x 2 leave 8 of 32. Packs
/// of dual numbers are two registers each, and so are their operands.
template <class T>
inline constexpr int kernel_rows = (vector_bytes == 64 ? 12 : 6) / (is_dual<T> ? 3 : 1);

/// Blocking: a panel of depth_block numbers per lane stays in L1, row_block x depth_block of the matrix in
/// L2.
inline constexpr Index depth_block = 256;
inline constexpr Index row_block = vector_bytes == 64 ? 192 : 96;

/// Numbers of a plane that stay in L1 while all rows of the matrix pass by.
inline constexpr Index cached_run = 2048;

/// Matrices up to this many entries stay in L1 and are read in place; larger transposes are packed first.
inline constexpr Index in_place_entries = 2048;

template <class T>
constexpr Index scratch_size() {
  return row_block * depth_block;
}

/// Equal parts of at most `limit`, so that the last one is not a sliver.
constexpr Index part(Index total, Index limit) {
  const Index count = std::max<Index>(1, (total + limit - 1) / limit);
  return (total + count - 1) / count;
}

template <int R, class T>
struct Accumulator {
  Pack<T> at[R][2];

  void load_from(const T* C, Index stride) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      at[i][0] = load(C + i * stride);
      at[i][1] = load(C + i * stride + lanes<T>);
    }
  }
  void store_to(T* C, Index stride) const {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      store<T>(C + i * stride, at[i][0]);
      store<T>(C + i * stride + lanes<T>, at[i][1]);
    }
  }
  void fill_rows(const T* value) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) at[i][0] = at[i][1] = value ? broadcast<T>(value[i]) : Pack<T>{};
  }
  /// at += A B, with A(i,k) at A[i*row_stride + k*depth_stride] and B[k] a row of one tile's width.
  void add_product(Index depth, const T* A, Index row_stride, Index depth_stride, const T* B) {
    for (Index k = 0; k < depth; ++k, A += depth_stride, B += tile_width<T>) {
      const Pack<T> left = load(B), right = load(B + lanes<T>);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const Pack<T> a = broadcast<T>(A[i * row_stride]);
        multiply_add(at[i][0], a, left);
        multiply_add(at[i][1], a, right);
      }
    }
  }
};

/// Calls f<R>(i) for groups of R consecutive rows i, i+1, ... of [begin, end): as few groups as there can be,
/// of nearly equal size, because a small group leaves the multiply-add units waiting.
template <class T, class F>
inline void for_row_groups(Index begin, Index end, const F& f) {
  const Index rows = end - begin, groups = (rows + kernel_rows<T> - 1) / kernel_rows<T>;
  const Index small = groups ? rows / groups : 0, large_groups = rows - small * groups;
  const auto call = [&]<int... R>(Index size, Index i, std::integer_sequence<int, R...>) {
    ((size == R + 1 ? f.template operator()<R + 1>(i) : void()), ...);
  };
  Index i = begin;
  for (Index group = 0; group < groups; ++group) {
    const Index size = small + (group < large_groups);
    call(size, i, std::make_integer_sequence<int, kernel_rows<T>>());
    i += size;
  }
}

/// Calls f<R>(tile, i) for all tiles and row groups, in the order that reads `run` numbers per tile from L1.
template <class T, class F>
inline void for_tiles_and_row_groups(Index tiles, Index run, Index begin, Index end, const F& f) {
  const Index together = std::max<Index>(1, cached_run / run);
  for (Index first = 0; first < tiles; first += together) {
    const Index last = std::min(first + together, tiles);
    for_row_groups<T>(begin, end, [&]<int R>(Index i) {
      for (Index t = first; t < last; ++t) f.template operator()<R>(t, i);
    });
  }
}

/// Columns [begin, end) of a matrix of `depth` rows, group by group: the R numbers of a row group stand
/// together.
template <class T>
void pack_transposed(const T* M, Index cols, Index depth, Index begin, Index end, T* packed) {
  constexpr Index rows_at_once = 8;  // the pieces of a row that belong to different groups are still in L1
  for (Index k0 = 0; k0 < depth; k0 += rows_at_once) {
    const Index k_end = std::min(k0 + rows_at_once, depth);
    for_row_groups<T>(begin, end, [&]<int R>(Index i) {
      for (Index k = k0; k < k_end; ++k) {
        const T* from = M + k * cols + i;
        T* to = packed + (i - begin) * depth + k * R;
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) to[r] = from[r];
      }
    });
  }
}

/// Z = M Y + bias, M of rows x cols numbers in rows; no bias: 0.
template <class T>
void affine(Index rows, Index cols, const T* M, const T* bias, const T* Y, T* Z, Index tiles) {
  constexpr Index width = tile_width<T>;
  const Index depth_part = part(cols, depth_block), row_part = part(rows, row_block);
  for (Index k0 = 0; k0 < cols; k0 += depth_part) {
    const Index depth = std::min(depth_part, cols - k0);
    for (Index i0 = 0; i0 < rows; i0 += row_part) {
      const Index row_end = std::min(i0 + row_part, rows);
      for_tiles_and_row_groups<T>(tiles, depth * width, i0, row_end, [&]<int R>(Index t, Index i) {
        T* z = Z + (t * rows + i) * width;
        Accumulator<R, T> sum;
        if (k0 == 0)
          sum.fill_rows(bias ? bias + i : nullptr);
        else
          sum.load_from(z, width);
        sum.add_product(depth, M + i * cols + k0, cols, 1, Y + (t * cols + k0) * width);
        sum.store_to(z, width);
      });
    }
  }
}

/// E = M^T D, M of rows x cols numbers in rows. `scratch` holds scratch_size<T>() numbers.
template <class T>
void transposed_product(Index rows, Index cols, const T* M, const T* D, T* E, Index tiles, T* scratch) {
  constexpr Index width = tile_width<T>;
  const bool packed = rows * cols > in_place_entries;
  const Index depth_part = part(rows, depth_block), col_part = part(cols, row_block);
  for (Index k0 = 0; k0 < rows; k0 += depth_part) {
    const Index depth = std::min(depth_part, rows - k0);
    for (Index i0 = 0; i0 < cols; i0 += col_part) {
      const Index col_end = std::min(i0 + col_part, cols);
      const T* block = M + k0 * cols;
      if (packed) pack_transposed(block, cols, depth, i0, col_end, scratch);
      for_tiles_and_row_groups<T>(tiles, depth * width, i0, col_end, [&]<int R>(Index t, Index i) {
        T* e = E + (t * cols + i) * width;
        Accumulator<R, T> sum;
        if (k0 == 0)
          sum.fill_rows(nullptr);
        else
          sum.load_from(e, width);
        const T* columns = packed ? scratch + (i - i0) * depth : block + i;
        sum.add_product(depth, columns, 1, packed ? R : cols, D + (t * rows + k0) * width);
        sum.store_to(e, width);
      });
    }
  }
}

/// Panels of one tile's width of features: what `outer_product` takes as its right factor.
template <class T>
constexpr Index transposed_size(Index cols, Index tiles) {
  return tiles_for<T>(cols) * tile_width<T> * tiles * tile_width<T>;
}

/// Tiles [first, last) of the plane Y into panels: feature f of panel c of sample s at ((c*samples) +
/// s)*width + f.
template <class T>
void transpose_tiles(Index cols, const T* Y, Index tiles, Index first, Index last, T* panels) {
  constexpr Index width = tile_width<T>;
  for (Index c = 0; c * width < cols; ++c) {
    const Index valid = std::min(width, cols - c * width);
    for (Index t = first; t < last; ++t) {
      const T* from = Y + (t * cols + c * width) * width;
      T* to = panels + (c * tiles + t) * width * width;
      if (valid == width) {
        for (Index f = 0; f < width; f += lanes<T>)
          for (Index s = 0; s < width; s += lanes<T>)
            transpose_block(from + f * width + s, width, to + s * width + f, width);
        continue;
      }
      for (Index s = 0; s < width; ++s) {
        for (Index f = 0; f < valid; ++f) to[s * width + f] = from[f * width + s];
        std::fill(to + s * width + valid, to + (s + 1) * width, T(0));
      }
    }
  }
}

/// Rows [first_row, last_row) of G = [G +] D Y^T, with Y given by `transpose_tiles`, G of rows x cols
/// numbers.
template <class T>
void outer_product(Index rows, Index cols, const T* D, const T* panels, Index tiles, Index first_row,
                   Index last_row, bool accumulate, T* G) {
  constexpr Index width = tile_width<T>;
  const Index panel_count = tiles_for<T>(cols), panel_size = tiles * width * width;
  const Index panels_in_cache = std::max<Index>(1, depth_block * width * 4 / panel_size);
  for (Index c0 = 0; c0 < panel_count; c0 += panels_in_cache) {
    const Index c_end = std::min(c0 + panels_in_cache, panel_count);
    for_row_groups<T>(first_row, last_row, [&]<int R>(Index i) {
      for (Index c = c0; c < c_end; ++c) {
        Accumulator<R, T> sum;
        sum.fill_rows(nullptr);
        for (Index t = 0; t < tiles; ++t)
          sum.add_product(width, D + (t * rows + i) * width, width, 1,
                          panels + c * panel_size + t * width * width);
        T* g = G + i * cols + c * width;
        const Index valid = std::min(width, cols - c * width);
        if (valid == width && !accumulate) {
          sum.store_to(g, cols);
        } else {
          T result[R * width];
          sum.store_to(result, width);
          for (Index r = 0; r < R; ++r)
            for (Index f = 0; f < valid; ++f)
              g[r * cols + f] = accumulate ? g[r * cols + f] + result[r * width + f] : result[r * width + f];
        }
      }
    });
  }
}

}  // namespace ocdl::panel
