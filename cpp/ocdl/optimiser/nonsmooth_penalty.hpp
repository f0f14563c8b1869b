#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ocdl/kernel/vector_arithmetic.hpp"
#include "ocdl/objective/regulariser.hpp"

namespace ocdl {

/// R(u) = sum_k weight_k |u_k|_1 + sum_g weight_g sum_j |u_gj|_2, over disjoint ranges and over groups in
/// disjoint parts of the vector of controls. It has no gradient where a control, or a group, is 0: methods
/// take its proximal map, or work within an orthant.
struct NonsmoothPenalty {
  struct Term {
    Range range;
    double weight;
    bool is_variable;         ///< a range that is not counts in R, but its controls stay as they are
    bool is_grouped = false;  ///< its controls are in groups, too
  };
  struct GroupTerm {
    AxisGroups groups;
    double weight;
    bool is_variable;
  };
  std::vector<Term> terms;
  std::vector<GroupTerm> group_terms;

  bool none() const { return terms.empty() && group_terms.empty(); }

  /// Whether its gradient changes where it has one.
  bool is_curved() const { return !group_terms.empty(); }

  /// The disjoint ranges of controls that move and are penalised.
  std::vector<Range> variable_ranges() const {
    std::vector<Range> ranges;
    for (const Term& term : terms)
      if (term.is_variable && !term.is_grouped) ranges.push_back(term.range);
    for (const GroupTerm& term : group_terms)
      for (const AxisGroups::Block& block : term.groups.blocks)
        if (term.is_variable) ranges.push_back(block.range);
    return ranges;
  }

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
    for (const GroupTerm& term : group_terms)
      for (Index j = 0; j < term.groups.count; ++j) sum = fma(term.weight, term.groups.norm(u, j), sum);
    return sum;
  }

  /// u <- argmin_v  step R(v) + 1/2 |v - u|^2: the soft threshold at step times the weight, of numbers and
  /// then of the norms of groups.
  template <class T>
  void apply_prox(double step, T* u) const {
    for_each_variable([&](Index n, T weight) { u[n] = soft_threshold(u[n], T(step) * weight); }, u);
    for_each_group([&](const GroupTerm& term, Index j) { shrink(term, j, step * term.weight, u); });
  }

  /// The sum of |prox(u - g) - u|^2 over the variable ranges, with the step 1.
  template <class T>
  double squared_residual(const T* u, const T* g) const {
    double sum = 0;
    for (const Term& term : terms) {
      if (!term.is_variable || term.is_grouped) continue;
      sum += sum_vector<double>(term.range.size(), [&](double partial, Index k) {
        const double move = move_of(u, g, term.range.begin + k, term.weight);
        return fma(move, move, partial);
      });
    }
    for_each_group([&](const GroupTerm& term, Index j) { sum += squared_group_residual(term, j, u, g); });
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
    for_each_group([&](const GroupTerm& term, Index j) {
      const double norm = term.groups.norm(u, j);
      if (norm == 0) return shrink(term, j, term.weight, v);
      const T factor = T(term.weight / norm);
      term.groups.for_each_entry(j, [&](Index n) { v[n] = fma(factor, u[n], v[n]); });
    });
  }

  /// Adds to the change of the gradient of F that of R between two places, of groups that are 0 at neither.
  template <class T>
  void add_group_change(const T* from, const T* to, T* change) const {
    for_each_group([&](const GroupTerm& term, Index j) {
      const double before = term.groups.norm(from, j), after = term.groups.norm(to, j);
      if (before == 0 || after == 0) return;
      term.groups.for_each_entry(j, [&](Index n) {
        const double moved = static_cast<double>(to[n]) / after - static_cast<double>(from[n]) / before;
        change[n] = fma(T(term.weight), T(moved), change[n]);
      });
    });
  }

  /// d_n = 0 wherever d is no direction of descent by itself, d_n v_n >= 0; the same for groups at 0.
  template <class T>
  void align(const T* u, const T* v, T* d) const {
    for_each_variable([&](Index n, T) { d[n] = d[n] * v[n] < T(0) ? d[n] : T(0); }, d);
    for_each_group([&](const GroupTerm& term, Index j) {
      if (term.groups.norm(u, j) == 0 && !(product(term, j, d, v) < 0)) clear(term, j, d);
    });
  }

  /// Sets to 0 what has left the orthant of `from`, where 0 belongs to the orthant into which -v leads; of a
  /// group the half-space.
  template <class T>
  void project_to_orthant(const T* from, const T* v, T* to) const {
    for_each_variable(
        [&](Index n, T) {
          const T side = from[n] != T(0) ? from[n] : -v[n];
          if ((side > T(0)) != (to[n] > T(0)) || side == T(0)) to[n] = T(0);
        },
        to);
    for_each_group([&](const GroupTerm& term, Index j) {
      const bool is_inside =
          term.groups.norm(from, j) != 0 ? product(term, j, from, to) > 0 : product(term, j, v, to) < 0;
      if (!is_inside) clear(term, j, to);
    });
  }

