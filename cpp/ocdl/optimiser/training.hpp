#pragma once

#include <chrono>

#include "ocdl/optimiser/methods.hpp"

namespace ocdl {

/// What is noted of an iterate.
struct TrainingRecord {
  double loss, gradient_norm, lipschitz, trials, seconds;
};

/// A training in progress: runs for a while, can be looked at, and goes on. It allocates nothing after its
/// first iteration.
template <class T>
class Training {
 public:
  Training(const Network& net, const T* controls, const Data<T>& data, const Objective& objective,
           const MethodOptions& method, std::vector<Range> frozen, bool steps_on_simplex, double tolerance)
      : net_(net),
        problem_(net_, data, objective, std::move(frozen), steps_on_simplex),
        at_(net.control_size()),
        method_(make_method<T>(method, problem_)),
        tolerance_(tolerance) {
    std::copy_n(controls, net.control_size(), at_.controls.begin());
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// The first evaluation. A training whose state is restored has it already.
  void start(Watch& watch) {
    problem_.workspace().watch = &watch;
    method_->start(problem_, at_);
    first_value_ = at_.value;
    note(problem_.evaluations());
  }

  /// Iterates until `most` records are written, `seconds` have passed, or there is a reason to end: then
  /// status() is no longer `running`. Interrupted stops in the middle of an iteration, which then has not
  /// happened.
  void run(Index most, double seconds, TrainingRecord* records, Watch& watch) {
    problem_.workspace().watch = &watch;
    const auto started = Clock::now();
    const double seconds_before = seconds_;
    while (most-- > 0 && (status_ = reason_to_end()) == Status::running) {
      const std::int64_t evaluations_before = problem_.evaluations();
      last_ = method_->step(problem_, at_);
      status_ = last_.status;
      if (status_ != Status::running) return;
      note(problem_.evaluations() - evaluations_before);
      ++iterations_;
      const double elapsed = std::chrono::duration<double>(Clock::now() - started).count();
      seconds_ = seconds_before + elapsed;
      *records++ = record();
      if (elapsed >= seconds) return;
    }
  }

  Status status() const { return status_; }
  const Iterate<T>& iterate() const { return at_; }
  std::int64_t iterations() const { return iterations_; }
  std::int64_t evaluations() const { return evaluations_; }
  TrainingRecord record() const {
    return {at_.value, gradient_norm_, last_.lipschitz, static_cast<double>(last_.trials), seconds_};
  }

  /// Everything that the next iteration depends on.
  void visit(StateVisitor<T>& visitor) {
    visitor.vector("controls", at_.controls);
    visitor.vector("gradient", at_.gradient);
    visitor.number("value", at_.value);
    visitor.number("first_value", first_value_);
    visitor.number("gradient_norm", gradient_norm_);
    visitor.number("seconds", seconds_);
    visitor.count("iterations", iterations_);
    visitor.count("evaluations", evaluations_);
    method_->visit(visitor);
  }

 private:
  using Clock = std::chrono::steady_clock;

  Network net_;
  TrainingProblem<T> problem_;
  Iterate<T> at_;
  std::unique_ptr<Method<T>> method_;
  double tolerance_, first_value_ = 0, gradient_norm_ = 0, seconds_ = 0;
  std::int64_t iterations_ = 0, evaluations_ = 0;
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
    if (at_.value <= std::numeric_limits<double>::epsilon() * first_value_) return Status::loss;
    return Status::running;
  }
};

}  // namespace ocdl
