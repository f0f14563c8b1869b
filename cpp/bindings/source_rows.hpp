#pragma once

#include <utility>

#include "bindings/targets.hpp"
#include "ocdl/evaluator/rows.hpp"

namespace ocdl {

/// Rows that Python reads. Where they are not there after a moment, `read` returns None, so that a signal or
/// a request to stop is not kept waiting.
template <class T>
class SourceRows : public Rows<T> {
 public:
  SourceRows(const Network& net, const Loss& loss, pybind11::function read, Index count, bool weighted,
             Index at_once, Index window, bool with_targets)
      : net_(net),
        loss_(loss),
        read_(std::move(read)),
        count_(count),
        at_once_(at_once),
        window_(window),
        weighted_(weighted),
        with_targets_(with_targets) {}

  Index count() const override { return count_; }
  bool are_weighted() const override { return weighted_; }
  Index at_once() const override { return at_once_; }
  Index window() const override { return window_; }

  Data<T> read(const Runs& runs, const Runs& next, StopSource* stop_source) override {
    if (runs == held_) return data_;
    for (held_.clear(); !try_to_read(runs, next);)
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
  Runs held_;
  Data<T> data_{};
  pybind11::object kept_;

  bool try_to_read(const Runs& runs, const Runs& next) {
    namespace py = pybind11;
    const py::gil_scoped_acquire hold;
    kept_ = py::none();
    const py::object found = read_(bound(runs), bound(next));
    if (found.is_none()) return false;
    const auto [X, y, weights] = found.cast<std::tuple<Given<T>, py::object, OptionalGiven<T>>>();
    Index samples = 0;
    for (const Range& run : runs) samples += run.size();
    data_ = {view(X, samples * net_.features, "X"),
             with_targets_ ? view_targets<T>(loss_, net_.outputs, y, samples) : Targets<T>{},
             view(weights, samples, "sample_weight"), samples};
    kept_ = found;
    held_ = runs;
    return true;
  }

  static pybind11::tuple bound(const Runs& runs) {
    pybind11::tuple pairs(runs.size());
    for (std::size_t n = 0; n < runs.size(); ++n) pairs[n] = pybind11::make_tuple(runs[n].begin, runs[n].end);
    return pairs;
  }
};

}  // namespace ocdl
