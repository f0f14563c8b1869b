#pragma once

#include "ocdl/sweep/network.hpp"

namespace ocdl {

/// Rows of data as a sweep takes them: of each sample its features, where the state begins, and behind them
/// the inputs of the layers. They are numbers of its scalar T, or of another one that becomes T on the way
/// into a plane; null: zeros.
template <class T>
class SampleRows {
 public:
  template <class S>
  SampleRows(const Network& net, const S* rows)
      : net_(net),
        rows_(rows),
        write_([](const void* first, Index offset, Index samples, Index numbers, Index stride,
                  const Plane<T>& to) {
          rows_to_plane<T>(static_cast<const S*>(first) + offset, samples, numbers, stride, to);
        }) {}

  /// y[0] of these rows, in a thread's slice of the plane.
  void write_features(const Range& rows, const Plane<T>& state) const {
    write(rows, 0, net_.features, state);
  }

  /// x_j, into the last rows of the state, and x_(j+1) - x_j, unless inputs stay as they are in a layer. Both
  /// are a thread's slice; `changes` has two planes, of which the second one is scratch memory.
  void write_inputs(const Range& rows, Index j, const Plane<T>& state, const Planes<T>& changes) const {
    const Index count = net_.inputs, begin = net_.features + j * count;
    if (count == 0) return;
    const Plane<T> x = changes[1], change = changes[0];
    write(rows, begin, count, x);
    for (Index t = 0; t < state.tiles(); ++t)
      std::copy_n(x.lane(t, 0, 0), x.tile_size(), state.lane(t, net_.dim, 0));
    if (!net_.changes_inputs()) return;
    write(rows, begin + count, count, change);
    for (Index n = 0; n < change.size(); ++n) change.data()[n] = change.data()[n] - x.data()[n];
  }

 private:
  const Network& net_;
  const void* rows_;
  void (*write_)(const void*, Index, Index, Index, Index, const Plane<T>&);

  void write(const Range& rows, Index first, Index numbers, const Plane<T>& to) const {
    if (rows_)
      write_(rows_, rows.begin * net_.row_size() + first, rows.size(), numbers, net_.row_size(), to);
    else
      std::fill_n(to.data(), to.size(), T(0));
  }
};

/// The gradient by such rows: p[0] in the place of the features, behind it the gradients by the inputs. With
/// e_i = h_j (d_x f)^T g_i, and c_i = 0 where inputs stay as they are within a layer:
///     dJ/dx_j += sum_i (1 - c_i) e_i,   dJ/dx_(j+1) += sum_i c_i e_i.
template <class T>
class RowGradient {
 public:
  /// `rows`: (samples, row_size); null: nothing is written.
  RowGradient(const Network& net, T* rows) : net_(net), rows_(rows) {}

  bool has_inputs() const { return rows_ && net_.inputs > 0; }

  /// p[0].
  void write_features(const Range& rows, const Plane<const T>& p) const {
    if (rows_) write(rows, 0, net_.features, p);
  }

  /// After the backward step of layer j, j = N-1, ..., 0: `carry` has the part of x_(j+1) that layer j+1
  /// left, and takes that of x_j. Planes are a thread's slice.
  void add_layer(const Range& rows, Index j, const Planes<T>& eta, const Plane<T>& carry) const {
    if (!has_inputs()) return;
    const bool is_last = j + 1 == net_.layers;
    if (is_last) std::fill_n(carry.data(), carry.size(), T(0));
    if (net_.changes_inputs())
      for (Index i = 0; i < net_.stages; ++i) add(net_.tableau.c()(i), i, eta, carry);
    if (!is_last || net_.linear_inputs) write(rows, j + 1, carry);
    std::fill_n(carry.data(), carry.size(), T(0));
    for (Index i = 0; i < net_.stages; ++i)
      add(net_.changes_inputs() ? 1 - net_.tableau.c()(i) : 1, i, eta, carry);
    if (j == 0) write(rows, 0, carry);
  }

 private:
  const Network& net_;
  T* rows_;

  void add(double weight, Index i, const Planes<T>& eta, const Plane<T>& carry) const {
    if (!net_.is_live(i) || weight == 0) return;
    for (Index t = 0; t < carry.tiles(); ++t) {
      const T* const from = eta[i].lane(t, net_.dim, 0);
      T* const to = carry.lane(t, 0, 0);
      detail::for_packs<T>(carry.tile_size(), [&](Index n) {
        store<T>(to + n, fma(broadcast<T>(T(weight)), load(from + n), load(to + n)));
      });
    }
  }
  void write(const Range& rows, Index time, const Plane<const T>& inputs) const {
    write(rows, net_.features + time * net_.inputs, net_.inputs, inputs);
  }
  void write(const Range& rows, Index first, Index numbers, const Plane<const T>& from) const {
    plane_to_rows<T>(from, rows.size(), numbers, net_.row_size(),
                     rows_ + rows.begin * net_.row_size() + first);
  }
};

}  // namespace ocdl
