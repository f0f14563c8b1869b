#include "ocdl/optimiser/projection.hpp"

#include <Eigen/Eigenvalues>

namespace ocdl {

/// With the right singular vectors v_i, the eigenvectors of K^T K, and the singular values s_i = |K v_i|:
/// K - sum (1 - bound / s_i) (K v_i) v_i^T over those that are larger than the bound.
void clip_singular_values(Eigen::MatrixXd& matrix, double bound) {
  if (matrix.norm() <= bound || !matrix.allFinite()) return;
  const bool is_wide = matrix.cols() > matrix.rows();
  if (is_wide) matrix.transposeInPlace();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix.transpose() * matrix);
  const Eigen::MatrixXd images = matrix * solver.eigenvectors();
  constexpr double roundoff = 4 * std::numeric_limits<double>::epsilon();
  for (Index i = 0; i < images.cols(); ++i)
    if (const double value = images.col(i).norm(); value > bound * (1 + roundoff))
      matrix -= (1 - bound / value) * images.col(i) * solver.eigenvectors().col(i).transpose();
  if (is_wide) matrix.transposeInPlace();
}

}  // namespace ocdl
