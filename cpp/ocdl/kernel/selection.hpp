#pragma once

#include <cstring>

#include "ocdl/kernel/complex_functions.hpp"
#include "ocdl/kernel/dual.hpp"

/// Decisions lane by lane. They look at the value of a number, never at what it carries along: a complex
/// number is judged by its real part, a dual number without its derivative.
namespace ocdl {

/// |value| of each lane.
template <std::floating_point T>
Pack<T> value_size(Pack<T> x) {
  return detail::magnitude<T>(x);
}
template <ComplexScalar T>
double value_size(T x) {
  return std::abs(x.real());
}
template <DualScalar T>
auto value_size(Pack<T> x) {
  return value_size<detail::RealOf<T>>(x.value);
}

/// Sizes of values, a lane each.
template <class T>
using Sizes = decltype(value_size<T>(Pack<T>{}));

/// Whether any lane of the mask is set.
template <class Mask>
bool any_lane(Mask mask) {
  const Mask none{};
  return std::memcmp(&mask, &none, sizeof mask) != 0;
}

}  // namespace ocdl
