#pragma once

#include <utility>
#include <vector>

#include "ocdl/evaluator/evaluator.hpp"
#include "ocdl/kernel/linear_combination.hpp"
#include "ocdl/optimiser/control_vector.hpp"
#include "ocdl/optimiser/nonsmooth_penalty.hpp"
#include "ocdl/optimiser/projection.hpp"

namespace ocdl {

/// Controls u with J(u) = F(u) + R(u) and the gradient of F. R is what has no gradient everywhere, often 0.
template <class T>
struct Iterate {
  explicit Iterate(Index size)
      : controls(static_cast<std::size_t>(size)), gradient(static_cast<std::size_t>(size)) {}

  ControlVector<T> controls, gradient;
  double smooth_value = 0;  ///< F(u)
  double penalty = 0;       ///< R(u)
  double value = 0;         ///< J(u)
};

/// The change of the controls in a step from u to u~.
struct Displacement {
  double slope;    ///< <g, u~ - u>, with a gradient g
  double squared;  ///< |u~ - u|^2
};

/// A matrix among the controls, in rows, whose singular values stay at most `bound`.
struct BoundedMatrix {
  Index begin, rows, cols;
  double bound;

  Range range() const { return {begin, begin + rows * cols}; }
};

/// Which controls a minimisation may reach.
struct Constraints {
  std::vector<Range> frozen;  ///< parts of the vector of controls that stay as they are
  Range simplex{0, 0};        ///< a part that stays on {x >= 0, sum x = total}; empty: none
  double total = 1;
  std::vector<BoundedMatrix> matrices = {};  ///< in their order
};

/// The minimisation of J = F + R over the controls that the constraints leave, with F from the evaluator.
template <class T>
class TrainingProblem {
 public:
  TrainingProblem(Evaluator<T>& evaluator, Constraints constraints, NonsmoothPenalty penalty = {})
      : evaluator_(evaluator),
        size_(evaluator.size()),
        constraints_(std::move(constraints)),
        penalty_(std::move(penalty)),
        steps_(static_cast<std::size_t>(constrained().end - constrained().begin)),
        projected_(steps_.size()),
        sorted_(steps_.size()) {
    Index begin = 0;
    const auto end_range = [&](const Range& next) {
      if (begin < next.begin) plain_.push_back({begin, next.begin});
      begin = next.end;
    };
    std::vector<Range> others{constrained()};
    for (const Range& range : penalty_.variable_ranges()) others.push_back(range);
    for (const BoundedMatrix& matrix : constraints_.matrices) others.push_back(matrix.range());
    std::sort(others.begin(), others.end(), [](Range a, Range b) { return a.begin < b.begin; });
    for (const Range& range : others)
      if (range.size() > 0) end_range(range);
    end_range({size_, size_});
  }

  Index size() const { return size_; }
  Evaluator<T>& evaluator() const { return evaluator_; }
  /// The controls that have to stay on the simplex; empty where they are free.
  Range constrained() const { return constraints_.simplex; }
  bool is_constrained() const { return !steps_.empty() || !constraints_.matrices.empty(); }
  /// R.
  const NonsmoothPenalty& penalty() const { return penalty_; }
  bool is_penalised() const { return !penalty_.none(); }
  std::int64_t evaluations() const { return evaluations_; }

  /// J and the gradient of F at the controls of `at`, over all samples or over a batch; J is NaN where the
  /// gradient is not finite, or the controls are not, which saturated units hide. Interrupted leaves `at`
  /// unusable.
  void evaluate(Iterate<T>& at, std::int64_t batch = Evaluator<T>::all_samples) {
    last_evaluated_ = &at;
    bool known_finite = false;
    at.smooth_value = evaluator_.differentiate(
        at.controls.data(), {.controls = at.gradient.data(), .known_finite = &known_finite}, batch);
    clear_frozen(at.gradient.data());
    if (!known_finite && (first_non_finite(at.gradient.data(), size()) >= 0 ||
                          first_non_finite(at.controls.data(), size()) >= 0))
      at.smooth_value = std::numeric_limits<double>::quiet_NaN();
    at.penalty = penalty_.value(at.controls.data());
    at.value = at.smooth_value + at.penalty;
    check_stop();
    count_evaluations(1);
  }
  /// Asked after a pass over vectors of this size, which takes long where they are long; where they are
  /// short, the layers of an evaluation ask often enough. Throws Interrupted.
  void check_stop() const {
    if (size_ <= detail::shortest_chunk) return;
    constexpr double work_per_number = 2;
    evaluator_.check_stop(work_per_number * static_cast<double>(size()));
  }
  /// What was evaluated last, where J is not finite; else null.
  const Iterate<T>* nonfinite_trial() const {
    return last_evaluated_ && !std::isfinite(last_evaluated_->value) ? last_evaluated_ : nullptr;
  }
  /// Notes work that costs as much as so many evaluations.
  void count_evaluations(int count) { evaluations_ += count; }

  /// Sets the entries of frozen controls to 0.
  template <class V>
  void clear_frozen(V* v) const {
    for (const Range& part : constraints_.frozen) std::fill(v + part.begin, v + part.end, V(0));
  }

