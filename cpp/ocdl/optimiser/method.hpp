#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "ocdl/optimiser/problem.hpp"

namespace ocdl {

/// Why a training ended, or that it has not.
enum class Status { running, gradient, step_tolerance, line_search_failed, not_finite, loss_tolerance };

inline constexpr std::array<std::string_view, 6> status_names = {
    "running", "gradient", "step_tolerance", "line_search_failed", "not_finite", "loss_tolerance"};

/// What a method did in one iteration. `lipschitz` is the inverse of the step where a method has one, else
/// NaN.
struct StepReport {
  Status status = Status::running;
  int trials = 0;
  double lipschitz = std::numeric_limits<double>::quiet_NaN();
};

/// Stores or restores the state that a method keeps between iterations, entry by entry, each with its name.
template <class T>
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void number(std::string_view name, double& value) = 0;
  virtual void count(std::string_view name, std::int64_t& value) = 0;
  /// Rows of so many numbers each, `stride` numbers apart.
  virtual void rows(std::string_view name, T* first, Index count, Index length, Index stride) = 0;
  void vector(std::string_view name, ControlVector<T>& values) {
    const auto length = static_cast<Index>(values.size());
    rows(name, values.data(), 1, length, length);
  }
};

/// A minimisation method. Its constructor allocates all of its memory.
template <class T>
class Method {
 public:
  virtual ~Method() = default;

  /// The first evaluation, at the controls of `at`.
  virtual void start(TrainingProblem<T>& problem, Iterate<T>& at) { problem.evaluate(at); }
  /// One iteration: moves `at`, or reports why it cannot. Where an evaluation is Interrupted, `at` and the
  /// method are as they were before.
  virtual StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) = 0;
  /// Whether `at` holds J of all samples.
  virtual bool sees_all_samples() const { return true; }
  /// Whether an iteration never raises J.
  virtual bool is_monotone() const { return true; }
  virtual void visit(StateVisitor<T>&) {}
  /// Computes what depends on the state, after it has been restored.
  virtual void restored() {}
};

/// Whether `value` may replace `before` because it stays below `bound`, up to the roundoff of J, and does not
/// exceed `before`. Never for NaN.
template <class T>
bool is_sufficient(double value, double bound, double before) {
  const double roundoff = 10 * static_cast<double>(std::numeric_limits<T>::epsilon());
  return value <= fma(roundoff, std::abs(before), bound) && value <= before;
}

}  // namespace ocdl
