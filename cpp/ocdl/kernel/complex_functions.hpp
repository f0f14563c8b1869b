#pragma once

#include <cmath>
#include <complex>
#include <utility>

#include "ocdl/types.hpp"

/// The functions of `elementary.hpp` for complex numbers, packs of one lane: what lets a complex step run
/// through the same sweeps as real numbers do.
namespace ocdl {

template <class T>
concept ComplexScalar = std::same_as<T, std::complex<double>>;

template <ComplexScalar T>
T exp(T x) {
  return std::exp(x);
}

template <ComplexScalar T>
T expm1(T x) {
  const double a = x.real(), b = x.imag(), half = std::sin(b / 2);
  return {std::expm1(a) * std::cos(b) - 2 * half * half, std::exp(a) * std::sin(b)};
}

template <ComplexScalar T>
T log1p(T x) {
  const double a = x.real(), b = x.imag();
  return {0.5 * std::log1p(2 * a + a * a + b * b), std::atan2(b, 1 + a)};
}

template <ComplexScalar T>
T tanh(T x) {
  return std::tanh(x);
}

template <ComplexScalar T>
T sigmoid(T x) {
  return x.real() < 0 ? std::exp(x) / (1.0 + std::exp(x)) : 1.0 / (1.0 + std::exp(-x));
}

template <ComplexScalar T>
T softplus(T x) {
  return x.real() > 0 ? x + ocdl::log1p<T>(std::exp(-x)) : ocdl::log1p<T>(std::exp(x));
}

template <ComplexScalar T>
T softplus_slope(T value) {
  return 1.0 - std::exp(-value);
}

template <ComplexScalar T>
std::pair<T, T> sincos(T x) {
  return {std::sin(x), std::cos(x)};
}

}  // namespace ocdl
