#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ocdl/types.hpp"

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/// A pack is one vector register: `lanes<T>` numbers that every operation treats alike.
///
/// Packs of float and double are the compiler's own vector types (GCC and Clang, every architecture), so
/// `+ - * /`, comparisons and `mask ? a : b` work lane by lane and compile to single instructions. Every
/// other scalar, std::complex above all, is a pack of one lane: the same kernel source then runs on it.
namespace ocdl {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

namespace detail {
template <class T>
struct PackOf {
  using type = T;
};
template <std::floating_point T>
struct PackOf<T> {
  typedef T type __attribute__((vector_size(vector_bytes)));
};
template <class T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using type = std::int32_t;
};
template <>
struct BitsOf<double> {
  using type = std::int64_t;
};
}  // namespace detail

template <class T>
using Pack = typename detail::PackOf<T>::type;

template <class T>
inline constexpr int lanes = sizeof(Pack<T>) / sizeof(T);

/// Integers as wide as T, lane by lane: what a comparison of packs yields and what holds their bits.
template <std::floating_point T>
using Bits = typename detail::BitsOf<T>::type;
template <std::floating_point T>
struct BitPackOf {
  typedef Bits<T> type __attribute__((vector_size(vector_bytes)));
};
template <std::floating_point T>
using BitPack = typename BitPackOf<T>::type;

/// Whether a scalar is a dual number, see dual.hpp; it has packs and functions of its own.
template <class T>
inline constexpr bool is_dual = false;
template <class T>
concept PlainScalar = !is_dual<T>;

template <PlainScalar T>
inline Pack<T> load(const T* from) {
  Pack<T> pack;
  std::memcpy(&pack, from, sizeof pack);
  return pack;
}

template <PlainScalar T>
inline void store(T* to, Pack<T> pack) {
  std::memcpy(to, &pack, sizeof pack);
}

template <PlainScalar T>
inline Pack<T> broadcast(std::type_identity_t<T> value) {
  if constexpr (lanes<T> == 1) {
    return value;
  } else {
    return value - Pack<T>{};  // x - 0 keeps the sign of zero, which 0 + x would not
  }
}

/// a where the mask says so, else b.
template <class Mask, class P>
inline P select(Mask mask, P a, P b) {
  return mask ? a : b;
}

/// The smaller one, and b where one is NaN. GCC does not see that this is one instruction of AVX-512.
template <std::floating_point T>
inline Pack<T> minimum(Pack<T> a, Pack<T> b) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, double>)
    return Pack<T>(_mm512_min_pd(__m512d(a), __m512d(b)));
  else
    return Pack<T>(_mm512_min_ps(__m512(a), __m512(b)));
#else
  return a < b ? a : b;
#endif
}

/// fma(a, b, c) = a b + c, fnma(a, b, c) = c - a b and fms(a, b, c) = a b - c of numbers and of packs,
/// rounded once where the instruction set has fused multiply-adds, else twice. Compilers must not fuse
/// nothing themselves: so the source alone determines the bits on each instruction set.
template <class P>
[[gnu::always_inline]] inline P fma(P a, P b, P c) {
  return a * b + c;
}
template <class P>
[[gnu::always_inline]] inline P fnma(P a, P b, P c) {
  return c - a * b;
}
template <class P>
[[gnu::always_inline]] inline P fms(P a, P b, P c) {
  return a * b - c;
}

#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
template <std::floating_point T>
[[gnu::always_inline]] inline T fma(T a, T b, T c) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}
template <std::floating_point T>
[[gnu::always_inline]] inline T fnma(T a, T b, T c) {
  return fma(-a, b, c);
}
template <std::floating_point T>
[[gnu::always_inline]] inline T fms(T a, T b, T c) {
  return fma(a, b, -c);
}
#endif

#if defined(__AVX512F__)
#define OCDL_FUSED_PACKS(name, instruction)                                                         \
  [[gnu::always_inline]] inline Pack<double> name(Pack<double> a, Pack<double> b, Pack<double> c) { \
    return Pack<double>(_mm512_##instruction##_pd(__m512d(a), __m512d(b), __m512d(c)));             \
  }                                                                                                 \
  [[gnu::always_inline]] inline Pack<float> name(Pack<float> a, Pack<float> b, Pack<float> c) {     \
    return Pack<float>(_mm512_##instruction##_ps(__m512(a), __m512(b), __m512(c)));                 \
  }
#elif defined(__FMA__)
#define OCDL_FUSED_PACKS(name, instruction)                                                         \
  [[gnu::always_inline]] inline Pack<double> name(Pack<double> a, Pack<double> b, Pack<double> c) { \
    return Pack<double>(_mm256_##instruction##_pd(__m256d(a), __m256d(b), __m256d(c)));             \
  }                                                                                                 \
  [[gnu::always_inline]] inline Pack<float> name(Pack<float> a, Pack<float> b, Pack<float> c) {     \
    return Pack<float>(_mm256_##instruction##_ps(__m256(a), __m256(b), __m256(c)));                 \
  }
#endif
#if defined(OCDL_FUSED_PACKS)
OCDL_FUSED_PACKS(fma, fmadd)
OCDL_FUSED_PACKS(fnma, fnmadd)
OCDL_FUSED_PACKS(fms, fmsub)
#undef OCDL_FUSED_PACKS
#elif defined(__aarch64__)
[[gnu::always_inline]] inline Pack<double> fma(Pack<double> a, Pack<double> b, Pack<double> c) {
  return Pack<double>(vfmaq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
}
[[gnu::always_inline]] inline Pack<float> fma(Pack<float> a, Pack<float> b, Pack<float> c) {
  return Pack<float>(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
}
[[gnu::always_inline]] inline Pack<double> fnma(Pack<double> a, Pack<double> b, Pack<double> c) {
  return Pack<double>(vfmsq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
}
[[gnu::always_inline]] inline Pack<float> fnma(Pack<float> a, Pack<float> b, Pack<float> c) {
  return Pack<float>(vfmsq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
}
[[gnu::always_inline]] inline Pack<double> fms(Pack<double> a, Pack<double> b, Pack<double> c) {
  return fma(a, b, -c);
}
[[gnu::always_inline]] inline Pack<float> fms(Pack<float> a, Pack<float> b, Pack<float> c) {
  return fma(a, b, -c);
}
#endif

/// sum += a b, fused as `fma`.
template <class P>
[[gnu::always_inline]] inline void multiply_add(P& sum, P a, P b) {
  sum = fma(a, b, sum);
}

/// The same bits, read as integers or as numbers.
template <std::floating_point T>
inline BitPack<T> to_bits(Pack<T> pack) {
  return std::bit_cast<BitPack<T>>(pack);
}
template <std::floating_point T>
inline Pack<T> from_bits(BitPack<T> bits) {
  return std::bit_cast<Pack<T>>(bits);
}

/// Sum of the lanes, always in the same order.
template <PlainScalar T>
inline T sum_lanes(Pack<T> pack) {
  T lane[lanes<T>];
  std::memcpy(lane, &pack, sizeof pack);
  for (int width = lanes<T> / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
}

}  // namespace ocdl
