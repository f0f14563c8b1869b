#include "ocdl/tableau/tableau.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ocdl {
namespace {

template <class... Parts>
[[noreturn]] void reject(const Parts&... parts) {
  std::ostringstream message;
  message.precision(std::numeric_limits<double>::max_digits10);
  (message << ... << parts);
  throw std::invalid_argument(message.str());
}

/// The root with the trees that hang from it. Their order does not matter: each multiset of branches is one
/// tree.
struct RootedTree {
  std::vector<RootedTree> branches;

  int nodes() const {
    int count = 1;
    for (const RootedTree& branch : branches) count += branch.nodes();
    return count;
  }

  /// gamma(t) = |t| prod gamma(branch)
  double density() const {
    double product = nodes();
    for (const RootedTree& branch : branches) product *= branch.density();
    return product;
  }
};

/// Appends to `complete` every tree that `tree` becomes by branches with `nodes` nodes in all, drawn from the
/// first `choices` trees of `smaller`. Branches are hung in falling position, so each multiset comes once.
void hang_branches(const RootedTree& tree, int nodes, const std::vector<RootedTree>& smaller,
                   std::size_t choices, std::vector<RootedTree>& complete) {
  if (nodes == 0) complete.push_back(tree);
  for (std::size_t position = 0; position < choices; ++position) {
    const RootedTree& branch = smaller[position];
    if (branch.nodes() > nodes) return;
    RootedTree grown = tree;
    grown.branches.push_back(branch);
    hang_branches(grown, nodes - branch.nodes(), smaller, position + 1, complete);
  }
}

/// All rooted trees of at most `highest` nodes, small ones first.
std::vector<RootedTree> rooted_trees(int highest) {
  std::vector<RootedTree> trees;
  for (int nodes = 1; nodes <= highest; ++nodes) {
    const std::vector<RootedTree> smaller = trees;
    hang_branches(RootedTree{}, nodes - 1, smaller, smaller.size(), trees);
  }
  return trees;
}

/// Phi(t)_i = prod over branches of (A Phi(branch))_i , and 1 for the single node.
Vector stage_weights(const RootedTree& tree, const Matrix& A) {
  Vector weights = Vector::Ones(A.rows());
  for (const RootedTree& branch : tree.branches) weights.array() *= (A * stage_weights(branch, A)).array();
  return weights;
}

/// b . Phi(t) = 1 / gamma(t)  up to the roundoff of the terms summed, whose size is |b| . |Phi|(t). However
/// large they are, an error above a millionth of the right-hand side is no roundoff that we would call an
/// order.
bool satisfies_order_condition(const RootedTree& tree, const Matrix& A, const Vector& b) {
  const double expected = 1.0 / tree.density();
  const double residual = std::abs(b.dot(stage_weights(tree, A)) - expected);
  const double size_of_terms = b.cwiseAbs().dot(stage_weights(tree, A.cwiseAbs()));
  return residual <= std::min(1e-12 * size_of_terms, 1e-6 * expected);
}

int derive_order(const Matrix& A, const Vector& b) {
  static const std::vector<RootedTree> trees = rooted_trees(Tableau::highest_checked_order);
  for (const RootedTree& tree : trees) {
    if (!satisfies_order_condition(tree, A, b)) return tree.nodes() - 1;
  }
  return Tableau::highest_checked_order;
}

std::vector<StageGroup> stage_groups(const Matrix& A) {
  std::vector<StageGroup> groups;
  for (Index first = 0, stages = A.rows(); first < stages;) {
    Index last = first + 1;
    while ((A.block(0, last, last, stages - last).array() != 0.0).any()) ++last;
    groups.push_back({first, last, last - first > 1 || A(first, first) != 0.0});
    first = last;
  }
  return groups;
}

void require_finite(const char* argument, const Matrix& values) {
  for (Index i = 0; i < values.rows(); ++i) {
    for (const double value : values.row(i)) {
      if (!std::isfinite(value)) {
        reject(argument, " must hold finite numbers only; stage ", i + 1, " holds ", value);
      }
    }
  }
}

void require_length(const char* argument, const Vector& values, Index stages) {
  if (values.size() != stages) {
    reject(argument, " must have length ", stages, ", one entry for each stage of A; got length ",
           values.size());
  }
}

/// A 1, summed from left to right: the same bits under every instruction set, so that files which name a
/// method mean the same one everywhere.
Vector row_sums(const Matrix& A) {
  Vector sums = Vector::Zero(A.rows());
  for (Index j = 0; j < A.cols(); ++j) sums += A.col(j);
  return sums;
}

}  // namespace

Tableau::Tableau(Matrix A, Vector b, std::optional<Vector> c, std::string name)
    : A_(std::move(A)), b_(std::move(b)), name_(std::move(name)) {
  if (A_.rows() != A_.cols() || A_.rows() == 0) {
    reject("A must be a square matrix with one row and one column for each stage, at least one; got shape (",
           A_.rows(), ", ", A_.cols(), ")");
  }
  require_length("b", b_, A_.rows());
  if (c) require_length("c", *c, A_.rows());
  require_finite("A", A_);
  require_finite("b", b_);
  const char* what = c ? "c" : "c, the sums of the rows of A,";
  c_ = c ? *std::move(c) : row_sums(A_);
  require_finite(what, c_);

  // The condition of the single node is sum b = 1.
  if (!satisfies_order_condition(RootedTree{}, A_, b_)) reject("b must sum to 1; got a sum of ", b_.sum());

  order_ = derive_order(A_, b_);
  groups_ = stage_groups(A_);
  is_explicit_ = std::ranges::none_of(groups_, &StageGroup::is_implicit);
}

Tableau Tableau::adjoint() const {
  Matrix partner(stages(), stages());
  for (Index i = 0; i < stages(); ++i) {
    if (b_(i) == 0.0) {
      reject("the adjoint tableau divides by every weight, but b is 0 at stage ", i + 1,
             name_.empty() ? "" : " of " + name_,
             "; choose a tableau whose weights are all nonzero (gradients need no adjoint tableau and work "
             "with this one)");
    }
    for (Index j = 0; j < stages(); ++j) partner(i, j) = b_(j) - b_(j) * A_(j, i) / b_(i);
  }
  return Tableau(std::move(partner), b_, std::nullopt, name_.empty() ? "" : "adjoint of " + name_);
}

}  // namespace ocdl
