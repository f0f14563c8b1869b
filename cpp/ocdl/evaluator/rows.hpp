#pragma once

#include "ocdl/evaluator/batches.hpp"
#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// The samples of one rank: in memory, or somewhere else and read in chunks.
template <class T>
class Rows {
 public:
  virtual ~Rows() = default;

  virtual Index count() const = 0;
  virtual bool are_weighted() const = 0;
  /// How their targets hold observations.
  virtual ObservationGrid grid() const = 0;
  /// How many a pass reads at once.
  virtual Index at_once() const = 0;
  /// How many of all ranks' rows batches are drawn from, see `Batches`.
  virtual Index window() const = 0;

  /// Some rows, one range behind the other; they stay until the next call, which will be for `next`: these
  /// can be prefetched. Throws Interrupted when the stop source, unless null, stops it.
  virtual Data<T> read(const RowRanges& ranges, const RowRanges& next, StopSource* stop_source) = 0;
};

/// All of them, read in one range.
template <class T>
class RowsInMemory : public Rows<T> {
 public:
  explicit RowsInMemory(const Data<T>& data) : data_(data) {}

  Index count() const override { return data_.samples; }
  bool are_weighted() const override { return data_.weights; }
  ObservationGrid grid() const override { return data_.targets.grid; }
  Index at_once() const override { return data_.samples; }
  Index window() const override { return std::numeric_limits<Index>::max(); }

  Data<T> read(const RowRanges& ranges, const RowRanges&, StopSource*) override {
    return data_.slice(ranges[0]);
  }

 private:
  Data<T> data_;
};

}  // namespace ocdl
