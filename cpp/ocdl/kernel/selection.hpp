#pragma once

#include <cstring>

#include "ocdl/kernel/complex_functions.hpp"
#include "ocdl/kernel/dual.hpp"

/// Decisions lane by lane. They depend on the value of a number, never on its derivative: a complex
/// number is compared by its real part, a dual number without its derivative.
namespace ocdl {

/// The value of each lane.
template <std::floating_point T>
Pack<T> values(Pack<T> x) {
  return x;
}
template <ComplexScalar T>
double values(T x) {
  return x.real();
}
template <DualScalar T>
auto values(Pack<T> x) {
  return x.value;
}

/// Values, a lane each.
template <class T>
using Values = decltype(values<T>(Pack<T>{}));

/// |value| of each lane.
template <class T>
Values<T> value_size(Pack<T> x) {
  if constexpr (ComplexScalar<T>)
    return std::abs(x.real());
  else
    return detail::magnitude<decltype(value_of(T{}))>(values<T>(x));
}

/// What a comparison of values yields.
template <class T>
using LaneMask = decltype(Values<T>{} > Values<T>{});

/// Values as numbers that carry nothing along.
template <class T>
Pack<T> to_pack(Values<T> x) {
  if constexpr (DualScalar<T>)
    return {x, Values<T>{}};
  else
    return Pack<T>(x);
}

/// The lanes of `mask` that are not in `other`.
template <class Mask>
Mask exclude(Mask mask, Mask other) {
  return mask & (mask ^ other);
}

/// Whether any lane of the mask is set.
template <class Mask>
bool any_lane(Mask mask) {
  const Mask none{};
  return std::memcmp(&mask, &none, sizeof mask) != 0;
}

}  // namespace ocdl
