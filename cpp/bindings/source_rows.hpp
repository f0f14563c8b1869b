#pragma once

#include <utility>

#include "bindings/targets.hpp"
#include "ocdl/evaluator/rows.hpp"

namespace ocdl {

/// Rows that Python reads. Where they are not there after a moment, `read` returns None, so that a signal or
/// a request to stop is handled soon.
template <class T>
class SourceRows : public Rows<T> {
 public:
  SourceRows(const Network& net, const Loss& loss, pybind11::function read, Index count, bool weighted,
             Index at_once, Index window, bool with_targets, const ObservationGrid& grid)
      : net_(net),
        loss_(loss),
        read_(std::move(read)),
        count_(count),
        at_once_(at_once),
        window_(window),
        weighted_(weighted),
        with_targets_(with_targets),
        grid_(grid) {}

  Index count() const override { return count_; }
  bool are_weighted() const override { return weighted_; }
  ObservationGrid grid() const override { return grid_; }
  Index at_once() const override { return at_once_; }
  Index window() const override { return window_; }

  Data<T> read(const RowRanges& ranges, const RowRanges& next, StopSource* stop_source) override {
    if (ranges == held_) return data_;
    for (held_.clear(); !try_to_read(ranges, next);)
      if (stop_source) {
        stop_source->progress(a_moment);
        stop_source->throw_if_stopped();
      }
    return data_;
  }

 private:
  static constexpr double a_moment = 2e7;  ///< nanoseconds: long enough for the stop source to poll

  Network net_;
  Loss loss_;
  pybind11::function read_;
  Index count_, at_once_, window_;
  bool weighted_, with_targets_;
  ObservationGrid grid_;
  RowRanges held_;
  Data<T> data_{};
  pybind11::object kept_;

  bool try_to_read(const RowRanges& ranges, const RowRanges& next) {
    namespace py = pybind11;
    const py::gil_scoped_acquire hold;
    kept_ = py::none();
    const py::object result = read_(bound(ranges), bound(next));
    if (result.is_none()) return false;
    const auto [X, y, weights] = result.cast<std::tuple<Given<T>, py::object, OptionalGiven<T>>>();
    Index samples = 0;
    for (const Range& range : ranges) samples += range.size();
    data_ = {{view(X, samples * net_.row_size(), "X"), net_.row_size()},
             grid_           ? view_observations<T>(y, samples).value()
             : with_targets_ ? view_targets<T>(loss_, net_.outputs, y, samples)
                             : Targets<T>{},
             view(weights, samples, "sample_weight"),
             samples};
    kept_ = result;
    held_ = ranges;
    return true;
  }

  static pybind11::tuple bound(const RowRanges& ranges) {
    pybind11::tuple pairs(ranges.size());
    for (std::size_t n = 0; n < ranges.size(); ++n)
      pairs[n] = pybind11::make_tuple(ranges[n].begin, ranges[n].end);
    return pairs;
  }
};

}  // namespace ocdl
