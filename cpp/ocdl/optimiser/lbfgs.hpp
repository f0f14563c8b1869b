#pragma once

#include <functional>

#include "ocdl/optimiser/face.hpp"
#include "ocdl/optimiser/wolfe_search.hpp"

namespace ocdl {

struct LBFGSOptions {
  static constexpr std::string_view name = "LBFGS";
  static constexpr bool is_proximal = true;
  Index memory;
  int max_trials;

  template <class V>
  void visit(V&& v) {
    v("memory", memory);
    v("max_trials", max_trials);
  }
};

/// The limited-memory BFGS method (Nocedal 1980) with a strong Wolfe search.
///
/// With steps on the simplex: the gradient and the direction are reduced to the face on which the steps can
/// move, and the search goes along the projected arc P(u + t d), t = 1, 1/2, 1/4, ..., until
///     J(u~) <= J(u) + c1 <g, u~-u>.
///
/// With a penalty R it is orthant-wise (OWL-QN, Andrew and Gao 2007): the pseudo-gradient takes the place of
/// g, the direction is set to 0 where it does not descend by itself, and the arc ends at the boundary of the
/// orthant. The pairs are those of F, and of what R is curved.
template <class T>
class LBFGS : public Method<T> {
 public:
  using Options = LBFGSOptions;

  LBFGS(const LBFGSOptions& options, const TrainingProblem<T>& problem)
      : options_(options),
        size_(problem.size()),
        whole_size_(whole_groups(problem.size())),
        search_(problem.size(), options.max_trials),
        direction_(static_cast<std::size_t>(problem.size())),
        pseudo_gradient_(problem.is_penalised() ? direction_.size() : 0),
        moves_(static_cast<std::size_t>(whole_size_ * (options.memory + 1))),
        changes_(moves_.size()) {
    for (Index row = 0; row <= options.memory; ++row)
      ring_.push_back(
          {.move = moves_.data() + row * whole_size_, .change = changes_.data() + row * whole_size_});
  }

  StepReport step(TrainingProblem<T>& problem, Iterate<T>& at) override {
    int trials = 0;
    // Where the model of the curvature leads nowhere, the gradient alone may still.
    for (auto known = static_cast<Index>(std::min<std::int64_t>(pairs_, options_.memory));; known = 0) {
      const double slope = choose_direction(problem, at, known);
      const double first_step = known > 0 ? 1 : std::min(1.0, 1 / std::sqrt(-slope));
      const bool succeeded = slope < 0 && search(problem, at, slope, first_step);
      trials += slope < 0 ? search_trials_ : 0;
      if (succeeded) {
        if (known == 0) pairs_ = 0;
        remember(problem, at, search_.best());
        std::swap(at, search_.best());
        return {Status::running, trials};
      }
      if (known == 0) return {Status::line_search_failed, trials};
    }
  }

  void visit(StateVisitor<T>& visitor) override {
    visitor.count("pairs", pairs_);
    visitor.rows("moves", moves_.data(), options_.memory + 1, size_, whole_size_);
    visitor.rows("changes", changes_.data(), options_.memory + 1, size_, whole_size_);
  }
  void restored() override {
    for (std::int64_t k = std::max<std::int64_t>(0, pairs_ - options_.memory); k < pairs_; ++k) {
      Pair& stored = pair(k);
      stored.accept(dot(stored.move, stored.change, size_), dot(stored.change, stored.change, size_),
                    dot(pair(std::max<std::int64_t>(k - 1, 0)).move, stored.change, size_));
    }
  }

 private:
  /// s_k = u[k+1] - u[k] and y_k = g[k+1] - g[k], with zeros behind them to the end of a group.
  struct Pair {
    T *move, *change;
    double inverse = 0;  ///< 1 / <s_k, y_k>
    double scale = 0;    ///< <s_k, y_k> / |y_k|^2
    double overlap = 0;  ///< <s_(k-1), y_k>
    double factor = 0;   ///< what the recursion keeps for its way back

    void accept(double product, double change_squared, double overlap_) {
      inverse = 1 / product;
      scale = product / change_squared;
      overlap = overlap_;
    }
  };

  LBFGSOptions options_;
  Index size_, whole_size_;
  WolfeSearch<T> search_;
  int search_trials_ = 0;
  ControlVector<T> direction_;
  ControlVector<T> pseudo_gradient_;  ///< empty without a penalty
  ControlVector<T> moves_, changes_;
  std::vector<Pair> ring_;  ///< the last ones, and one that is not accepted yet
  std::int64_t pairs_ = 0;  ///< seen so far

  Pair& pair(std::int64_t k) { return ring_[static_cast<std::size_t>(k % (options_.memory + 1))]; }

  const ControlVector<T>& gradient(const Iterate<T>& at) const {
    return pseudo_gradient_.empty() ? at.gradient : pseudo_gradient_;
  }

