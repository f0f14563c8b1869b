#pragma once

#include <concepts>
#include <numbers>

#include "ocdl/kernel/exponential.hpp"
#include "ocdl/kernel/trigonometric.hpp"

/// What activations are made of: branch-free functions of packs, at most 4.5 ulp off in float and in double
/// for every argument. NaN gives NaN, infinities give the limits. Notation and polynomials are
/// exponential.hpp's.
namespace ocdl {

/// tanh, the function that training spends its time in; odd to the bit, exact at zeros and subnormals.
///
/// With n = round(2 x / ln 2), y = x - n ln 2 / 2 and s = 2^n, as e^(2 y) = (b + y) / (b - y), b = y coth y,
///
///     tanh x = (s (b + y) - (b - y)) / (s (b + y) + (b - y)),     b = 1 + y^2 q(y^2).
///
/// Sorted by powers of y neither part cancels; s = 1 leaves 2 y / 2 b. ln 2 / 2 needs no low part: the slope
/// of tanh falls faster than the error of n ln 2 / 2 grows.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> tanh(Pack<T> x) {
  using namespace detail;
  constexpr T half_ln2 = std::numbers::ln2_v<T> / 2;
  x = clamp_exponential<T, negligible<T>, -negligible<T>>(x);
  Pack<T> rounded = x * (1 / half_ln2) + rounder<T>;
  Pack<T> y = x - (rounded - rounder<T>)*half_ln2;
  Pack<T> s = power_of_rounded<T>(rounded);
  Pack<T> yq = y * polynomial(coth_coefficients<T>, y * y);
  Pack<T> difference = T(1) - s;  // in this order +0 for s = 1: subtracting it keeps the sign of y = -0
  Pack<T> sum = T(1) + s;
  Pack<T> numerator = y * (sum - difference * yq) - difference;
  Pack<T> denominator = y * (sum * yq - difference) + sum;
  return numerator / denominator;
}

/// 1 / (1 + e^-x) = e^x / (1 + e^x), underflowing gradually to zero.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> sigmoid(Pack<T> x) {
  using namespace detail;
  auto [power, tail, v, above, below] =
      reduce_exponential<T>(clamp_exponential<T, underflow<T>, -negligible<T>>(x));
  Pack<T> scaled = power * above;
  return scaled / (scaled + below) * tail;
}

/// log(1 + e^x) = max(x, 0) + log(1 + E),  E = e^-|x|.
///
/// log(1 + E) = j ln 2 + 2 s + s^3 R(s^2) with s = (1 + E - 2^j) / (1 + E + 2^j), where j = 1 for E > sqrt 2
/// - 1, else 0. With E = scaled / below, s is the only division.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> softplus(Pack<T> x) {
  using namespace detail;
  Pack<T> decay = clamp_exponential<T, underflow<T>, 0>(-magnitude<T>(x));
  auto [power, tail, v, above, below] = reduce_exponential<T>(decay);
  Pack<T> scaled = power * above;
  BitPack<T> near_one = scaled > below * (std::numbers::sqrt2_v<T> - 1);
  Pack<T> excess = near_one ? below : Pack<T>{};
  Pack<T> s = (scaled - excess) / ((scaled + (below + below)) + excess) * tail;
  Pack<T> z = s * s;
  Pack<T> positive_part = x > T(0) ? x : Pack<T>{};
  Pack<T> logarithm_of_power = near_one ? broadcast<T>(std::numbers::ln2_v<T>) : Pack<T>{};
  return s * (z * polynomial(log_coefficients<T>, z)) + ((s + s) + (positive_part + logarithm_of_power));
}

/// The slope of softplus from its value k: sigmoid(x) = 1 - e^-k.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> softplus_slope(Pack<T> k) {
  return -expm1<T>(-k);
}

}  // namespace ocdl
