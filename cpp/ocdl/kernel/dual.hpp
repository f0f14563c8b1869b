#pragma once

#include <utility>

#include "ocdl/kernel/elementary.hpp"
#include "ocdl/kernel/transpose.hpp"

/// Dual numbers x + x' eps with eps^2 = 0: a function of them gives its value and its derivative along x'. A
/// sweep that computes a gradient then computes the gradient's derivative as well, which is a Hessian times a
/// vector.
///
/// In memory a dual number is a pair; a pack of them is two registers, values and derivatives.
namespace ocdl {

template <std::floating_point T>
struct Dual {
  T value, derivative;

  Dual() = default;
  constexpr Dual(T value_, T derivative_ = T(0)) : value(value_), derivative(derivative_) {}

  friend constexpr Dual operator-(Dual a) { return {-a.value, -a.derivative}; }
  friend constexpr Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.derivative + b.derivative}; }
  friend constexpr Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.derivative - b.derivative}; }
  friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, ocdl::fma(a.derivative, b.value, a.value * b.derivative)};
  }
  friend Dual operator/(Dual a, Dual b) {
    const T quotient = a.value / b.value;
    return {quotient, ocdl::fnma(quotient, b.derivative, a.derivative) / b.value};
  }
  Dual& operator+=(Dual other) { return *this = *this + other; }
  Dual& operator-=(Dual other) { return *this = *this - other; }
  Dual& operator*=(Dual other) { return *this = *this * other; }
  Dual& operator/=(Dual other) { return *this = *this / other; }

  /// Equal in both parts; ordered by the value.
  friend constexpr bool operator==(Dual a, Dual b) = default;
  friend constexpr bool operator<(Dual a, Dual b) { return a.value < b.value; }
  friend constexpr bool operator>(Dual a, Dual b) { return a.value > b.value; }
  friend constexpr bool operator<=(Dual a, Dual b) { return a.value <= b.value; }
  friend constexpr bool operator>=(Dual a, Dual b) { return a.value >= b.value; }
};

template <std::floating_point T>
constexpr T value_of(Dual<T> x) {
  return x.value;
}
/// Of a kink at 0 the right side.
template <std::floating_point T>
constexpr Dual<T> abs(Dual<T> x) {
  return x.value < 0 ? -x : x;
}
template <std::floating_point T>
Dual<T> sqrt(Dual<T> x) {
  const T root = std::sqrt(x.value);
  return {root, x.derivative / (2 * root)};
}

template <std::floating_point T>
struct WideScalar<Dual<T>> {
  using type = Dual<double>;
};

template <std::floating_point T>
inline constexpr bool is_dual<Dual<T>> = true;
template <class T>
concept DualScalar = is_dual<T>;

template <std::floating_point T>
struct DualPack {
  Pack<T> value, derivative;

  friend DualPack operator-(DualPack a) { return {-a.value, -a.derivative}; }
  friend DualPack operator+(DualPack a, DualPack b) {
    return {a.value + b.value, a.derivative + b.derivative};
  }
  friend DualPack operator-(DualPack a, DualPack b) {
    return {a.value - b.value, a.derivative - b.derivative};
  }
  friend DualPack operator*(DualPack a, DualPack b) {
    return {a.value * b.value, ocdl::fma(a.derivative, b.value, a.value * b.derivative)};
  }
  friend DualPack operator/(DualPack a, DualPack b) {
    const Pack<T> quotient = a.value / b.value;
    return {quotient, ocdl::fnma(quotient, b.derivative, a.derivative) / b.value};
  }
  DualPack& operator+=(DualPack other) { return *this = *this + other; }
  DualPack& operator-=(DualPack other) { return *this = *this - other; }
  DualPack& operator*=(DualPack other) { return *this = *this * other; }

  friend BitPack<T> operator==(DualPack a, DualPack b) {
    return (a.value == b.value) & (a.derivative == b.derivative);
  }
  friend BitPack<T> operator<(DualPack a, DualPack b) { return a.value < b.value; }
  friend BitPack<T> operator>(DualPack a, DualPack b) { return a.value > b.value; }
};

template <class Mask, std::floating_point T>
inline DualPack<T> select(Mask mask, DualPack<T> a, DualPack<T> b) {
  return {select(mask, a.value, b.value), select(mask, a.derivative, b.derivative)};
}

/// Dual numbers, alone or in packs.
template <class D>
concept DualArithmetic = requires(D x) {
  x.value;
  x.derivative;
};

