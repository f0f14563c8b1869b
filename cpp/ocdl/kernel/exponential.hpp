#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <limits>
#include <numbers>
#include <type_traits>

#include "ocdl/kernel/pack.hpp"

/// exp, expm1 and log1p of packs: branch-free, at most 4.5 ulp off in float and in double for every argument.
///
/// All exponentials share one reduction and one polynomial. With n = round(x / ln 2), v = x - n ln 2, h = v /
/// 2,
///
///     e^v = (h coth h + h) / (h coth h - h),     h coth h = 1 + h^2 q(h^2),     |h| <= ln 2 / 4,
///
/// and h coth h is even and so smooth that a short q reaches working precision: the one division buys half of
/// the multiplications of a polynomial for e^v itself.
///
/// Polynomials are minimax fits (Remez exchange in 50 digits) over the reduced interval, weighted so that the
/// relative error of the function they stand in is levelled.
namespace ocdl {

namespace detail {

template <std::floating_point T>
inline constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
template <std::floating_point T>
inline constexpr int exponent_bias = std::numeric_limits<T>::max_exponent - 1;
template <std::floating_point T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

constexpr double power_of_two(int exponent) {
  double power = 1;
  for (; exponent > 0; --exponent) power *= 2;
  for (; exponent < 0; ++exponent) power /= 2;
  return power;
}

/// Adding it rounds to an integer n and leaves n + exponent_bias in the low bits of the sum.
template <std::floating_point T>
inline constexpr T rounder = T(1.5 * power_of_two(fraction_bits<T>) + exponent_bias<T>);

/// 2^n from rounder + n, for n within the exponents of normal numbers.
template <std::floating_point T>
inline Pack<T> power_of_rounded(Pack<T> rounded) {
  return from_bits<T>(to_bits<T>(rounded) << fraction_bits<T>);
}

template <std::floating_point T>
inline constexpr Bits<T> sign_bit = std::numeric_limits<Bits<T>>::min();

template <std::floating_point T>
inline Pack<T> magnitude(Pack<T> x) {
  return from_bits<T>(to_bits<T>(x) & std::numeric_limits<Bits<T>>::max());
}

/// c[0] + c[1] z + c[2] z^2 + ...
template <std::floating_point T, std::size_t terms>
inline Pack<T> polynomial(const std::array<T, terms>& c, Pack<T> z) {
  Pack<T> sum = fma(broadcast<T>(c[terms - 1]), z, broadcast<T>(c[terms - 2]));
  for (std::size_t i = terms - 2; i-- > 0;) sum = fma(sum, z, broadcast<T>(c[i]));
  return sum;
}

/// c[0] + c[1] z + ... + z^terms.
template <std::floating_point T, std::size_t terms>
inline Pack<T> monic_polynomial(const std::array<T, terms>& c, Pack<T> z) {
  Pack<T> sum = z + c[terms - 1];
  for (std::size_t i = terms - 1; i-- > 0;) sum = fma(sum, z, broadcast<T>(c[i]));
  return sum;
}

/// The x at which e^x = 2^n. Neither const nor, being `used`, foldable by link-time optimisation: GCC makes
/// `bound < x ? bound : x` one min instruction only where it cannot see the number, and compares and blends
/// otherwise, which costs tanh a sixth of its time.
template <std::floating_point T, int n>
[[gnu::used]] inline T log_of_power = n * std::numbers::ln2_v<T>;

/// x confined to 2^lowest <= e^x <= 2^highest; NaN stays NaN.
template <std::floating_point T, int lowest, int highest>
inline Pack<T> clamp_exponential(Pack<T> x) {
  Pack<T> low = broadcast<T>(log_of_power<T, lowest>);
  Pack<T> high = broadcast<T>(log_of_power<T, highest>);
  x = high < x ? high : x;
  return low > x ? low : x;
}

/// The n at which 2^n has become infinite, has become zero, is lost beside 1.
template <std::floating_point T>
inline constexpr int overflow = exponent_bias<T> + 2;
template <std::floating_point T>
inline constexpr int underflow = -exponent_bias<T> - std::numeric_limits<T>::digits - 2;
template <std::floating_point T>
inline constexpr int negligible = -std::numeric_limits<T>::digits - 2;

/// ln 2 = high + low, where high times any exponent is exact.
template <std::floating_point T>
inline constexpr T ln2_high = std::is_same_v<T, float> ? T(0x1.62e4p-1) : T(0x1.62e42fefa2p-1);
template <std::floating_point T>
inline constexpr T ln2_low = std::is_same_v<T, float> ? T(0x1.7f7d1cp-20) : T(0x1.9ef35793c7673p-41);

/// q(z) = (sqrt(z) coth sqrt(z) - 1) / z,  0 <= z <= (ln 2 / 4)^2.
template <std::floating_point T>
inline constexpr auto coth_coefficients =
    std::array{0.3333333333333320469, -0.022222222221614032581, 0.0021164020230390919949,
               -0.00021163395584429492099, 0.000021187369365764925732};
template <>
inline constexpr auto coth_coefficients<float> = std::array{0.33333251678f, -0.022134109522f};

/// e^x = power * tail * above / below,  above = h coth h + h,  below = h coth h - h,  e^v = 1 + v / below.
/// 2^n takes two factors where n leaves the exponents of normal numbers; else tail is 1.
template <std::floating_point T>
struct ReducedExponential {
  Pack<T> power, tail, v, above, below;
};

/// For underflow <= x / ln 2 <= overflow.
template <std::floating_point T>
[[gnu::always_inline]] inline ReducedExponential<T> reduce_exponential(Pack<T> x) {
  const Pack<T> log2_e = broadcast<T>(std::numbers::log2e_v<T>), to_integer = broadcast<T>(rounder<T>);
  constexpr int extreme = exponent_bias<T> - std::numeric_limits<T>::digits;
  Pack<T> rounded = fma(x, log2_e, to_integer);
  Pack<T> rounded_normal = fma(clamp_exponential<T, -extreme, extreme>(x), log2_e, to_integer);
  Pack<T> n = rounded - rounder<T>;
  Pack<T> v = fnma(n, broadcast<T>(ln2_low<T>), fnma(n, broadcast<T>(ln2_high<T>), x));
  Pack<T> h = v * T(0.5);
  Pack<T> z = h * h;
  Pack<T> q = polynomial(coth_coefficients<T>, z);
  return {.power = power_of_rounded<T>(rounded_normal),
          .tail = power_of_rounded<T>(rounded - (rounded_normal - rounder<T>)),
          .v = v,
          .above = T(1) + fma(z, q, h),
          .below = T(1) + fms(z, q, h)};
}

/// R(z) = (log((1 + s) / (1 - s)) - 2 s) / s^3,  z = s^2,  |s| <= (sqrt 2 - 1) / (sqrt 2 + 1).
template <std::floating_point T>
inline constexpr auto log_coefficients =
    std::array{0.66666666666667344218, 0.39999999999414607504, 0.28571428742404935681, 0.22222198571259172501,
               0.18183564433471512584, 0.15314047628253902873, 0.14795980652907640361};
template <>
inline constexpr auto log_coefficients<float> = std::array{0.66666776388f, 0.39977540659f, 0.29871754590f};

}  // namespace detail

/// e^x; overflows to infinity and underflows gradually to zero.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> exp(Pack<T> x) {
  using namespace detail;
  auto [power, tail, v, above, below] =
      reduce_exponential<T>(clamp_exponential<T, underflow<T>, overflow<T>>(x));
  return (T(1) + v / below) * power * tail;
}

