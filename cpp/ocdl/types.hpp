#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstddef>

namespace ocdl {

using Index = std::ptrdiff_t;

/// Double-precision data of a method or a grid (never of a sweep, which is templated on its scalar).
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// Sums over many samples run in at least double precision: the type of a loss value.
template <class T>
struct WideScalar {
  using type = double;
};
template <class T>
struct WideScalar<std::complex<T>> {
  using type = std::complex<double>;
};
template <class T>
using Wide = typename WideScalar<T>::type;

}  // namespace ocdl
