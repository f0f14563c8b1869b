#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <numbers>

#include "ocdl/kernel/exponential.hpp"

/// Sine and cosine of packs, together: at most 4.5 ulp off for every finite argument, near their zeros as
/// well.
namespace ocdl {

template <std::floating_point T>
struct SineCosine {
  Pack<T> sine, cosine;
};

namespace detail {

/// pi / 2 as a sum of parts, all but the last so short that n times a part is exact for |n| <= limit * 2 /
/// pi. The subtractions x - n pi/2 then round relative to what they leave, however close x lies to a multiple
/// of pi/2.
template <std::floating_point T>
struct QuarterTurn {
  static constexpr T limit = 1e5;
  static constexpr std::array parts{0x1.921fb54440000p+0, 0x1.68c234c4c0000p-39, 0x1.98a2e03707345p-77};
};
template <>
struct QuarterTurn<float> {
  static constexpr float limit = 1e3f;
  static constexpr std::array parts{0x1.9218p+0f, 0x1.ed5p-14f, 0x1.10bp-30f, 0x1.184698p-44f};
};

/// (sin r - r) / r^3  and  (cos r - 1 + r^2 / 2) / r^4  as polynomials of r^2,  |r| <= pi / 4.
template <std::floating_point T>
inline constexpr auto sine_coefficients =
    std::array{-0.16666666666666632027, 0.0083333333333224136344,  -0.00019841269829807805537,
               2.755731369191743883e-6, -2.5050758115196697122e-8, 1.5896795649952041259e-10};
template <>
inline constexpr auto sine_coefficients<float> =
    std::array{-0.166666549367f, 0.00833217768684f, -0.000195172347402f};
template <std::floating_point T>
inline constexpr auto cosine_coefficients =
    std::array{0.041666666666666599476,   -0.0013888888888874123919, 0.000024801587289482176806,
               -2.7557314352329998963e-7, 2.0875723272793502618e-9,  -1.1359647778739931844e-11};
template <>
inline constexpr auto cosine_coefficients<float> =
    std::array{0.0416666468546f, -0.00138873669102f, 0.0000244383794972f};

/// Large and non-finite lanes, one by one: training does not come here.
template <std::floating_point T>
[[gnu::noinline, gnu::cold]] SineCosine<T> with_large_lanes(Pack<T> x, SineCosine<T> small) {
  for (int lane = 0; lane < lanes<T>; ++lane)
    if (!(std::abs(x[lane]) <= QuarterTurn<T>::limit)) {
      small.sine[lane] = std::sin(x[lane]);
      small.cosine[lane] = std::cos(x[lane]);
    }
  return small;
}

template <std::floating_point T>
inline bool any(BitPack<T> mask) {
  Bits<T> any = 0;
  for (int lane = 0; lane < lanes<T>; ++lane) any |= mask[lane];
  return any != 0;
}

}  // namespace detail

/// With n = round(|x| 2 / pi) and r = |x| - n pi/2, the lowest two bits of n tell which of +-sin r, +-cos r
/// are the sine and the cosine of |x|. Each lane depends on its own x only; beyond QuarterTurn::limit it is
/// std::sin's.
template <std::floating_point T>
[[gnu::always_inline]] inline SineCosine<T> sincos(Pack<T> x) {
  using namespace detail;
  constexpr T shift = T(1.5 * power_of_two(fraction_bits<T>));  // adding it rounds; n is in the low bits
  constexpr int sign_shift = 8 * sizeof(T) - 2;                 // from bit 1 of n to the sign
  Pack<T> size = magnitude<T>(x);
  Pack<T> rounded = fma(size, broadcast<T>(T(2 / std::numbers::pi)), broadcast<T>(shift));
  Pack<T> r = size;
  for (T part : QuarterTurn<T>::parts) r = fnma(rounded - shift, broadcast<T>(part), r);
  Pack<T> z = r * r;
  Pack<T> sine = fma(r * z, polynomial(sine_coefficients<T>, z), r);
  Pack<T> cosine = fnma(z, polynomial(cosine_coefficients<T>, z), broadcast<T>(T(0.5)));
  cosine = fnma(z, cosine, broadcast<T>(T(1)));

  BitPack<T> n = to_bits<T>(rounded);
  BitPack<T> swapped = (to_bits<T>(sine) ^ to_bits<T>(cosine)) & -(n & 1);
  BitPack<T> sine_sign = ((n & 2) << sign_shift) ^ to_bits<T>(x) ^ to_bits<T>(size);
  BitPack<T> cosine_sign = ((n ^ (n << 1)) & 2) << sign_shift;
  SineCosine<T> result{.sine = from_bits<T>(to_bits<T>(sine) ^ swapped ^ sine_sign),
                       .cosine = from_bits<T>(to_bits<T>(cosine) ^ swapped ^ cosine_sign)};
  if (any<T>(!(size <= QuarterTurn<T>::limit))) [[unlikely]]
    return with_large_lanes<T>(x, result);
  return result;
}

}  // namespace ocdl
