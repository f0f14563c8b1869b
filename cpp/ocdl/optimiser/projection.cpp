#include "ocdl/optimiser/projection.hpp"

#include <Eigen/Eigenvalues>

namespace ocdl {

/// With the right singular vectors v_i, the eigenvectors of K^T K, and the singular values s_i = |K v_i|:
/// K - sum (1 - c / s_i) (K v_i) v_i^T over those that are larger than c = (1 - room) bound.
void clip_singular_values(Eigen::MatrixXd& matrix, double bound, double room) {
  if (matrix.norm() <= bound || !matrix.allFinite()) return;
  const bool is_wide = matrix.cols() > matrix.rows();
  if (is_wide) matrix.transposeInPlace();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix.transpose() * matrix);
  const Eigen::MatrixXd images = matrix * solver.eigenvectors();
  const Eigen::VectorXd values = images.colwise().norm();
  constexpr double roundoff = 4 * std::numeric_limits<double>::epsilon();
  const double ceiling = (1 - room) * bound;
  for (Index i = 0; i < images.cols() && values.maxCoeff() > bound * (1 + roundoff); ++i)
    if (values(i) > ceiling)
      matrix -= (1 - ceiling / values(i)) * images.col(i) * solver.eigenvectors().col(i).transpose();
  if (is_wide) matrix.transposeInPlace();
}

}  // namespace ocdl