/// e^x - 1, as accurate for tiny x as for others.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> expm1(Pack<T> x) {
  using namespace detail;
  auto [power, tail, v, above, below] =
      reduce_exponential<T>(clamp_exponential<T, negligible<T>, overflow<T>>(x));
  return fms(power, v / below, T(1) - power) * tail;  // subtracting +0 keeps the sign of v = -0
}

/// log(1 + x): minus infinity at -1, NaN below.
///
/// With 1 + x = 2^j (1 + f), 1 + f in [sqrt 1/2, sqrt 2), and s = f / (2 + f),
///
///     log(1 + x) = j ln 2 + f - s (f - s^2 R(s^2)),     f = 2^-j x - (1 - 2^-j):
///
/// f is rounded once, so nothing is lost for small x. Huge x are divided by 2^64 first, which keeps 2^-j
/// normal.
template <std::floating_point T>
[[gnu::always_inline]] inline Pack<T> log1p(Pack<T> x) {
  using namespace detail;
  using Unsigned = std::make_unsigned_t<Bits<T>>;
  typedef Unsigned UnsignedPack __attribute__((vector_size(vector_bytes)));
  constexpr auto one = std::bit_cast<Unsigned>(T(1));
  constexpr auto root_half = std::bit_cast<Unsigned>(std::numbers::sqrt2_v<T> / 2);
  constexpr auto exponent_field = std::bit_cast<Unsigned>(infinity<T>);
  constexpr T integers = T(power_of_two(fraction_bits<T>));  // the lowest bit counts ones
  constexpr T huge = T(power_of_two(exponent_bias<T> - 7));
  constexpr int huge_shift = 64;

  BitPack<T> is_huge = x > huge;
  Pack<T> scaled = is_huge ? x * T(power_of_two(-huge_shift)) : x;
  UnsignedPack power = std::bit_cast<UnsignedPack>(T(1) + scaled);
  power = (power + (one - root_half)) & exponent_field;  // the bits of 2^j
  Pack<T> inverse_power = std::bit_cast<Pack<T>>(2 * one - power);
  UnsignedPack biased_j = (power >> fraction_bits<T>) | std::bit_cast<Unsigned>(integers);
  Pack<T> minus_j = (integers + exponent_bias<T>)-std::bit_cast<Pack<T>>(biased_j);
  minus_j = is_huge ? minus_j - T(huge_shift) : minus_j;

  Pack<T> f = fms(scaled, inverse_power, T(1) - inverse_power);
  Pack<T> s = f / (T(2) + f);
  Pack<T> z = s * s;
  Pack<T> mantissa_log = fnma(s, fnma(z, polynomial(log_coefficients<T>, z), f), f);
  Pack<T> result = fnma(minus_j, broadcast<T>(ln2_low<T>), mantissa_log);
  result = fnma(minus_j, broadcast<T>(ln2_high<T>), result);
  result = x == infinity<T> ? x : result;
  result = x == T(-1) ? broadcast<T>(-infinity<T>) : result;
  return x < T(-1) ? broadcast<T>(std::numeric_limits<T>::quiet_NaN()) : result;
}

}  // namespace ocdl
