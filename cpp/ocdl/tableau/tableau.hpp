#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ocdl/types.hpp"

namespace ocdl {

/// Consecutive stages, first to last - 1, none of which needs a stage behind them. One explicit stage follows
/// from the earlier ones; the stages of an implicit group have to be solved for together.
struct StageGroup {
  Index first, last;
  bool is_implicit;

  Index size() const { return last - first; }
};

/// The coefficients of a Runge-Kutta method with s stages: data that checks itself and derives its
/// properties.
///
///     y_i = y + h sum_j a_ij k_j ,   k_i = f(y_i) ,   y_new = y + h sum_i b_i k_i ,   i = 1..s
///
/// Immutable once built.
class Tableau {
 public:
  /// Orders are checked up to here (37 rooted trees); a method of higher order reports this one.
  static constexpr int highest_checked_order = 6;

  /// A is s x s, b and c have length s, all finite, sum b = 1 up to roundoff. Without c, c_i = sum_j a_ij.
  /// An empty name means unnamed. Throws std::invalid_argument.
  Tableau(Matrix A, Vector b, std::optional<Vector> c = std::nullopt, std::string name = {});

  const Matrix& A() const { return A_; }
  const Vector& b() const { return b_; }
  const Vector& c() const { return c_; }
  const std::string& name() const { return name_; }
  Index stages() const { return b_.size(); }

  /// Largest p <= highest_checked_order such that  b . Phi(t) = 1 / gamma(t)  for every rooted tree t of at
  /// most p nodes. The vector fields are autonomous: only A and b enter, c does not.
  int order() const { return order_; }

  /// Strictly lower triangular A: each stage needs the earlier ones only.
  bool is_explicit() const { return is_explicit_; }

  /// The stages in groups that are as small as can be: the diagonal blocks of A, which is lower triangular in
  /// blocks. Diagonally implicit methods have a group for each stage.
  const std::vector<StageGroup>& groups() const { return groups_; }

  /// The partner a~_ij = b_j - b_j a_ji / b_i , b~ = b , which makes the pair symplectic:
  /// b_i a~_ij + b~_j a_ji - b_i b~_j = 0. Throws std::invalid_argument where some b_i = 0.
  Tableau adjoint() const;

 private:
  Matrix A_;
  Vector b_;
  Vector c_;
  std::string name_;
  int order_;
  bool is_explicit_;
  std::vector<StageGroup> groups_;
};

}  // namespace ocdl
