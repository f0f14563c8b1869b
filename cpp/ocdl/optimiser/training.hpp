#pragma once

#include <chrono>

#include "ocdl/optimiser/methods.hpp"

namespace ocdl {

/// The row of an iterate in the history of a training.
struct TrainingRecord {
  double loss, gradient_norm, lipschitz, trials, seconds;
};

/// A training in progress, which can be paused, read and continued. It allocates nothing after its first
/// iteration.
template <class T>
class Training {
 public:
  static constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

  /// Minimises F + `penalty`, with F from the evaluator. It ends when the norm of the gradient, or with
  /// constraints and a penalty of the proximal residual, is at most `tolerance`, or a method that never
  /// raises J lowers it by at most the fraction `min_decrease`. `seconds`: the time that other methods took
  /// before.
  Training(Evaluator<T>& evaluator, const T* controls, const MethodOptions& method, Constraints constraints,
           double tolerance, double min_decrease = 0, double seconds = 0, NonsmoothPenalty penalty = {})
      : problem_(evaluator, std::move(constraints), std::move(penalty)),
        at_(evaluator.size()),
        method_(make_method<T>(method, problem_)),
        tolerance_(tolerance),
        min_decrease_(min_decrease),
        seconds_(seconds) {
    std::copy_n(controls, evaluator.size(), at_.controls.begin());
    problem_.project_matrices(at_.controls.data());
    at_.value = not_known;
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// The first evaluation. A training whose state is restored has it already.
  void start(StopSource& stop_source) {
    problem_.evaluator().set_stop_source(&stop_source);
    method_->start(problem_, at_);
    note(problem_.evaluations());
  }

  /// Iterates until `max_records` are written, `seconds` have passed, or there is a reason to end: then
  /// status() is no longer `running`. Interrupted stops in the middle of an iteration, which then has not
  /// happened.
  void run(Index max_records, double seconds, TrainingRecord* records, StopSource& stop_source) {
    problem_.evaluator().set_stop_source(&stop_source);
    const auto started = Clock::now();
    const double seconds_before = seconds_;
    while ((status_ = reason_to_end()) == Status::running && max_records-- > 0) {
      const std::int64_t evaluations_before = problem_.evaluations();
      const double value_before = at_.value;
      last_ = method_->step(problem_, at_);
      const std::int64_t evaluations_made = problem_.evaluations() - evaluations_before;
      status_ = last_.status;
      if (status_ != Status::running) {
        rejected_evaluations_ = evaluations_made;
        return;
      }
      note(evaluations_made);
      decrease_ = (value_before - at_.value) / std::max(std::abs(value_before), std::abs(at_.value));
      ++iterations_;
      const double elapsed = std::chrono::duration<double>(Clock::now() - started).count();
      seconds_ = seconds_before + elapsed;
      *records++ = record();
      if (elapsed >= seconds) return;
    }
  }

  Status status() const { return status_; }
  const Iterate<T>& iterate() const { return at_; }
  /// Where a step has failed because J is not finite at its last trial: that trial; else null.
  const Iterate<T>* nonfinite_trial() const {
    return status_ == Status::running ? nullptr : problem_.nonfinite_trial();
  }
  std::int64_t iterations() const { return iterations_; }
  std::int64_t evaluations() const { return evaluations_ + rejected_evaluations_; }
  TrainingRecord record() const {
    return {at_.value, gradient_norm_, last_.lipschitz, static_cast<double>(last_.trials), seconds_};
  }

  /// Everything that the next iteration depends on.
  void visit(StateVisitor<T>& visitor) {
    visitor.vector("controls", at_.controls);
    visitor.vector("gradient", at_.gradient);
    visitor.number("value", at_.value);
    if (problem_.is_penalised()) {
      visitor.number("smooth_value", at_.smooth_value);
      visitor.number("penalty", at_.penalty);
    }
    visitor.number("gradient_norm", gradient_norm_);
    visitor.number("decrease", decrease_);
    visitor.number("seconds", seconds_);
    visitor.count("iterations", iterations_);
    visitor.count("evaluations", evaluations_);
    method_->visit(visitor);
  }
  void restored() {
    if (!problem_.is_penalised()) at_.smooth_value = at_.value;
    method_->restored();
  }

 private:
  using Clock = std::chrono::steady_clock;

  TrainingProblem<T> problem_;
  Iterate<T> at_;
  std::unique_ptr<Method<T>> method_;
  double tolerance_, min_decrease_, seconds_, gradient_norm_ = not_known;
  double decrease_ = std::numeric_limits<double>::infinity();  ///< of J in the last iteration, relative
  std::int64_t iterations_ = 0, evaluations_ = 0;
  /// Evaluations of a step that was not made; a resumed training makes them again.
  std::int64_t rejected_evaluations_ = 0;
  Status status_ = Status::running;
  StepReport last_;

  void note(std::int64_t evaluations) {
    evaluations_ += evaluations;
    gradient_norm_ = problem_.stationarity(at_);
  }

  Status reason_to_end() const {
    if (!std::isfinite(at_.value) || !std::isfinite(gradient_norm_)) return Status::not_finite;
    if (!method_->sees_all_samples()) return Status::running;
    if (gradient_norm_ <= tolerance_) return Status::gradient;
    if (min_decrease_ > 0 && method_->is_monotone() && decrease_ <= min_decrease_)
      return Status::loss_tolerance;
    return Status::running;
  }
};

}  // namespace ocdl
