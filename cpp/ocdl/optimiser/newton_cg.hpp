#pragma once

#include "ocdl/optimiser/curvature_model.hpp"
#include "ocdl/optimiser/method.hpp"

namespace ocdl {

struct NewtonCGOptions {
  static constexpr std::string_view name = "NewtonCG";
  static constexpr bool is_proximal = false;
  Curvature curvature;
  double radius, forcing;
  int max_products, max_trials;

  template <class V>
  void visit(V&& v) {
    v("curvature", curvature);
    v("radius", radius);
    v("forcing", forcing);
    v("max_products", max_products);
    v("max_trials", max_trials);
  }
};

/// Newton's method within a trust region (Steihaug 1983). With B the Hessian or its Gauss-Newton
/// approximation, conjugate gradients minimise the model
///     m(s) = <g, s> + 1/2 <s, B s>,   |s| <= radius,
/// until the residual |g + B s| falls below min(forcing, sqrt |g|) |g|, the region ends, or a direction of
/// negative curvature shows up, which is followed to the end of the region. Then the search goes along
/// P(u + t s), t = 1 first, until
///     J(u~) <= J(u) + c1 <g, u~-u>,
/// or, within the roundoff of J, until the gradient is smaller; the region shrinks where J and the model
/// disagree and grows where they agree and it was in the way. On the simplex, s is reduced to the face on
/// which the steps can move.
template <class T>
class NewtonCG : public Method<T> {
 public:
  using Options = NewtonCGOptions;

  NewtonCG(const NewtonCGOptions& options, const TrainingProblem<T>& problem)
      : options_(options),
        size_(problem.size()),
        radius_(options.radius),
        model_(options.curvature),
        next_(problem.size()),
        step_(static_cast<std::size_t>(problem.size())),
        gradient_(step_.size()),
        residual_(step_.size()),
        direction_(step_.size()),
        curved_(step_.size()),
        trial_step_(static_cast<std::size_t>(problem.size())) {}

  StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) override {
    const std::int64_t before = problem.evaluations();
    const auto evaluations_made = [&] { return static_cast<int>(problem.evaluations() - before); };
    const bool at_boundary = minimise_model(problem, at);
    const double length = norm(step_.data(), size_), t = search(problem, at);
    if (t > 0) {
      const double radius = t < 1 ? t * length : adapted_radius(problem, at, length, at_boundary);
      radius_ = std::clamp(radius, smallest_radius, largest_radius);
      std::swap(at, next_);
      return {Status::running, evaluations_made()};
    }
    // Where the projection bends the step away from descent, the gradient alone may still lead on.
    if (!problem.is_constrained()) return {failure_, evaluations_made()};
    const double gradient_norm = norm(gradient_.data(), size_), shortened = std::min(radius_, length) / 4;
    std::transform(gradient_.begin(), gradient_.end(), step_.begin(),
                   [&](double g) { return -g * shortened / gradient_norm; });
    if (const double fraction = search(problem, at); fraction > 0) {
      radius_ = std::max(fraction * shortened, smallest_radius);
      std::swap(at, next_);
      return {Status::running, evaluations_made()};
    }
    return {failure_, evaluations_made()};
  }

  void visit(StateVisitor<T>& visitor) override { visitor.number("radius", radius_); }

 private:
  static constexpr double c1 = 1e-4, smallest_radius = 1e-12, largest_radius = 1e12;

  NewtonCGOptions options_;
  Index size_;
  double radius_;
  CurvatureModel<T> model_;
  Iterate<T> next_;
  ControlVector<double> step_, gradient_, residual_, direction_, curved_;
  ControlVector<T> trial_step_;
  Status failure_ = Status::line_search_failed;

  static double roundoff(double value) {
    return 10 * static_cast<double>(std::numeric_limits<T>::epsilon()) * std::abs(value);
  }

  /// The first t of 1, ... at which P(u + t s) is acceptable: it is then in `next_`. Else 0, and `failure_`
  /// says why.
  double search(TrainingProblem<T>& problem, const Iterate<T>& at) {
    std::copy(step_.begin(), step_.end(), trial_step_.begin());
    double t = 1;
    for (int trial = 1; trial <= options_.max_trials; ++trial) {
      problem.move(at, trial_step_, t, next_.controls);
      const Displacement moved = problem.displacement(at, next_.controls);
      failure_ = moved.squared == 0 ? Status::step_tolerance : Status::line_search_failed;
      if (moved.squared == 0) return 0;
      problem.evaluate(next_);
      if (is_acceptable(problem, at, moved.slope, t)) return t;
      t *= shortening(at.value, next_.value, moved.slope);
    }
    return 0;
  }

