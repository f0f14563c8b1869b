#pragma once

#include <Eigen/Core>
#include <complex>
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace ocdl {

using Index = std::ptrdiff_t;

/// Cache-line size, for avoiding false sharing.
inline constexpr std::size_t cache_line = 64;

/// Double-precision data of a method or a grid (never of a sweep, which is templated on its scalar).
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// Views of numbers in rows, which do not own them; E is a scalar or a constant one.
template <class E, class Of>
using View = Eigen::Map<std::conditional_t<std::is_const_v<E>, const Of, Of>>;
template <class E>
using MatrixView =
    View<E, Eigen::Matrix<std::remove_const_t<E>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
template <class E>
using VectorView = View<E, Eigen::Matrix<std::remove_const_t<E>, Eigen::Dynamic, 1>>;

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

/// The real value of a scalar, which comparisons use.
template <std::floating_point T>
constexpr T value_of(T x) {
  return x;
}
template <class T>
constexpr T value_of(std::complex<T> x) {
  return x.real();
}

}  // namespace ocdl
