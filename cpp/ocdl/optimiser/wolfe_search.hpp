#pragma once

#include "ocdl/optimiser/method.hpp"

namespace ocdl {

/// A step t along a direction d of descent, phi(t) = J(u + t d), that satisfies the strong Wolfe conditions
///     phi(t) <= phi(0) + c1 t phi'(0),   |phi'(t)| <= c2 |phi'(0)|,
/// by bracketing and safeguarded cubic interpolation (Nocedal and Wright 2006, algorithms 3.5 and 3.6).
template <class T>
class WolfeSearch {
 public:
  static constexpr double c1 = 1e-4, c2 = 0.9;

  WolfeSearch(Index size, int max_trials) : max_trials_(max_trials), best_(size), probe_(size) {}

  /// Whether a point with sufficient decrease was found: it is then in best(). Where trials run out, the
  /// second condition may not hold there, but J is lower: within its roundoff a search would go on for ever.
  bool run(TrainingProblem<T>& problem, const Iterate<T>& at, const ControlVector<T>& direction, double slope,
           double first_step) {
    trials_ = 0;
    Point low{0, at.value, slope}, high{};
    bool bracketed = false;
    double step = first_step;
    while (trials_ < max_trials_) {
      const Point here = probe(problem, at, direction, step);
      if (!is_sufficient<T>(here.value, fma(c1 * step, slope, at.value), at.value) ||
          (low.step > 0 && here.value >= low.value)) {
        high = here;
        bracketed = true;
      } else {
        const bool turned = bracketed ? here.slope * (high.step - low.step) >= 0 : here.slope >= 0;
        if (turned) {
          high = low;
          bracketed = true;
        }
        low = here;
        std::swap(best_, probe_);
        if (std::abs(here.slope) <= -c2 * slope) return true;
      }
      const double next = bracketed ? between(low, high) : 3 * step;
      if (next == low.step || next == high.step || !std::isfinite(next)) break;
      step = next;
    }
    return low.step > 0 && low.value < at.value;
  }

  Iterate<T>& best() { return best_; }
  int trials() const { return trials_; }

 private:
  struct Point {
    double step, value, slope;
  };

  int max_trials_, trials_ = 0;
  Iterate<T> best_, probe_;

  Point probe(TrainingProblem<T>& problem, const Iterate<T>& at, const ControlVector<T>& direction,
              double step) {
    ++trials_;
    problem.move(at, direction, step, probe_.controls);
    problem.evaluate(probe_);
    return {step, probe_.value, dot(probe_.gradient.data(), direction.data(), problem.size())};
  }

  /// The minimum of the cubic through both points, kept away from the ends; the middle where there is none.
  static double between(const Point& low, const Point& high) {
    const double width = high.step - low.step;
    const double secant = 3 * (low.value - high.value) / width + low.slope + high.slope;
    const double root = std::sqrt(fma(secant, secant, -(low.slope * high.slope)));
    const double place = 1 - (high.slope + root - secant) / fma(2.0, root, high.slope - low.slope);
    return fma(width, std::isfinite(place) ? std::clamp(place, 0.1, 0.9) : 0.5, low.step);
  }
};

}  // namespace ocdl
