#pragma once

#include <utility>
#include <vector>

#include "ocdl/evaluator/evaluator.hpp"
#include "ocdl/kernel/combination.hpp"
#include "ocdl/optimiser/arithmetic.hpp"
#include "ocdl/optimiser/control_vector.hpp"
#include "ocdl/optimiser/projection.hpp"

namespace ocdl {

/// Controls u with J(u) and its gradient.
template <class T>
struct Iterate {
  explicit Iterate(Index size)
      : controls(static_cast<std::size_t>(size)), gradient(static_cast<std::size_t>(size)) {}

  ControlVector<T> controls, gradient;
  double value = 0;
};

/// What becomes of the controls in a step from u to u~.
struct Displacement {
  double slope;    ///< <g, u~ - u>
  double squared;  ///< |u~ - u|^2
};

/// Which controls a minimisation may reach.
struct Constraints {
  std::vector<Range> frozen;  ///< parts of the vector of controls that stay as they are
  Range simplex{0, 0};        ///< a part that stays on {x >= 0, sum x = total}; empty: none
  double total = 1;
};

/// The minimisation of J over the controls that the constraints leave.
template <class T>
class TrainingProblem {
 public:
  TrainingProblem(Evaluator<T>& evaluator, Constraints constraints)
      : evaluator_(evaluator),
        size_(evaluator.size()),
        constraints_(std::move(constraints)),
        steps_(static_cast<std::size_t>(constrained().end - constrained().begin)),
        projected_(steps_.size()),
        sorted_(steps_.size()) {}

  Index size() const { return size_; }
  Evaluator<T>& evaluator() const { return evaluator_; }
  /// The controls that have to stay on the simplex; empty where they are free.
  Range constrained() const { return constraints_.simplex; }
  bool is_constrained() const { return !steps_.empty(); }
  std::int64_t evaluations() const { return evaluations_; }

  /// J and its gradient at the controls of `at`, over all samples or over a batch; J is NaN where the
  /// gradient is not finite, or the controls are not, which saturated units hide. Interrupted leaves `at`
  /// unusable.
  void evaluate(Iterate<T>& at, std::int64_t batch = Evaluator<T>::all_samples) {
    at.value = evaluator_.evaluate(at.controls.data(), at.gradient.data(), batch);
    clear_frozen(at.gradient.data());
    if (first_non_finite(at.gradient.data(), size()) >= 0 ||
        first_non_finite(at.controls.data(), size()) >= 0)
      at.value = std::numeric_limits<double>::quiet_NaN();
    ask();
    count_evaluations(1);
  }
  /// Asked after a pass over vectors of this size, which takes long where they are long; where they are
  /// short, the layers of an evaluation ask often enough. Throws Interrupted.
  void ask() const {
    if (size_ <= detail::shortest_chunk) return;
    constexpr double work_per_number = 2;
    evaluator_.ask(work_per_number * static_cast<double>(size()));
  }
  /// Notes work that costs as much as so many evaluations.
  void count_evaluations(int count) { evaluations_ += count; }

  /// Sets the entries of frozen controls to 0.
  template <class V>
  void clear_frozen(V* v) const {
    for (const Range& part : constraints_.frozen) std::fill(v + part.begin, v + part.end, V(0));
  }

  /// to = P(u + step direction), with the projection P onto the simplex where there is one.
  void move(const Iterate<T>& at, const ControlVector<T>& direction, double step, ControlVector<T>& to) {
    const T *u = at.controls.data(), *d = direction.data();
    T* out = to.data();
    for_chunks(size(), [&](Index begin, Index end) {
      const T t = T(step);
      for (Index n = begin; n < end; ++n) out[n] = u[n] + t * d[n];
    });
    project(out);
    ask();
  }

  Displacement displacement(const Iterate<T>& from, const ControlVector<T>& to) const {
    const T *u = from.controls.data(), *g = from.gradient.data(), *out = to.data();
    const auto [slope, squared] = sum_chunks<2>(size(), [&](Index begin, Index end) {
      const auto moved = [&](Index n) { return static_cast<double>(out[n]) - static_cast<double>(u[n]); };
      return std::array{sum_terms(begin, end, [&](Index n) { return static_cast<double>(g[n]) * moved(n); }),
                        sum_terms(begin, end, [&](Index n) { return moved(n) * moved(n); })};
    });
    ask();
    return {slope, squared};
  }

  /// |P(u - g) - u|, which is |g| without a constraint: 0 exactly where no first-order descent is left.
  double stationarity(const Iterate<T>& at) {
    const auto [steps_begin, steps_end] = constrained();
    const T *u = at.controls.data(), *g = at.gradient.data();
    double squares = dot(g, g, steps_begin) + dot(g + steps_end, g + steps_end, size() - steps_end);
    if (is_constrained()) {
      for (std::size_t i = 0; i < steps_.size(); ++i)
        steps_[i] = u[steps_begin + static_cast<Index>(i)] - g[steps_begin + static_cast<Index>(i)];
      project_steps(projected_.data());
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        const double moved =
            static_cast<double>(projected_[i]) - static_cast<double>(u[steps_begin + static_cast<Index>(i)]);
        squares += moved * moved;
      }
    }
    return std::sqrt(squares);
  }

 private:
  Evaluator<T>& evaluator_;
  Index size_;
  Constraints constraints_;
  std::vector<T> steps_, projected_;  ///< scratch of the projection
  std::vector<double> sorted_;
  std::int64_t evaluations_ = 0;

  void project(T* controls) {
    if (!is_constrained()) return;
    T* steps = controls + constrained().begin;
    std::copy_n(steps, steps_.size(), steps_.begin());
    project_steps(steps);
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
