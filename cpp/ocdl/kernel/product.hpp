#pragma once

#include <cassert>

#include "ocdl/kernel/panel_product.hpp"
#include "ocdl/kernel/unrolled_product.hpp"
#include "ocdl/parallel.hpp"

/// The three products of a layer, each with the kernel that fits the shape of the matrix. Planes of states
/// may have more rows than the matrix has rows or columns: those of the inputs stay as they are.
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

/// Calls f(rows, tiles) for this thread's part of a product of `rows` rows: all rows of its own tiles or,
/// where that splits the work more evenly, some rows of all tiles of the block.
template <class T, class F>
void for_part_of_product(Index rows, const ThreadSlice<T>& thread, const F& f) {
  constexpr Index group = panel::kernel_rows<T>;
  const Index groups = (rows + group - 1) / group;
  if (!thread.is_better_by_rows(groups)) return f(Range{0, rows}, thread.range(), thread.samples());
  const Range thread_groups = thread.team.range_of(groups);
  thread.team.barrier();
  f(Range{thread_groups.begin * group, std::min(thread_groups.end * group, rows)},
    Range{0, thread.block_tiles}, thread.block_samples);
  thread.team.barrier();
}

/// Z = M Y + bias; no bias: 0. Y and Z are planes of the block; a team calls it together, and each thread has
/// written its slice of Y before.
template <class T>
void affine(const std::type_identity_t<MatrixView<const T>>& M, const std::type_identity_t<T>* bias,
            const std::type_identity_t<Plane<const T>>& Y, const Plane<T>& Z, const ThreadSlice<T>& thread) {
  const Index rows = M.rows(), cols = M.cols();
  assert(Y.rows() >= cols && Z.rows() >= rows && Y.tiles() == thread.block_tiles &&
         Z.tiles() == thread.block_tiles);
  const bool done =
      Y.rows() == cols && Z.rows() == rows && with_unrolled_shape(rows, cols, [&]<int R, int C>() {
        unrolled::affine<R, C, T>(M.data(), bias, Y.slice(thread).data(), Z.slice(thread).data(),
                                  thread.tiles);
      });
  if (done) return;
  for_part_of_product<T>(rows, thread, [&](const Range& part, const Range& tiles, Index samples) {
    panel::affine<T>(cols, M.data(), bias, Y.slice(tiles), Z.slice(tiles), samples, part);
  });
}

/// Z += M Y, after the team has written Z.
template <class T>
void add_product(const std::type_identity_t<MatrixView<const T>>& M,
                 const std::type_identity_t<Plane<const T>>& Y, const Plane<T>& Z,
                 const ThreadSlice<T>& thread) {
  const Index rows = M.rows(), cols = M.cols();
  assert(Y.rows() >= cols && Z.rows() >= rows);
  for_part_of_product<T>(rows, thread, [&](const Range& part, const Range& tiles, Index samples) {
    panel::affine<T>(cols, M.data(), nullptr, Y.slice(tiles), Z.slice(tiles), samples, part, true);
  });
}

/// E = M^T D; the same holds for D and E. `scratch` is the calling thread's own, of panel::scratch_size<T>()
/// numbers.
template <class T>
void transposed_product(const std::type_identity_t<MatrixView<const T>>& M,
                        const std::type_identity_t<Plane<const T>>& D, const Plane<T>& E,
                        const ThreadSlice<T>& thread, std::type_identity_t<T>* scratch) {
  const Index rows = M.rows(), cols = M.cols();
  assert(D.rows() >= rows && E.rows() >= cols && D.tiles() == thread.block_tiles &&
         E.tiles() == thread.block_tiles);
  const bool done =
      D.rows() == rows && E.rows() == cols && with_unrolled_shape(rows, cols, [&]<int R, int C>() {
        unrolled::transposed_product<R, C, T>(M.data(), D.slice(thread).data(), E.slice(thread).data(),
                                              thread.tiles);
      });
  if (done) return;
  for_part_of_product<T>(cols, thread, [&](const Range& part, const Range& tiles, Index samples) {
    panel::transposed_product<T>(rows, cols, M.data(), D.slice(tiles), E.slice(tiles), samples, part,
                                 scratch);
  });
}

