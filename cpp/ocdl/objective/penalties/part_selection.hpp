#pragma once

#include <algorithm>
#include <optional>

#include "ocdl/sweep/network.hpp"

namespace ocdl {

/// Parts of the controls by their names; none given: all but the time steps, which carry the horizon.
struct PartSelection {
  std::optional<std::vector<std::string>> names;

  bool has(const Part& part) const {
    if (!names) return part.role != Role::steps;
    return std::find(names->begin(), names->end(), part.name) != names->end();
  }

  /// f(place, is_variable) for every run of chosen parts that follow each other. Steps are a run by
  /// themselves: they are no variables unless they are learned.
  template <class F>
  void for_each_run(const Network& net, const F& f) const {
    Range run{0, 0};
    const auto end_run = [&](bool is_variable) {
      if (run.begin < run.end) f(run, is_variable);
    };
    for (const Part& part : net.parts) {
      if (part.role == Role::steps || !has(part)) {
        end_run(true);
        run = part.place;
        if (has(part)) end_run(net.learns_steps);
        run.begin = run.end;
      } else {
        run.end = part.place.end;
      }
    }
    end_run(true);
  }
};

}  // namespace ocdl
