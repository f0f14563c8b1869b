#pragma once

#include <concepts>
#include <numbers>
#include <utility>

#include "ocdl/kernel/exponential.hpp"
#include "ocdl/kernel/trigonometric.hpp"

/// What activations are made of: branch-free functions of packs, at most 4.5 ulp off in float and in double
/// for every argument. NaN gives NaN, infinities give the limits. Notation and polynomials are
/// exponential.hpp's.
namespace ocdl {

namespace detail {

/// tanh y = y M(y^2) / N(y^2) for |y| <= ln 2 / 4: minimax fits of the quotient, 5.4e-18 off in double and
/// 6.5e-10 in float, with M(0) = N(0) and M monic.
template <std::floating_point T>
inline constexpr auto tanh_numerator = std::array{945.6982504938603210933, 105.066492062778071241};
template <>
inline constexpr auto tanh_numerator<float> = std::array{15.01790386989754490521f};
template <std::floating_point T>
inline constexpr auto tanh_denominator =
    std::array{945.6982504938603210933, 420.2992422273927515195, 15.00664734504478583952};
template <>
inline constexpr auto tanh_denominator<float> =
    std::array{15.01790386989754490521f, 6.005964271135123959558f};

}  // namespace detail

/// An argument of tanh on its half way: tanh is cut here where a kernel does something else with each half.
template <std::floating_point T>
struct ReducedTanh {
  Pack<T> y;      ///< |x| - n ln 2 / 2
  Pack<T> power;  ///< n in the low bits, the sign of x in the highest
};

/// n = round(2 |x| / ln 2). ln 2 / 2 needs no low part: the slope of tanh falls faster than the error of n ln
/// 2 / 2 grows.
template <std::floating_point T>
[[gnu::always_inline]] inline ReducedTanh<T> reduce_tanh(Pack<T> x) {
  using namespace detail;
  constexpr T half_ln2 = std::numbers::ln2_v<T> / 2, below_rounder = rounder<T> - 1;
  const Pack<T> confined = minimum<T>(broadcast<T>(log_of_power<T, -negligible<T>>), magnitude<T>(x));
  const Pack<T> rounded = fma(confined, broadcast<T>(1 / half_ln2), broadcast<T>(below_rounder));
  return {fnma(rounded - below_rounder, broadcast<T>(half_ln2), confined),
          from_bits<T>(to_bits<T>(rounded) | (to_bits<T>(x) & sign_bit<T>))};
}

/// With s = 2^n, Y = y M and A = N + Y, as e^(2 y) = (N + Y) / (N - Y),
///
///     tanh |x| = (s A - (N - Y)) / (s A + (N - Y)) = ((s - 1) / 2 A + Y) / ((s - 1) / 2 A + N).
///
/// The sign of x comes last: tanh is odd to the bit, and exact at zeros and subnormals, where s = 1.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> finish_tanh(const ReducedTanh<T>& x) {
  using namespace detail;
  const Pack<T> half_above = power_of_rounded<T>(x.power) - T(0.5);
  const Pack<T> z = x.y * x.y;
  const Pack<T> M = monic_polynomial(tanh_numerator<T>, z), N = polynomial(tanh_denominator<T>, z);
  const Pack<T> large = half_above * fma(x.y, M, N);
  const Pack<T> quotient = fma(x.y, M, large) / (large + N);
  return from_bits<T>(to_bits<T>(quotient) | (to_bits<T>(x.power) & sign_bit<T>));
}

/// tanh, the function that training spends its time in; at most 3.3 ulp off, 3.5 on machines without fused
/// multiply-adds, and never above 1.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> tanh(Pack<T> x) {
  return finish_tanh<T>(reduce_tanh<T>(x));
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

/// sigmoid(|x|) and sigmoid(-|x|) with one division.
template <std::floating_point T>
[[gnu::always_inline]] inline std::pair<Pack<T>, Pack<T>> two_sigmoids(Pack<T> x) {
  using namespace detail;
  auto [power, tail, v, above, below] =
      reduce_exponential<T>(clamp_exponential<T, underflow<T>, 0>(-magnitude<T>(x)));
  Pack<T> scaled = power * above;
  Pack<T> inverse = T(1) / (scaled + below);
  return {below * inverse, scaled * inverse * tail};
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
  return fma(s, z * polynomial(log_coefficients<T>, z), (s + s) + (positive_part + logarithm_of_power));
}

/// The slope of softplus from its value k: sigmoid(x) = 1 - e^-k.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> softplus_slope(Pack<T> k) {
  return -expm1<T>(-k);
}

}  // namespace ocdl
