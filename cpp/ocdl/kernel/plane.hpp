#pragma once

#include <cassert>

#include "ocdl/kernel/thread_slice.hpp"

namespace ocdl {

/// A view of `rows` features of some tiles: of a whole block of samples, or of a thread's slice of it. E is T
/// or const T. A null plane stands for one that does not exist, and so do its slices.
template <class E>
class Plane {
 public:
  using Scalar = std::remove_const_t<E>;
  using Tile = Eigen::Array<Scalar, Eigen::Dynamic, tile_width<Scalar>, Eigen::RowMajor>;

  Plane() = default;
  Plane(E* data, Index rows, Index tiles) : data_(data), rows_(rows), tiles_(tiles) {}
  operator Plane<const Scalar>() const
    requires(!std::is_const_v<E>)
  {
    return {data_, rows_, tiles_};
  }

  explicit operator bool() const { return data_ != nullptr; }
  E* data() const { return data_; }
  Index rows() const { return rows_; }
  Index tiles() const { return tiles_; }
  Index tile_size() const { return rows_ * tile_width<Scalar>; }
  Index size() const { return tiles_ * tile_size(); }

  /// Tile t as an array of `rows` x `tile_width`.
  View<E, Tile> tile(Index t) const {
    assert(0 <= t && t < tiles_);
    return {data_ + t * tile_size(), rows_, tile_width<Scalar>};
  }
  /// Feature `row` of the samples of tile t from `lane` on.
  E* lane(Index t, Index row, Index lane) const {
    assert(0 <= t && t < tiles_ && 0 <= row && row < rows_);
    return data_ + t * tile_size() + row * tile_width<Scalar> + lane;
  }

  Plane slice(const Range& tiles) const {
    if (!data_) return *this;
    assert(0 <= tiles.begin && tiles.begin <= tiles.end && tiles.end <= tiles_);
    return {data_ + tiles.begin * tile_size(), rows_, tiles.size()};
  }
  /// A thread's slice of the plane of a block.
  Plane slice(const ThreadSlice<Scalar>& thread) const {
    assert(!data_ || tiles_ == thread.block_tiles);
    return slice(thread.range());
  }

 private:
  E* data_ = nullptr;
  Index rows_ = 0, tiles_ = 0;
};

/// Planes of one shape, `stride` numbers apart.
template <class E>
class Planes {
 public:
  Planes() = default;
  Planes(const Plane<E>& first, Index stride) : first_(first), stride_(stride) {}

  Plane<E> operator[](Index n) const {
    return first_ ? Plane<E>(first_.data() + n * stride_, first_.rows(), first_.tiles()) : first_;
  }
  /// The planes from number n on.
  Planes from(Index n) const { return {(*this)[n], stride_}; }
  template <class Slice>
  Planes slice(const Slice& tiles) const {
    return {first_.slice(tiles), stride_};
  }

 private:
  Plane<E> first_;
  Index stride_ = 0;
};

/// Rows of `features` numbers, `stride` apart, become the first features of a plane; the others start at 0.
/// The last row fills the padding: a padded lane stays finite wherever the samples do. Numbers of another
/// type are converted.
template <class T, class S>
void rows_to_plane(const S* rows, Index samples, Index features, Index stride, const Plane<T>& plane) {
  constexpr Index width = tile_width<T>;
  assert(features <= plane.rows() && tiles_for<T>(samples) <= plane.tiles());
  T* tile = plane.data();
  for (Index first = 0; first < samples; first += width, tile += plane.tile_size()) {
    const Index last = samples - 1;
    bool is_done = false;
    if constexpr (std::floating_point<T> && std::same_as<S, T>)
      if (features == 2 && stride == 2 && first + width <= samples) {
        deinterleave(rows + first * 2, tile);
        is_done = true;
      }
    if (!is_done)
      for (Index s = 0; s < width; ++s) {
        const S* row = rows + std::min(first + s, last) * stride;
        for (Index i = 0; i < features; ++i) tile[i * width + s] = T(row[i]);
      }
    std::fill(tile + features * width, tile + plane.tile_size(), T(0));
  }
}

template <class T, class S>
void rows_to_plane(const S* rows, Index samples, Index features, const Plane<T>& plane) {
  rows_to_plane(rows, samples, features, features, plane);
}

/// The first `features` of each sample of a plane, as rows `stride` apart.
template <class T>
void plane_to_rows(const Plane<const T>& plane, Index samples, Index features, Index stride, T* rows) {
  constexpr Index width = tile_width<T>;
  assert(features <= plane.rows() && tiles_for<T>(samples) <= plane.tiles());
  const T* tile = plane.data();
  for (Index first = 0; first < samples; first += width, tile += plane.tile_size()) {
    const Index count = std::min(width, samples - first);
    if (features == 1 && stride == 1)
      rows = std::copy_n(tile, count, rows);
    else
      for (Index s = 0; s < count; ++s, rows += stride)
        for (Index i = 0; i < features; ++i) rows[i] = tile[i * width + s];
  }
}
template <class T>
void plane_to_rows(const Plane<const T>& plane, Index samples, Index features, T* rows) {
  plane_to_rows<T>(plane, samples, features, features, rows);
}

}  // namespace ocdl