  /// Whether J has become lower by enough. Where the decrease that the whole step promises is less than J's
  /// roundoff, the gradient has to become smaller instead: J can no longer tell.
  bool is_acceptable(TrainingProblem<T>& problem, const Iterate<T>& at, double slope, double t) {
    if (!(slope < 0)) return false;
    if (is_sufficient<T>(next_.value, fma(c1, slope, at.value), at.value)) return true;
    const double noise = roundoff(at.value);
    return t == 1 && -slope <= noise && next_.value <= at.value + noise &&
           problem.stationarity(next_) < problem.stationarity(at);
  }

  /// step = s, residual = g + B s; whether s lies on the boundary of the region.
  bool minimise_model(TrainingProblem<T>& problem, const Iterate<T>& at) {
    double *s = step_.data(), *r = residual_.data(), *d = direction_.data(), *Bd = curved_.data();
    std::copy(at.gradient.begin(), at.gradient.end(), gradient_.begin());
    reduce_to_face(problem, at, gradient_.data());
    std::fill(step_.begin(), step_.end(), 0.0);
    residual_ = gradient_;
    std::transform(gradient_.begin(), gradient_.end(), direction_.begin(), std::negate<>());
    double squared = dot(r, r, size_);
    const double gradient_norm = std::sqrt(squared);
    const double tolerance = std::min(options_.forcing, std::sqrt(gradient_norm)) * gradient_norm;
    for (int k = 0; k < options_.max_products; ++k) {
      model_.multiply(problem, at, d, Bd);
      const double curvature = dot(d, Bd, size_), boundary = to_boundary(s, d);
      const double length = squared / curvature;
      const bool inside = curvature > 0 && length < boundary;
      add_scaled(inside ? length : boundary, d, s, size_);
      add_scaled(inside ? length : boundary, Bd, r, size_);
      if (!inside) return true;
      const double next_squared = dot(r, r, size_);
      if (std::sqrt(next_squared) <= tolerance) break;
      const double ratio = next_squared / squared;
      squared = next_squared;
      for_chunks(size_, [&](Index begin, Index end) {
        for (Index n = begin; n < end; ++n) d[n] = fms(ratio, d[n], r[n]);
      });
    }
    return false;
  }

  /// The t > 0 at which |s + t d| reaches the radius.
  double to_boundary(const double* s, const double* d) const {
    const double dd = dot(d, d, size_), sd = dot(s, d, size_), ss = dot(s, s, size_);
    const double room = fms(radius_, radius_, ss);
    return room / (sd + std::sqrt(fma(sd, sd, dd * std::max(room, 0.0))));
  }

  double adapted_radius(TrainingProblem<T>& problem, const Iterate<T>& at, double length, bool at_boundary) {
    const double predicted = predicted_decrease(problem, at),
                 agreement = (at.value - next_.value) / predicted;
    if (predicted >= 0 && predicted <= roundoff(at.value)) return radius_;
    if (!(agreement >= 0.25)) return length / 2;
    return agreement > 0.5 && at_boundary ? 3 * radius_ : radius_;
  }

  /// -m of the displacement that was made. With g + B s at hand, m(s) = 1/2 (<g, s> + <g + B s, s>); where
  /// the projection has bent the step, B is applied once more.
  double predicted_decrease(TrainingProblem<T>& problem, const Iterate<T>& at) {
    const auto [begin, end] = problem.constrained();
    bool bent = false;
    for (Index n = begin; n < end; ++n) {
      const auto i = static_cast<std::size_t>(n);
      bent |= static_cast<double>(at.controls[i]) + step_[i] < 0;
    }
    double* s = step_.data();
    if (!bent) return -0.5 * (dot(gradient_.data(), s, size_) + dot(residual_.data(), s, size_));
    for (std::size_t i = 0; i < step_.size(); ++i)
      step_[i] = static_cast<double>(next_.controls[i]) - static_cast<double>(at.controls[i]);
    std::copy(at.gradient.begin(), at.gradient.end(), gradient_.begin());
    model_.multiply(problem, at, s, curved_.data());
    return fnma(0.5, dot(curved_.data(), s, size_), -dot(gradient_.data(), s, size_));
  }

  /// By how much a refused step is shortened: to the minimum of the parabola through J, its slope and the
  /// value at the trial.
  static double shortening(double before, double value, double slope) {
    const double place = -slope / (2 * (value - before - slope));
    return std::isfinite(place) ? std::clamp(place, 0.1, 0.5) : 0.1;
  }
};

}  // namespace ocdl
