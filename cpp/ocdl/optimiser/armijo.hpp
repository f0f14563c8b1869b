#pragma once

#include "ocdl/optimiser/method.hpp"

namespace ocdl {

struct ArmijoOptions {
  static constexpr std::string_view name = "Armijo";
  static constexpr bool is_proximal = true;
  double c, shrink, grow, first_step, max_step;
  int max_trials;

  template <class V>
  void visit(V&& v) {
    v("c", c);
    v("shrink", shrink);
    v("grow", grow);
    v("first_step", first_step);
    v("max_step", max_step);
    v("max_trials", max_trials);
  }
};

/// u~ = prox(P(u - t g)), with the largest t of the sequence t, shrink t, shrink^2 t, ... for which
///     J(u~) <= J(u) + c (<g, u~-u> + R(u~) - R(u));
/// the next iteration starts with min(max_step, grow t).
template <class T>
class Armijo : public Method<T> {
 public:
  using Options = ArmijoOptions;

  Armijo(const ArmijoOptions& options, const TrainingProblem<T>& problem)
      : options_(options),
        first_trial_(std::min(options.first_step, options.max_step)),
        next_(problem.size()) {}

  StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) override {
    double t = first_trial_;
    for (int trial = 1; trial <= options_.max_trials; ++trial, t *= options_.shrink) {
      problem.descend(at, t, next_.controls);
      const Displacement moved = problem.displacement(at, next_.controls);
      if (moved.squared == 0) return {Status::step_tolerance, trial, 1 / t};
      problem.evaluate(next_);
      const double predicted = moved.slope + (next_.penalty - at.penalty);
      if (is_sufficient<T>(next_.value, fma(options_.c, predicted, at.value), at.value)) {
        std::swap(at, next_);
        first_trial_ = std::min(options_.max_step, options_.grow * t);
        return {Status::running, trial, 1 / t};
      }
    }
    return {Status::line_search_failed, options_.max_trials, 1 / t};
  }

  void visit(StateVisitor<T>& visitor) override { visitor.number("first_trial", first_trial_); }

 private:
  ArmijoOptions options_;
  double first_trial_;
  Iterate<T> next_;
};

}  // namespace ocdl
