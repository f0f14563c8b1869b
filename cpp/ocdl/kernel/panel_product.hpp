#pragma once

#include <utility>

#include "ocdl/kernel/finite_probe.hpp"
#include "ocdl/kernel/linear_combination.hpp"
#include "ocdl/kernel/thread_slice.hpp"
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

/// Steps over the depth between two tests of the loop: with few multiply-adds a step the test is felt, which
/// was measured to cost a twelfth of the speed; the many of a wide register tile hide it.
inline constexpr int depth_unroll = vector_bytes == 64 ? 1 : 2;

/// R rows of a result, P packs wide: a tile, or the half of it that holds samples.
template <int R, int P, class T>
struct Accumulator {
  Pack<T> at[R][P];

  void load_from(const T* C, Index stride) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) at[i][p] = load(C + i * stride + p * lanes<T>);
  }
  /// Whole tiles: what half a tile leaves out becomes 0, so that padding stays finite.
  void store_to(T* C, Index stride) const {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      store<T>(C + i * stride, at[i][0]);
      store<T>(C + i * stride + lanes<T>, P == 2 ? at[i][P - 1] : Pack<T>{});
    }
  }
  /// Has the cache lines fetched that will be written: a gradient comes from far away.
  void prefetch_for_write(const T* C, Index stride) const {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) __builtin_prefetch(C + i * stride + p * lanes<T>, 1);
  }
  void add_rows(const T* C, Index stride) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) at[i][p] = load(C + i * stride + p * lanes<T>) + at[i][p];
  }
  /// The sum of everything, in any order: not finite where one of them is not.
  Pack<T> total() const {
    Pack<T> sum{};
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) sum += at[i][p];
    return sum;
  }
  void fill_rows(const T* value) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) at[i][p] = value ? broadcast<T>(value[i]) : Pack<T>{};
  }
  /// at += A B, with A(i,k) at A[i*row_stride + k*depth_stride] and B[k] a row of one tile's width.
  void add_product(Index depth, const T* A, Index row_stride, Index depth_stride, const T* B) {
#pragma GCC unroll depth_unroll
    for (Index k = 0; k < depth; ++k, A += depth_stride, B += tile_width<T>) {
      const Pack<T> left = load(B), right = load(B + (P - 1) * lanes<T>);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const Pack<T> a = broadcast<T>(A[i * row_stride]);
        multiply_add(at[i][0], a, left);
        if constexpr (P == 2) multiply_add(at[i][1], a, right);
      }
    }
  }
};

/// C = A B + bias or, if `accumulate`, C += A B; operands as in Accumulator. Out of
/// line: compiled once, whatever the loops around it.
template <int R, int P, bool rows_together, class T>
[[gnu::noinline]] void multiply_rows(Index depth, const T* A, Index stride, const T* B, bool accumulate,
                                     const T* bias, T* C) {
  Accumulator<R, P, T> sum;
  if (accumulate)
    sum.load_from(C, tile_width<T>);
  else
    sum.fill_rows(bias);
  sum.add_product(depth, A, rows_together ? 1 : stride, rows_together ? stride : 1, B);
  sum.store_to(C, tile_width<T>);
}

/// Calls f<P>(), P packs for the first `samples` lanes of a tile.
template <class T, class F>
inline void with_packs(Index samples, const F& f) {
  if (samples > lanes<T>)
    f.template operator()<2>();
  else
    f.template operator()<1>();
}

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

/// Rows [mine.begin, mine.end) of Z = M Y + bias, M of `cols` columns in rows; no bias: 0. To `accumulate` is
/// Z += M Y. Here and below, planes may have rows behind those of the product, which stay as they are.
template <class T>
void affine(Index cols, const T* M, const T* bias, const Plane<const T>& Y, const Plane<T>& Z, Index samples,
            const Range& mine, bool accumulate = false) {
  constexpr Index width = tile_width<T>;
  const Index depth_part = part(cols, depth_block), row_part = part(mine.end - mine.begin, row_block);
  for (Index k0 = 0; k0 < cols; k0 += depth_part) {
    const Index depth = std::min(depth_part, cols - k0);
    for (Index i0 = mine.begin; i0 < mine.end; i0 += row_part) {
      const Index row_end = std::min(i0 + row_part, mine.end);
      for_tiles_and_row_groups<T>(
          tiles_for<T>(samples), depth * width, i0, row_end, [&]<int R>(Index t, Index i) {
            with_packs<T>(samples - t * width, [&]<int P>() {
              multiply_rows<R, P, false>(depth, M + i * cols + k0, cols, Y.lane(t, k0, 0),
                                         accumulate || k0 > 0, bias ? bias + i : nullptr, Z.lane(t, i, 0));
            });
          });
    }
  }
}

