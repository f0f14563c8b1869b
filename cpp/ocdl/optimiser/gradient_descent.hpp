#pragma once

#include "ocdl/optimiser/method.hpp"

namespace ocdl {

struct GradientDescentOptions {
  static constexpr std::string_view name = "GradientDescent";
  static constexpr bool is_proximal = true;
  double step;

  template <class V>
  void visit(V&& v) {
    v("step", step);
  }
};

/// Algorithm 1: u <- prox(P(u - step g)).
template <class T>
class GradientDescent : public Method<T> {
 public:
  using Options = GradientDescentOptions;

  GradientDescent(const GradientDescentOptions& options, const TrainingProblem<T>& problem)
      : options_(options), next_(problem.size()) {}

  StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) override {
    problem.descend(at, options_.step, next_.controls);
    const Displacement moved = problem.displacement(at, next_.controls);
    if (moved.squared == 0) return {Status::step_tolerance};
    problem.evaluate(next_);
    if (!std::isfinite(next_.value)) return {Status::not_finite, 1, 1 / options_.step};
    std::swap(at, next_);
    return {Status::running, 1, 1 / options_.step};
  }

  bool is_monotone() const override { return false; }

 private:
  GradientDescentOptions options_;
  Iterate<T> next_;
};

}  // namespace ocdl
