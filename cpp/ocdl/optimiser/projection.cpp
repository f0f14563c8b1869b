#include "ocdl/optimiser/projection.hpp"

#include <Eigen/SVD>

namespace ocdl {

void clip_singular_values(Eigen::MatrixXd& matrix, double bound) {
  if (matrix.norm() <= bound || !matrix.allFinite()) return;
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  if (svd.singularValues()(0) <= bound * (1 + 4 * std::numeric_limits<double>::epsilon())) return;
  matrix = svd.matrixU() * svd.singularValues().cwiseMin(bound).asDiagonal() * svd.matrixV().transpose();
}

}  // namespace ocdl
