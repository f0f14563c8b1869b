#pragma once

#include "ocdl/optimiser/problem.hpp"

namespace ocdl {

/// On the simplex: the part of v in which the steps can move. A step that is 0 and that the gradient holds
/// there stays; the others keep their sum. Without a constraint v stays as it is.
template <class T, class V>
void reduce_to_face(const TrainingProblem<T>& problem, const Iterate<T>& at, V* v) {
  const auto [begin, end] = problem.constrained();
  double gradient_sum = 0;
  Index positive = 0;
  for (Index n = begin; n < end; ++n)
    if (at.controls[static_cast<std::size_t>(n)] > 0) {
      gradient_sum += static_cast<double>(at.gradient[static_cast<std::size_t>(n)]);
      ++positive;
    }
  const double multiplier = gradient_sum / static_cast<double>(positive);
  const auto can_move = [&](Index n) {
    const auto at_n = static_cast<std::size_t>(n);
    return at.controls[at_n] > 0 || static_cast<double>(at.gradient[at_n]) < multiplier;
  };
  double sum = 0;
  Index movable = 0;
  for (Index n = begin; n < end; ++n)
    if (can_move(n)) {
      sum += static_cast<double>(v[n]);
      ++movable;
    }
  for (Index n = begin; n < end; ++n)
    v[n] = can_move(n) ? v[n] - V(sum / static_cast<double>(movable)) : V(0);
}

}  // namespace ocdl