template <DualArithmetic D>
[[gnu::always_inline]] inline D fma(D a, D b, D c) {
  const auto derivative = fma(a.value, b.derivative, c.derivative);
  return {fma(a.value, b.value, c.value), fma(a.derivative, b.value, derivative)};
}
template <DualArithmetic D>
[[gnu::always_inline]] inline D fnma(D a, D b, D c) {
  const auto derivative = fnma(a.value, b.derivative, c.derivative);
  return {fnma(a.value, b.value, c.value), fnma(a.derivative, b.value, derivative)};
}
template <DualArithmetic D>
[[gnu::always_inline]] inline D fms(D a, D b, D c) {
  return fma(a, b, -c);
}

namespace detail {
template <DualScalar T>
using RealOf = decltype(T::value);

template <std::floating_point T>
struct PackOf<Dual<T>> {
  using type = DualPack<T>;
};

/// Pairs (value, derivative) of two registers to values and derivatives, and back: lanes change places within
/// a pack, always in the same way.
template <std::floating_point T>
inline void exchange_parts(Pack<T>& a, Pack<T>& b) {
  exchange<1>(a, b, std::make_integer_sequence<int, lanes<T>>());
}
}  // namespace detail

template <DualScalar T>
inline Pack<T> load(const T* from) {
  using Real = detail::RealOf<T>;
  const Real* numbers = reinterpret_cast<const Real*>(from);
  Pack<Real> value = load(numbers), derivative = load(numbers + lanes<Real>);
  detail::exchange_parts<Real>(value, derivative);
  return {value, derivative};
}

template <DualScalar T>
inline void store(T* to, Pack<T> pack) {
  using Real = detail::RealOf<T>;
  Real* numbers = reinterpret_cast<Real*>(to);
  detail::exchange_parts<Real>(pack.value, pack.derivative);
  store(numbers, pack.value);
  store(numbers + lanes<Real>, pack.derivative);
}

template <DualScalar T>
inline Pack<T> broadcast(std::type_identity_t<T> x) {
  using Real = detail::RealOf<T>;
  return {broadcast<Real>(x.value), broadcast<Real>(x.derivative)};
}

template <DualScalar T>
inline T sum_lanes(Pack<T> pack) {
  using Real = detail::RealOf<T>;
  return {sum_lanes<Real>(pack.value), sum_lanes<Real>(pack.derivative)};
}

/// The functions of `elementary.hpp`; each derivative keeps its digits where the value runs into a limit.
template <DualScalar T>
inline Pack<T> exp(Pack<T> x) {
  const auto power = exp<detail::RealOf<T>>(x.value);
  return {power, power * x.derivative};
}

template <DualScalar T>
inline Pack<T> expm1(Pack<T> x) {
  using Real = detail::RealOf<T>;
  return {expm1<Real>(x.value), exp<Real>(x.value) * x.derivative};
}

template <DualScalar T>
inline Pack<T> log1p(Pack<T> x) {
  using Real = detail::RealOf<T>;
  return {log1p<Real>(x.value), x.derivative / (Real(1) + x.value)};
}

template <DualScalar T>
inline Pack<T> tanh(Pack<T> x) {
  using Real = detail::RealOf<T>;
  const Pack<Real> value = tanh<Real>(x.value);
  return {value, fnma(value, value, broadcast<Real>(1)) * x.derivative};
}

template <DualScalar T>
inline Pack<T> sigmoid(Pack<T> x) {
  using Real = detail::RealOf<T>;
  const Pack<Real> value = sigmoid<Real>(x.value);
  return {value, value * sigmoid<Real>(-x.value) * x.derivative};
}

template <DualScalar T>
inline Pack<T> softplus(Pack<T> x) {
  using Real = detail::RealOf<T>;
  return {softplus<Real>(x.value), sigmoid<Real>(x.value) * x.derivative};
}

template <DualScalar T>
inline Pack<T> softplus_slope(Pack<T> k) {
  using Real = detail::RealOf<T>;
  return {softplus_slope<Real>(k.value), exp<Real>(-k.value) * k.derivative};
}

template <DualScalar T>
inline std::pair<Pack<T>, Pack<T>> sincos(Pack<T> x) {
  const auto [sine, cosine] = sincos<detail::RealOf<T>>(x.value);
  return {{sine, cosine * x.derivative}, {cosine, -sine * x.derivative}};
}

}  // namespace ocdl