/// E += M^T D, after the team has written E.
template <class T>
void add_transposed_product(const std::type_identity_t<MatrixView<const T>>& M,
                            const std::type_identity_t<Plane<const T>>& D, const Plane<T>& E,
                            const ThreadSlice<T>& thread, std::type_identity_t<T>* scratch) {
  const Index rows = M.rows(), cols = M.cols();
  assert(D.rows() >= rows && E.rows() >= cols);
  for_part_of_product<T>(cols, thread, [&](const Range& part, const Range& tiles, Index samples) {
    panel::transposed_product<T>(rows, cols, M.data(), D.slice(tiles), E.slice(tiles), samples, part, scratch,
                                 true);
  });
}

/// g = [g +] D 1, rows [mine.begin, mine.end).
template <class T>
void row_sums(const Plane<const T>& D, const Range& mine, bool accumulate, T* g) {
  for (Index i = mine.begin; i < mine.end; ++i) {
    Pack<T> left{}, right{};
    for (Index t = 0; t < D.tiles(); ++t) {
      left += load(D.lane(t, i, 0));
      right += load(D.lane(t, i, lanes<T>));
    }
    const T total = sum_lanes<T>(left + right);
    g[i] = accumulate ? g[i] + total : total;
  }
}

/// G = [G +] D Y^T and, unless g is null, g = [g +] D 1 over all tiles of a block, by the whole team: each
/// thread has written its slice of D before, and may overwrite it afterwards. D is a plane of the block; Y is
/// the thread's slice of a sum that is still to be added up. `panels` is shared by the team. What
/// this thread writes to G is reported to the probe, unless null.
template <class T>
void outer_product(const std::type_identity_t<Plane<const T>>& D, LinearCombination<T>& Y,
                   const ThreadSlice<T>& thread, bool accumulate,
                   const std::type_identity_t<MatrixView<T>>& G, std::type_identity_t<T>* g,
                   std::type_identity_t<T>* panels, FiniteProbe* probe = nullptr) {
  const Team& team = thread.team;
  const Index rows = G.rows(), cols = G.cols(), tiles = thread.block_tiles;
  T* const result = const_cast<T*>(G.data());
  assert(D.rows() >= rows && Y.rows() >= cols && D.tiles() == tiles);
  const bool done =
      D.rows() == rows && Y.rows() == cols && with_unrolled_shape(rows, cols, [&]<int R, int C>() {
        assert(team.size() == 1);  // small matrices are not worth a team
        unrolled::outer_product<R, C, T>(D.data(), Y.result().data(), tiles, accumulate, result, g);
      });
  if (done && probe) probe->report(false);
  if (done) return;
  const auto [first, last] = thread.range();
  if constexpr (!std::floating_point<T>)
    panel::transpose_tiles(cols, Y.result(), tiles, first, last, panels);
  else if (Y.is_plane())
    panel::transpose_tiles<true>(cols, Y, tiles, first, last, panels);
  else
    panel::transpose_tiles<false>(cols, Y, tiles, first, last, panels);
  team.barrier();
  const Range groups = team.range_of((rows + panel::kernel_rows<T> - 1) / panel::kernel_rows<T>);
  const Range part = {groups.begin * panel::kernel_rows<T>,
                      std::min(groups.end * panel::kernel_rows<T>, rows)};
  panel::outer_product<T>(cols, D, panels, thread.block_samples, part, accumulate, result, probe);
  if (g) row_sums<T>(D, part, accumulate, g);
  team.barrier();
}
/// The same with the block's plane Y.
template <class T>
void outer_product(const std::type_identity_t<Plane<const T>>& D, const Plane<const T>& Y,
                   const ThreadSlice<T>& thread, bool accumulate,
                   const std::type_identity_t<MatrixView<T>>& G, std::type_identity_t<T>* g,
                   std::type_identity_t<T>* panels, FiniteProbe* probe = nullptr) {
  LinearCombination<T> slice(Y.slice(thread));
  outer_product(D, slice, thread, accumulate, G, g, panels, probe);
}

}  // namespace ocdl
