#pragma once

#include "ocdl/sweep/cost.hpp"

/// Costs whose cotangents are known beforehand: what a vector-Jacobian product of the flow is made of. Their
/// value is 0.
namespace ocdl {

/// Cotangents of the outputs, rows of (samples, outputs).
template <class T>
class GivenCotangents : public Cost<T> {
 public:
  explicit GivenCotangents(const T* rows) : rows_(rows) {}

  CostNeeds needs() const override { return {.outputs = OutputUse::write_cotangents}; }

  void evaluate(const CostBlock<T>& at) const override {
    if (!at.output_cotangents) return;
    const Plane<T> plane = at.output_cotangents.slice(at.thread);
    const Range rows = at.rows();
    rows_to_plane<T>(rows_ + rows.begin * plane.rows(), rows.size(), plane.rows(), plane);
    if (const Index in_last = rows.size() % tile_width<T>)
      plane.tile(plane.tiles() - 1).rightCols(tile_width<T> - in_last).setZero();
  }

 private:
  const T* rows_;
};

/// Cotangents of the states, rows of (samples, dim) for the last one or of (N+1, samples, dim) for all.
template <class T>
class StateCotangents : public Cost<T> {
 public:
  StateCotangents(const T* rows, bool every_layer, Index samples)
      : rows_(rows), every_layer_(every_layer), samples_(samples) {}

  CostNeeds needs() const override { return {.adds_state_cotangents = true}; }

  void add_state_cotangent(const CostBlock<T>& at, Index j, const Plane<T>& p) const override {
    if (!every_layer_ && j < at.net.layers) return;
    const Range rows = at.rows();
    const Index dim = at.net.dim;
    const T* row = rows_ + ((every_layer_ ? j * samples_ : 0) + rows.begin) * dim;
    for (Index s = 0; s < rows.size(); ++s, row += dim)
      p.tile(s / tile_width<T>).col(s % tile_width<T>).head(dim) +=
          Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(row, dim);
  }

 private:
  const T* rows_;
  bool every_layer_;
  Index samples_;
};

}  // namespace ocdl
