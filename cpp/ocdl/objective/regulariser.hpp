#pragma once

#include <variant>

#include "ocdl/objective/penalties/even_steps.hpp"
#include "ocdl/objective/penalties/group_l1.hpp"
#include "ocdl/objective/penalties/l1.hpp"
#include "ocdl/objective/penalties/tikhonov.hpp"
#include "ocdl/objective/penalties/time_smoothness.hpp"

namespace ocdl {

/// All penalties: a row each. A penalty is a record, one file in `penalties/`: its name, whether it is
/// `nonsmooth` where a control is 0, its weight, the parts of the controls that it acts on, and
/// `add(net, controls, gradient)`, which returns its value and adds its gradient unless that is null.
using Penalty = std::variant<Tikhonov,        //
                             L1,              //
                             GroupL1,         //
                             TimeSmoothness,  //
                             EvenSteps>;

/// f(penalty) for every penalty, with weight 0.
template <class F, std::size_t... Row>
void for_each_penalty(const F& f, std::index_sequence<Row...>) {
  (f(std::variant_alternative_t<Row, Penalty>{}), ...);
}
template <class F>
void for_each_penalty(const F& f) {
  for_each_penalty(f, std::make_index_sequence<std::variant_size_v<Penalty>>());
}

/// R(u), a sum of penalties.
struct Regulariser {
  std::vector<Penalty> penalties;

  bool none() const { return penalties.empty(); }

  /// The penalties that have a gradient everywhere.
  Regulariser smooth_part() const {
    Regulariser result = *this;
    std::erase_if(result.penalties, [](const Penalty& penalty) {
      return std::visit([](const auto& record) { return record.nonsmooth; }, penalty);
    });
    return result;
  }

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
