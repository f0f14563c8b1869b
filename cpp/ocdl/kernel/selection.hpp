#pragma once

#include <cstring>

#include "ocdl/kernel/complex_functions.hpp"
#include "ocdl/kernel/exponential.hpp"

/// Decisions lane by lane. They look at the value of a number, never at what it carries along: a complex
/// number is judged by its real part. A scalar of another kind adds its overload of `value_size` and
/// `select`.
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

/// Sizes of values, a lane each.
template <class T>
using Sizes = decltype(value_size<T>(Pack<T>{}));

/// `chosen` in the lanes of the mask, which a comparison of sizes yields, else `otherwise`.
template <std::floating_point T, class Mask>
Pack<T> select(Mask mask, Pack<T> chosen, Pack<T> otherwise) {
  return mask ? chosen : otherwise;
}
template <ComplexScalar T>
T select(bool mask, T chosen, T otherwise) {
  return mask ? chosen : otherwise;
}

/// Whether any lane of the mask is set.
template <class Mask>
bool any_lane(Mask mask) {
  const Mask none{};
  return std::memcmp(&mask, &none, sizeof mask) != 0;
}

}  // namespace ocdl
