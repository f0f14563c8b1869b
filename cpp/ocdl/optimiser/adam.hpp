#pragma once

#include "ocdl/optimiser/method.hpp"

namespace ocdl {

struct AdamOptions {
  static constexpr std::string_view name = "Adam";
  static constexpr bool is_proximal = false;  ///< takes the subgradient
  double lr, beta1, beta2, epsilon;
  Index batch_size;    ///< 0: all samples
  std::uint64_t seed;  ///< of the batches: the training's, no setting

  template <class V>
  void visit(V&& v) {
    v("lr", lr);
    v("beta1", beta1);
    v("beta2", beta2);
    v("epsilon", epsilon);
    v("batch_size", batch_size);
    v("seed", seed);
  }
};

/// Adam (Kingma and Ba 2015) on all samples or on one batch after the other:
///     m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2,
///     u <- P(u - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)).
template <class T>
class Adam : public Method<T> {
 public:
  using Options = AdamOptions;

  Adam(const AdamOptions& options, const TrainingProblem<T>& problem)
      : options_(options), next_(problem.size()) {
    for (auto* vector :
         {&direction_, &first_moment_, &second_moment_, &next_first_moment_, &next_second_moment_})
      vector->resize(static_cast<std::size_t>(problem.size()));
    has_batches_ =
        options.batch_size > 0 && problem.evaluator().cut_into_batches(options.batch_size, options.seed);
  }

  void start(TrainingProblem<T>& problem, Iterate<T>& at) override { evaluate(problem, at, 0); }

  StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) override {
    for (Index first = 0; first < problem.size(); first += longest_pass) {
      const Index size = std::min(longest_pass, problem.size() - first);
      for_chunks(size,
                 [&](Index begin, Index end) { average(at.gradient.data(), first + begin, first + end); });
      problem.check_stop();
    }
    problem.move(at, direction_, -options_.lr, next_.controls);
    evaluate(problem, next_, steps_ + 1);
    if (!std::isfinite(next_.value)) return {Status::not_finite, 1};
    std::swap(at, next_);
    first_moment_.swap(next_first_moment_);
    second_moment_.swap(next_second_moment_);
    ++steps_;
    return {Status::running, 1};
  }

  bool sees_all_samples() const override { return !has_batches_; }

  void visit(StateVisitor<T>& visitor) override {
    visitor.count("steps", steps_);
    visitor.vector("first_moment", first_moment_);
    visitor.vector("second_moment", second_moment_);
  }

  bool is_monotone() const override { return false; }

 private:
  static constexpr Index longest_pass = Index(1) << 20;  ///< numbers of seven vectors: some milliseconds

  AdamOptions options_;
  Iterate<T> next_;
  ControlVector<T> direction_, first_moment_, second_moment_, next_first_moment_, next_second_moment_;
  std::int64_t steps_ = 0;
  bool has_batches_;

  /// The next moments, and the direction that follows from them. Three loops, each with few enough vectors
  /// for the compiler to see that none overlaps another.
  void average(const T* g, Index begin, Index end) {
    const auto t = static_cast<double>(steps_ + 1);
    const T beta1 = T(options_.beta1), beta2 = T(options_.beta2), epsilon = T(options_.epsilon);
    const T correct1 = T(1 / (1 - std::pow(options_.beta1, t))),
            correct2 = T(1 / (1 - std::pow(options_.beta2, t)));
    const T *m_before = first_moment_.data(), *v_before = second_moment_.data();
    T *m = next_first_moment_.data(), *v = next_second_moment_.data(), *d = direction_.data();
    for (Index n = begin; n < end; ++n) m[n] = fma(beta1, m_before[n], (1 - beta1) * g[n]);
    for (Index n = begin; n < end; ++n) v[n] = fma(beta2, v_before[n], (1 - beta2) * g[n] * g[n]);
    for (Index n = begin; n < end; ++n) d[n] = correct1 * m[n] / (std::sqrt(correct2 * v[n]) + epsilon);
  }

  void evaluate(TrainingProblem<T>& problem, Iterate<T>& at, std::int64_t batch) {
    problem.evaluate(at, has_batches_ ? batch : Evaluator<T>::all_samples);
  }
};

}  // namespace ocdl
