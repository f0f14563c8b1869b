#pragma once

#include <algorithm>
#include <optional>

#include "ocdl/kernel/vector_arithmetic.hpp"
#include "ocdl/sweep/network.hpp"

namespace ocdl {

/// Parts of the controls by their names; no names: all but the time steps, which sum to the horizon.
struct PartSelection {
  std::optional<std::vector<std::string>> names;

  bool has(const Part& part) const {
    if (!names) return part.role != Role::steps;
    return std::find(names->begin(), names->end(), part.name) != names->end();
  }

  /// The sum of of_run(values, size, gradient) over the runs of selected parts that follow each other; the
  /// gradient is null where the caller wants none or the run is not variable.
  template <class T, class OfRun>
  Wide<T> sum_of_runs(const Network& net, const T* controls, T* gradient, const OfRun& of_run) const {
    Wide<T> sum{};
    for_each_run(net, [&](Range run, bool is_variable) {
      sum += of_run(controls + run.begin, run.end - run.begin,
                    gradient && is_variable ? gradient + run.begin : nullptr);
    });
    return sum;
  }

 private:
  /// f(place, is_variable) for every run. Steps are a run by themselves: they are no variables unless they
  /// are learned.
  template <class F>
  void for_each_run(const Network& net, const F& f) const {
    Range run{0, 0};
    const auto end_run = [&](bool is_variable) {
      if (run.begin < run.end) f(run, is_variable);
    };
    for (const Part& part : net.parts) {
      if (part.role == Role::steps || !has(part)) {
        end_run(true);
        run = part.range;
        if (has(part)) end_run(net.learns_steps);
        run.begin = run.end;
      } else {
        run.end = part.range.end;
      }
    }
    end_run(true);
  }
};

}  // namespace ocdl
