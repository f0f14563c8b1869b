#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ocdl/kernel/vector_arithmetic.hpp"
#include "ocdl/objective/regulariser.hpp"

namespace ocdl {

/// R(u) = sum_k weight_k |u_k|_1 over disjoint ranges of the vector of controls, which has no gradient where
/// a control is 0: methods take its proximal map, or work within an orthant.
struct WeightedL1 {
  struct Term {
    Range range;
    double weight;
    bool is_variable;  ///< a range that is not counts in R, but its controls stay as they are
  };
  std::vector<Term> terms;

  bool none() const { return terms.empty(); }

  template <class T>
  double value(const T* u) const {
    double sum = 0;
    for (const Term& term : terms) {
      const T* first = u + term.range.begin;
      const double norm = sum_vector<double>(term.range.size(), [=](double partial, Index n) {
        return partial + std::abs(static_cast<double>(first[n]));
      });
      sum = fma(term.weight, norm, sum);
    }
    return sum;
  }

  /// u <- argmin_v  step R(v) + 1/2 |v - u|^2, the soft threshold at step times the weight.
  template <class T>
  void apply_prox(double step, T* u) const {
    for_each_variable([&](Index n, T weight) { u[n] = soft_threshold(u[n], T(step) * weight); }, u);
  }

  /// The sum of |prox(u - g) - u|^2 over the variable ranges, with the step 1.
  template <class T>
  double squared_residual(const T* u, const T* g) const {
    double sum = 0;
    for (const Term& term : terms) {
      if (!term.is_variable) continue;
      sum += sum_vector<double>(term.range.size(), [&](double partial, Index k) {
        const Index n = term.range.begin + k;
        const double at = static_cast<double>(u[n]), slope = static_cast<double>(g[n]);
        const double next = soft_threshold(at - slope, term.weight);
        // Where the sign stays, the difference is known without the roundoff of `at`.
        const double move = next == 0 ? at : next > 0 ? slope + term.weight : slope - term.weight;
        return fma(move, move, partial);
      });
    }
    return sum;
  }

  /// v = the subgradient of F + R of the smallest norm, with g the gradient of F: the pseudo-gradient of
  /// Andrew and Gao (2007). Outside of the variable ranges v = g.
  template <class T>
  void pseudo_gradient(const T* u, const T* g, T* v, Index size) const {
    std::copy_n(g, size, v);
    for_each_variable(
        [&](Index n, T weight) {
          if (u[n] != T(0))
            v[n] += u[n] > T(0) ? weight : -weight;
          else
            v[n] = soft_threshold(g[n], weight);
        },
        v);
  }

  /// d_n = 0 wherever d is no direction of descent by itself: d_n v_n >= 0.
  template <class T>
  void align(const T* v, T* d) const {
    for_each_variable([&](Index n, T) { d[n] = d[n] * v[n] < T(0) ? d[n] : T(0); }, d);
  }

  /// Sets to 0 what has left the orthant of `from`, where 0 belongs to the orthant into which -v leads.
  template <class T>
  void project_to_orthant(const T* from, const T* v, T* to) const {
    for_each_variable(
        [&](Index n, T) {
          const T side = from[n] != T(0) ? from[n] : -v[n];
          if ((side > T(0)) != (to[n] > T(0)) || side == T(0)) to[n] = T(0);
        },
        to);
  }

 private:
  template <class T>
  static T soft_threshold(T x, T threshold) {
    return x > threshold ? x - threshold : x < -threshold ? x + threshold : T(0);
  }

  /// body(n, weight) for every control of the variable ranges; the vector only names the scalar.
  template <class T, class Body>
  void for_each_variable(const Body& body, const T*) const {
    for (const Term& term : terms)
      if (term.is_variable)
        for_chunks(term.range.size(), [&](Index begin, Index end) {
          for (Index k = begin; k < end; ++k) body(term.range.begin + k, T(term.weight));
        });
  }
};

/// The L1 penalties of a regulariser. What is frozen, and steps that are not learned, do not move.
inline WeightedL1 weighted_l1(const Network& net, const Regulariser& regulariser,
                              const std::vector<Range>& frozen) {
  WeightedL1 result;
  for (const Part& part : net.parts) {
    double weight = 0;
    for (const Penalty& penalty : regulariser.penalties)
      if (const L1* l1 = std::get_if<L1>(&penalty); l1 && l1->parts.has(part)) weight += l1->weight;
    const bool is_frozen = std::any_of(frozen.begin(), frozen.end(),
                                       [&](const Range& range) { return range.begin == part.place.begin; });
    const bool is_learned = part.role != Role::steps || net.learns_steps;
    if (weight > 0) result.terms.push_back({part.place, weight, is_learned && !is_frozen});
  }
  return result;
}

}  // namespace ocdl