  /// Projects matrices onto their bounds: a training begins with controls that it may reach.
  void project_matrices(T* controls) const {
    for (const BoundedMatrix& matrix : constraints_.matrices) clip(matrix, controls + matrix.begin);
  }

  /// to = P(u + step direction), with the projection P onto the constraints.
  void move(const Iterate<T>& at, const ControlVector<T>& direction, double step, ControlVector<T>& to) {
    const T *u = at.controls.data(), *d = direction.data();
    T* out = to.data();
    for_chunks(size(), [&](Index begin, Index end) {
      const T t = T(step);
      for (Index n = begin; n < end; ++n) out[n] = fma(t, d[n], u[n]);
    });
    project(out);
    check_stop();
  }

  /// to = prox(P(u - step g)), with the proximal map of step R. L1 and projection concern different controls.
  void descend(const Iterate<T>& at, double step, ControlVector<T>& to) {
    move(at, at.gradient, -step, to);
    penalty_.apply_prox(step, to.data());
  }

  Displacement displacement(const Iterate<T>& from, const ControlVector<T>& to) const {
    return displacement(from, from.gradient, to);
  }
  Displacement displacement(const Iterate<T>& from, const ControlVector<T>& gradient,
                            const ControlVector<T>& to) const {
    const T *u = from.controls.data(), *g = gradient.data(), *out = to.data();
    const auto moved = [=](Index n) { return static_cast<double>(out[n]) - static_cast<double>(u[n]); };
    const auto add_slope = [=](double sum, Index n) { return fma(static_cast<double>(g[n]), moved(n), sum); };
    const auto add_square = [=](double sum, Index n) { return fma(moved(n), moved(n), sum); };
    const auto [slope, squared] = sum_chunks<double, 2>(size(), [&](Index begin, Index end) {
      return std::array{sum_range<double>(begin, end, add_slope), sum_range<double>(begin, end, add_square)};
    });
    check_stop();
    return {slope, squared};
  }

  /// |prox(P(u - g)) - u|, which is |g| without constraint and penalty: 0 exactly where no first-order
  /// descent is left.
  double stationarity(const Iterate<T>& at) {
    const Index steps_begin = constrained().begin;
    const T *u = at.controls.data(), *g = at.gradient.data();
    double squares = penalty_.squared_residual(u, g);
    for (const Range& range : plain_) squares += dot(g + range.begin, g + range.begin, range.size());
    if (!steps_.empty()) {
      for (std::size_t i = 0; i < steps_.size(); ++i)
        steps_[i] = u[steps_begin + static_cast<Index>(i)] - g[steps_begin + static_cast<Index>(i)];
      project_steps(projected_.data());
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        const double moved =
            static_cast<double>(projected_[i]) - static_cast<double>(u[steps_begin + static_cast<Index>(i)]);
        squares = fma(moved, moved, squares);
      }
    }
    for (const BoundedMatrix& matrix : constraints_.matrices) {
      const auto size = static_cast<std::size_t>(matrix.rows * matrix.cols);
      std::vector<T> moved(u + matrix.begin, u + matrix.begin + matrix.rows * matrix.cols);
      for (std::size_t i = 0; i < size; ++i) moved[i] -= g[matrix.begin + static_cast<Index>(i)];
      clip(matrix, moved.data());
      for (std::size_t i = 0; i < size; ++i) moved[i] -= u[matrix.begin + static_cast<Index>(i)];
      squares += dot(moved.data(), moved.data(), static_cast<Index>(size));
    }
    return std::sqrt(squares);
  }

 private:
  Evaluator<T>& evaluator_;
  Index size_;
  Constraints constraints_;
  NonsmoothPenalty penalty_;
  std::vector<Range> plain_;          ///< controls without constraint and penalty
  std::vector<T> steps_, projected_;  ///< scratch of the projection
  std::vector<double> sorted_;
  std::int64_t evaluations_ = 0;
  const Iterate<T>* last_evaluated_ = nullptr;

  void project(T* controls) {
    project_matrices(controls);
    if (steps_.empty()) return;
    T* steps = controls + constrained().begin;
    std::copy_n(steps, steps_.size(), steps_.begin());
    project_steps(steps);
  }

  static void clip(const BoundedMatrix& matrix, T* entries) {
    MatrixView<T> view(entries, matrix.rows, matrix.cols);
    Eigen::MatrixXd clipped = view.template cast<double>();
    const double rank = static_cast<double>(std::min(matrix.rows, matrix.cols));
    clip_singular_values(clipped, matrix.bound,
                         std::is_same_v<T, double> ? 0 : std::numeric_limits<T>::epsilon() * std::sqrt(rank));
    view = clipped.template cast<T>();
  }

  /// The projection of steps_. Steps that are not finite stay so: J will not be finite either.
  void project_steps(T* to) {
    const auto size = static_cast<Index>(steps_.size());
    if (first_non_finite(steps_.data(), size) >= 0)
      std::copy(steps_.begin(), steps_.end(), to);
    else
      project_simplex<T>({steps_.data(), size}, constraints_.total, {to, size}, sorted_);
  }
};

}  // namespace ocdl
