#pragma once

#include "ocdl/optimiser/method.hpp"

namespace ocdl {

struct BacktrackingOptions {
  static constexpr std::string_view name = "Backtracking";
  static constexpr bool is_proximal = true;
  double L0, rho_up, rho_down;
  int max_trials;

  template <class V>
  void visit(V&& v) {
    v("L0", L0);
    v("rho_up", rho_up);
    v("rho_down", rho_down);
    v("max_trials", max_trials);
  }
};

/// Algorithm 2: u~ = prox(P(u - g/L)), with the smallest L of the sequence L, rho_up L, rho_up^2 L, ... for
/// which
///     F(u~) <= F(u) + <g, u~-u> + L/2 |u~-u|^2;
/// the next iteration starts with rho_down L.
template <class T>
class Backtracking : public Method<T> {
 public:
  using Options = BacktrackingOptions;

  Backtracking(const BacktrackingOptions& options, const TrainingProblem<T>& problem)
      : options_(options), lipschitz_(within_range(options.L0)), next_(problem.size()) {}

  StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) override {
    double L = lipschitz_;
    for (int trial = 1; trial <= options_.max_trials; ++trial) {
      problem.descend(at, 1 / L, next_.controls);
      const Displacement moved = problem.displacement(at, next_.controls);
      if (moved.squared == 0) return {Status::step_tolerance, trial, L};
      problem.evaluate(next_);
      const double bound = fma(L / 2, moved.squared, at.smooth_value + moved.slope) + next_.penalty;
      if (is_sufficient<T>(next_.value, bound, at.value)) {
        std::swap(at, next_);
        lipschitz_ = within_range(options_.rho_down * L);
        return {Status::running, trial, L};
      }
      if (L == largest) return {Status::line_search_failed, trial, L};
      L = within_range(options_.rho_up * L);
    }
    return {Status::line_search_failed, options_.max_trials, L};
  }

  void visit(StateVisitor<T>& visitor) override { visitor.number("lipschitz", lipschitz_); }

 private:
  BacktrackingOptions options_;
  double lipschitz_;
  Iterate<T> next_;

  /// Beyond this range a step is roundoff, or overflows whatever is learned.
  static constexpr double smallest = 1e-15, largest = 1e15;
  static double within_range(double L) { return std::clamp(L, smallest, largest); }
};

}  // namespace ocdl