 private:
  template <class T>
  static T soft_threshold(T x, T threshold) {
    return x > threshold ? x - threshold : x < -threshold ? x + threshold : T(0);
  }

  /// u_n - soft_threshold(u_n - g_n). Where the sign stays, it is known without the roundoff of u_n.
  template <class T>
  static double move_of(const T* u, const T* g, Index n, double weight) {
    const double at = static_cast<double>(u[n]), slope = static_cast<double>(g[n]);
    const double next = soft_threshold(at - slope, weight);
    return next == 0 ? at : next > 0 ? slope + weight : slope - weight;
  }

  template <class T>
  double squared_group_residual(const GroupTerm& term, Index j, const T* u, const T* g) const {
    const auto move = [&](Index n) { return move_of(u, g, n, weight_at(n)); };
    double squares = 0, sum = 0;
    term.groups.for_each_entry(j, [&](Index n) {
      const double next = static_cast<double>(u[n]) - move(n);
      squares = fma(next, next, squares);
    });
    const double norm = std::sqrt(squares);
    term.groups.for_each_entry(j, [&](Index n) {
      const double at = static_cast<double>(u[n]), first = move(n);
      const double whole = norm > term.weight ? fma(term.weight / norm, at - first, first) : at;
      sum = fma(whole, whole, sum);
    });
    return sum;
  }

  /// The weight of |u_n| in a part with groups.
  double weight_at(Index n) const {
    for (const Term& term : terms)
      if (term.range.begin <= n && n < term.range.end) return term.weight;
    return 0;
  }

  template <class T>
  static void shrink(const GroupTerm& term, Index j, double threshold, T* v) {
    const double norm = term.groups.norm(v, j);
    if (norm <= threshold) return clear(term, j, v);
    const T factor = T(1 - threshold / norm);
    term.groups.for_each_entry(j, [&](Index n) { v[n] *= factor; });
  }

  template <class T>
  static void clear(const GroupTerm& term, Index j, T* v) {
    term.groups.for_each_entry(j, [&](Index n) { v[n] = T(0); });
  }

  template <class T>
  static double product(const GroupTerm& term, Index j, const T* a, const T* b) {
    double sum = 0;
    term.groups.for_each_entry(
        j, [&](Index n) { sum = fma(static_cast<double>(a[n]), static_cast<double>(b[n]), sum); });
    return sum;
  }

  /// body(term, j) for every group that moves.
  template <class Body>
  void for_each_group(const Body& body) const {
    for (const GroupTerm& term : group_terms)
      for (Index j = 0; term.is_variable && j < term.groups.count; ++j) body(term, j);
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

/// The nonsmooth penalties of a regulariser. What is frozen, and steps that are not learned, do not move; of
/// a group all parts are frozen or none is, and no part is in groups twice.
inline NonsmoothPenalty nonsmooth_penalty(const Network& net, const Regulariser& regulariser,
                                          const std::vector<Range>& frozen) {
  const auto is_in = [](const std::vector<Range>& ranges, const Range& place) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& range) { return range.begin == place.begin; });
  };
  NonsmoothPenalty result;
  std::vector<Range> grouped;
  for (const Penalty& penalty : regulariser.penalties)
    if (const GroupL1* group = std::get_if<GroupL1>(&penalty)) {
      const AxisGroups groups(net, group->parts, group->axis);
      std::size_t frozen_blocks = 0;
      for (const AxisGroups::Block& block : groups.blocks) {
        if (is_in(grouped, block.range)) throw std::invalid_argument("a part is in two GroupL1 penalties");
        grouped.push_back(block.range);
        frozen_blocks += is_in(frozen, block.range);
      }
      if (frozen_blocks != 0 && frozen_blocks != groups.blocks.size())
        throw std::invalid_argument("GroupL1 has parts that are frozen and others that are not");
      result.group_terms.push_back({groups, group->weight, frozen_blocks == 0});
    }
  for (const Part& part : net.parts) {
    double weight = 0;
    for (const Penalty& penalty : regulariser.penalties)
      if (const L1* l1 = std::get_if<L1>(&penalty); l1 && l1->parts.has(part)) weight += l1->weight;
    const bool is_learned = part.role != Role::steps || net.learns_steps;
    if (weight > 0)
      result.terms.push_back(
          {part.range, weight, is_learned && !is_in(frozen, part.range), is_in(grouped, part.range)});
  }
  return result;
}

}  // namespace ocdl