/// Rows [mine.begin, mine.end) of E = M^T D, M of rows x cols numbers in rows. `scratch` holds
/// scratch_size<T>() numbers. To `accumulate` is E += M^T D.
template <class T>
void transposed_product(Index rows, Index cols, const T* M, const Plane<const T>& D, const Plane<T>& E,
                        Index samples, const Range& mine, T* scratch, bool accumulate = false) {
  constexpr Index width = tile_width<T>;
  const bool packed = rows * cols > in_place_entries;
  const Index depth_part = part(rows, depth_block), col_part = part(mine.end - mine.begin, row_block);
  for (Index k0 = 0; k0 < rows; k0 += depth_part) {
    const Index depth = std::min(depth_part, rows - k0);
    for (Index i0 = mine.begin; i0 < mine.end; i0 += col_part) {
      const Index col_end = std::min(i0 + col_part, mine.end);
      const T* block = M + k0 * cols;
      if (packed) pack_transposed(block, cols, depth, i0, col_end, scratch);
      for_tiles_and_row_groups<T>(
          tiles_for<T>(samples), depth * width, i0, col_end, [&]<int R>(Index t, Index i) {
            const T* columns = packed ? scratch + (i - i0) * depth : block + i;
            with_packs<T>(samples - t * width, [&]<int P>() {
              multiply_rows<R, P, true>(depth, columns, packed ? R : cols, D.lane(t, k0, 0),
                                        accumulate || k0 > 0, static_cast<const T*>(nullptr),
                                        E.lane(t, i, 0));
            });
          });
    }
  }
}

/// Panels of one tile's width of features: what `outer_product` takes as its right factor.
template <class T>
constexpr Index transposed_size(Index cols, Index tiles) {
  return tiles_for<T>(cols) * tile_width<T> * tiles * tile_width<T>;
}

/// Rows [feature, feature + lanes) of a pack of samples, which begins at n; behind `cols` they are 0.
template <bool IsPlane, class T>
[[gnu::always_inline]] inline void read_features(const typename LinearCombination<T>::Reader& Y, Index cols,
                                                 Index feature, Index n, Pack<T> (&rows)[lanes<T>]) {
  if (feature + lanes<T> <= cols) return Y.template read<IsPlane>(n, tile_width<T>, rows);
  for (int i = 0; i < lanes<T>; ++i) {
    Pack<T> row[1] = {};
    if (feature + i < cols) Y.template read<IsPlane>(n + i * tile_width<T>, 0, row);
    rows[i] = row[0];
  }
}

/// The tiles of Y, which are [first, last) of so many, into panels: feature f of panel c of sample s at
/// ((c*samples) + s)*width + f.
template <bool IsPlane, class T>
void transpose_tiles(Index cols, const LinearCombination<T>& Y, Index tiles, Index first, Index last,
                     T* panels) {
  constexpr Index width = tile_width<T>;
  const typename LinearCombination<T>::Reader reader(Y);
  for (Index c = 0; c * width < cols; ++c)
    for (Index t = first; t < last; ++t)
      for (Index f = 0; f < width; f += lanes<T>)
        for (Index s = 0; s < width; s += lanes<T>) {
          const Index feature = c * width + f;
          Pack<T> rows[lanes<T>];
          read_features<IsPlane, T>(reader, cols, feature, ((t - first) * Y.rows() + feature) * width + s,
                                    rows);
          write_transposed<T>(rows, panels + ((c * tiles + t) * width + s) * width + f, width);
        }
}

/// The same of scalars that are not numbers of the machine, number by number.
template <class T>
void transpose_tiles(Index cols, const Plane<const T>& Y, Index tiles, Index first, Index last, T* panels) {
  constexpr Index width = tile_width<T>;
  for (Index c = 0; c * width < cols; ++c)
    for (Index t = first; t < last; ++t)
      for (Index s = 0; s < width; ++s)
        for (Index f = 0; f < width; ++f) {
          const Index feature = c * width + f;
          panels[((c * tiles + t) * width + s) * width + f] =
              feature < cols ? *Y.lane(t - first, feature, s) : T(0);
        }
}

/// Rows [mine.begin, mine.end) of G = [G +] D Y^T, with Y given by `transpose_tiles`, G of rows x cols
/// numbers. Padding is not read.
template <class T>
void outer_product(Index cols, const Plane<const T>& D, const T* panels, Index samples, const Range& mine,
                   bool accumulate, T* G, FiniteProbe* probe) {
  constexpr Index width = tile_width<T>;
  const Index panel_count = tiles_for<T>(cols), panel_size = tiles_for<T>(samples) * width * width;
  const Index panels_in_cache = std::max<Index>(1, depth_block * width * 4 / panel_size);
  Pack<T> written{};
  for (Index c0 = 0; c0 < panel_count; c0 += panels_in_cache) {
    const Index c_end = std::min(c0 + panels_in_cache, panel_count);
    for_row_groups<T>(mine.begin, mine.end, [&]<int R>(Index i) {
      for (Index c = c0; c < c_end; ++c) {
        const Index valid = std::min(width, cols - c * width);
        with_packs<T>(valid, [&]<int P>() {
          Accumulator<R, P, T> sum;
          sum.fill_rows(nullptr);
          T* g = G + i * cols + c * width;
          sum.prefetch_for_write(g, cols);
          for (Index s = 0; s < samples; s += width)
            sum.add_product(std::min(width, samples - s), D.data() + s * D.rows() + i * width, width, 1,
                            panels + c * panel_size + s * width);
          if (valid == width) {
            if (accumulate) sum.add_rows(g, cols);
            written += sum.total();
            sum.store_to(g, cols);
          } else {
            T result[R * width];
            sum.store_to(result, width);
            for (Index r = 0; r < R; ++r) {
              T *from = result + r * width, *to = g + r * cols;
              for (Index f = 0; f < valid; ++f) to[f] = from[f] = accumulate ? to[f] + from[f] : from[f];
              written += load(from) + load(from + lanes<T>);
            }
          }
        });
      }
    });
  }
  if (probe) probe->report(is_finite<T>(sum_lanes<T>(written)));
}

}  // namespace ocdl::panel
