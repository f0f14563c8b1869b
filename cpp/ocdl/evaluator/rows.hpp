#pragma once

#include "ocdl/evaluator/batches.hpp"
#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// The samples of one part: in memory, or somewhere else and read a piece at a time.
template <class T>
class Rows {
 public:
  virtual ~Rows() = default;

  virtual Index count() const = 0;
  virtual bool are_weighted() const = 0;
  /// How many a pass reads at once.
  virtual Index at_once() const = 0;
  /// How many of all parts' rows batches are drawn from, see `Batches`.
  virtual Index window() const = 0;

  /// Some rows, one run behind the other; they stay until the next call. Then `next` will be asked for, which
  /// can be read ahead. Throws Interrupted when the stop source, unless null, stops it.
  virtual Data<T> read(const Runs& runs, const Runs& next, StopSource* stop_source) = 0;
};

/// All of them, at any time: asked for in one run.
template <class T>
class RowsInMemory : public Rows<T> {
 public:
  RowsInMemory(const Data<T>& data, Index features, Index outputs)
      : data_(data), features_(features), outputs_(outputs) {}

  Index count() const override { return data_.samples; }
  bool are_weighted() const override { return data_.weights; }
  Index at_once() const override { return data_.samples; }
  Index window() const override { return std::numeric_limits<Index>::max(); }

  Data<T> read(const Runs& runs, const Runs&, StopSource*) override {
    const auto from = [&](const auto* numbers, Index width) {
      return numbers ? numbers + runs[0].begin * width : nullptr;
    };
    const Targets<T> targets{from(data_.targets.labels, 1), from(data_.targets.numbers, outputs_)};
    return {from(data_.X, features_), targets, from(data_.weights, 1), runs[0].size()};
  }

 private:
  Data<T> data_;
  Index features_, outputs_;
};

}  // namespace ocdl
