#pragma once

#include <variant>

#include "ocdl/objective/penalties/even_steps.hpp"
#include "ocdl/objective/penalties/l1.hpp"
#include "ocdl/objective/penalties/tikhonov.hpp"
#include "ocdl/objective/penalties/time_smoothness.hpp"

namespace ocdl {

/// All penalties: a row each. A penalty is a record, one file in `penalties/`: its name, its weight, the
/// parts of the controls that it acts on, and `add(net, controls, gradient)`, which returns its value and
/// adds its gradient unless that is null.
using Penalty = std::variant<Tikhonov,        //
                             L1,              //
                             TimeSmoothness,  //
                             EvenSteps>;

/// R(u), a sum of penalties.
struct Regulariser {
  std::vector<Penalty> penalties;

  bool none() const { return penalties.empty(); }

  /// R(u), adding its gradient unless that is null.
  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    Wide<T> sum{};
    for (const Penalty& penalty : penalties)
      sum += std::visit([&](const auto& record) { return record.add(net, controls, gradient); }, penalty);
    return sum;
  }
};

}  // namespace ocdl