  /// direction = -H g by the two-loop recursion over the last `known` pairs; returns <g, direction>.
  double choose_direction(const TrainingProblem<T>& problem, const Iterate<T>& at, Index known) {
    if (problem.is_penalised())
      problem.penalty().pseudo_gradient(at.controls.data(), at.gradient.data(), pseudo_gradient_.data(),
                                        size_);
    const ControlVector<T>& g = gradient(at);
    T* d = direction_.data();
    std::transform(g.begin(), g.end(), d, std::negate<>());
    reduce_to_face(problem, at, d);
    if (known > 0) {
      const double slope = apply_model(problem, g.data(), d, pairs_ - known, pairs_ - 1);
      if (!searches_arc(problem)) return slope;
      reduce_to_face(problem, at, d);
      problem.penalty().align(at.controls.data(), g.data(), d);
    }
    return dot(g.data(), d, size_);
  }

  static bool searches_arc(const TrainingProblem<T>& problem) {
    return problem.is_constrained() || problem.is_penalised();
  }

  /// d <- H d with the pairs first .. last, by the two-loop recursion over two pairs at a time: what the
  /// first of them does to the product of the second is known beforehand, and every update of d also gives
  /// the products that the next two need. Returns <g, d>.
  double apply_model(const TrainingProblem<T>& problem, const T* g, T* d, std::int64_t first,
                     std::int64_t last) {
    const auto at = [&](std::int64_t k) -> Pair& { return pair(std::clamp(k, first, last)); };
    // Two products in one pass, in which d stays as it is.
    std::array<double, 2> products = add_two(0, d, 0, d, d, at(last).move, at(last - 1).move, whole_size_);
    for (std::int64_t k = last; k >= first; k -= 2) {
      Pair &here = at(k), &other = at(k - 1);
      here.factor = products[0] * here.inverse;
      if (k > first) other.factor = fnma(here.factor, here.overlap, products[1]) * other.inverse;
      const T* next = k - 2 >= first ? at(k - 2).move : at(first).change;
      const T* second_next = k - 2 >= first ? at(k - 3).move : at(first + 1).change;
      products = add_two(-here.factor, here.change, k > first ? -other.factor : 0, other.change, d, next,
                         second_next, whole_size_);
      problem.check_stop();
    }
    const double scaling = at(last).scale;
    scale(scaling, d, whole_size_);
    for (double& product : products) product *= scaling;
    for (std::int64_t k = first; k <= last; k += 2) {
      const Pair &here = at(k), &other = at(k + 1);
      const double factor = fnma(products[0], here.inverse, here.factor);
      const double product = fma(factor, other.overlap, products[1]);
      const double other_factor = k < last ? fnma(product, other.inverse, other.factor) : 0;
      products = add_two(factor, here.move, other_factor, other.move, d, k + 2 <= last ? at(k + 2).change : g,
                         at(k + 3).change, whole_size_);
      problem.check_stop();
    }
    return products[0];
  }

  bool search(TrainingProblem<T>& problem, const Iterate<T>& at, double slope, double first_step) {
    if (searches_arc(problem)) return search_arc(problem, at, first_step);
    const bool succeeded = search_.run(problem, at, direction_, slope, first_step);
    search_trials_ = search_.trials();
    return succeeded;
  }

  bool search_arc(TrainingProblem<T>& problem, const Iterate<T>& at, double step) {
    Iterate<T>& next = search_.best();
    for (search_trials_ = 1; search_trials_ <= options_.max_trials; ++search_trials_, step /= 2) {
      problem.move(at, direction_, step, next.controls);
      problem.penalty().project_to_orthant(at.controls.data(), gradient(at).data(), next.controls.data());
      const Displacement moved = problem.displacement(at, gradient(at), next.controls);
      if (moved.squared == 0) return false;
      problem.evaluate(next);
      const double bound = fma(WolfeSearch<T>::c1, moved.slope, at.value);
      if (moved.slope < 0 && is_sufficient<T>(next.value, bound, at.value)) return true;
    }
    --search_trials_;
    return false;
  }

  /// Keeps the pair of a step where it has positive curvature.
  void remember(const TrainingProblem<T>& problem, const Iterate<T>& from, const Iterate<T>& to) {
    Pair& latest = pair(pairs_);
    T *s = latest.move, *y = latest.change;
    const T* before = pair(std::max<std::int64_t>(pairs_ - 1, 0)).move;
    const bool is_curved = problem.penalty().is_curved();
    if (is_curved) {
      std::fill_n(y, size_, T(0));
      problem.penalty().add_group_change(from.controls.data(), to.controls.data(), y);
    }
    const auto [product, s_squared, y_squared, overlap] =
        sum_chunks<double, 4>(size_, [&](Index begin, Index end) {
          for (Index n = begin; n < end; ++n) {
            const auto i = static_cast<std::size_t>(n);
            s[n] = to.controls[i] - from.controls[i];
            y[n] = to.gradient[i] - from.gradient[i] + (is_curved ? y[n] : T(0));
          }
          const auto inner = [&](const T* a, const T* b) { return dot_range(a, b, begin, end); };
          return std::array{inner(s, y), inner(s, s), inner(y, y), inner(before, y)};
        });
    constexpr double min_cosine = 1e-10;
    if (!(product > min_cosine * std::sqrt(s_squared * y_squared))) return;
    latest.accept(product, y_squared, overlap);
    ++pairs_;
  }
};

}  // namespace ocdl
