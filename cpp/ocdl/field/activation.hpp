#pragma once

#include <array>
#include <cassert>
#include <limits>
#include <string_view>

#include "ocdl/kernel/complex_functions.hpp"
#include "ocdl/kernel/elementary.hpp"
#include "ocdl/kernel/linear_combination.hpp"
#include "ocdl/kernel/tile.hpp"

/// Activations sigma, applied to runs of numbers, and their slopes. Their loops are a few instructions long:
/// functions that start at a cache line keep them from lying across two, which was measured to cost a loop
/// half its speed.
namespace ocdl {

enum class Activation { tanh, sigmoid, softplus, relu, leaky_relu, sin, identity };

/// What is known of an activation beside its value and its slope, which are below.
struct ActivationTraits {
  std::string_view name;
  double steepest;      ///< least upper bound of |sigma'|
  bool kinked = false;  ///< sigma' jumps at 0
  double flat_beyond =
      std::numeric_limits<double>::infinity();  ///< |z| where sigma is flat: sigma' < 0.002 of its largest
  bool increasing = true;
};

/// In the order of the enumeration.
inline constexpr auto activations = std::to_array<ActivationTraits>({
    {"tanh", 1, false, 3.8002011672502},
    {"sigmoid", 0.25, false, 7.6004023345004},
    {"softplus", 1},
    {"relu", 1, true},
    {"leaky_relu", 1, true},
    {"sin", 1, false, std::numeric_limits<double>::infinity(), false},
    {"identity", 1},
});

constexpr const ActivationTraits& traits_of(Activation activation) {
  return activations[static_cast<std::size_t>(activation)];
}

/// The slope of leaky_relu left of 0.
inline constexpr double leak = 0.01;

/// All activations but sin tell their slope from their value, so that a backward sweep needs no
/// transcendental function of the argument; sin cannot (cos has two signs for one sin) and stores its slope
/// beside its value.
constexpr bool slope_needs_storage(Activation activation) { return activation == Activation::sin; }

namespace detail {

template <class T, class F>
void for_packs(Index size, const F& f) {
  for (Index n = 0; n < size; n += lanes<T>) f(n);
}

/// `negative` where x < 0, else `otherwise`, also for NaN. A complex number is judged by its real part.
template <class T>
Pack<T> where_negative(Pack<T> x, Pack<T> negative, Pack<T> otherwise) {
  if constexpr (lanes<T> == 1)
    return std::real(x) < 0 ? negative : otherwise;
  else
    return select(x < Pack<T>{}, negative, otherwise);
}

/// The slope of a kink at 0, computed from the value: `left` where it is not positive, else 1.
template <class T>
Pack<T> kink_slope(Pack<T> value, double left) {
  return where_negative<T>(-value, broadcast<T>(T(1)), broadcast<T>(T(left)));
}

}  // namespace detail

/// z <- sigma(z); `slope`, where the activation needs it, receives sigma'(z). then(n, value) is called with
/// each pack.
template <class T, class Then>
[[gnu::aligned(64)]] void activate(Activation activation, T* z, T* slope, Index size, Then then) {
  const auto apply = [&](auto sigma) {
    detail::for_packs<T>(size, [z, sigma, then](Index n) {
      const Pack<T> value = sigma(load(z + n));
      store<T>(z + n, value);
      then(n, value);
    });
  };
  switch (activation) {
    case Activation::tanh:
      return apply([](Pack<T> x) { return tanh<T>(x); });
    case Activation::sigmoid:
      return apply([](Pack<T> x) { return sigmoid<T>(x); });
    case Activation::softplus:
      return apply([](Pack<T> x) { return softplus<T>(x); });
    case Activation::relu:
      return apply([](Pack<T> x) { return detail::where_negative<T>(x, Pack<T>{}, x); });
    case Activation::leaky_relu:
      return apply([](Pack<T> x) { return detail::where_negative<T>(x, x * broadcast<T>(T(leak)), x); });
    case Activation::identity:
      return detail::for_packs<T>(size, [&](Index n) { then(n, load(z + n)); });
    case Activation::sin:
      return detail::for_packs<T>(size, [&](Index n) {
        const auto [sine, cosine] = sincos<T>(load(z + n));
        store<T>(z + n, sine);
        if (slope) store<T>(slope + n, cosine);
        then(n, sine);
      });
  }
}

template <class T>
void activate(Activation activation, T* z, T* slope, Index size) {
  activate(activation, z, slope, size, [](Index, const Pack<T>&) {});
}

namespace detail {

/// out = factor * sigma' * v; `IsPlane`: v is known to be one.
template <bool IsPlane, class T>
[[gnu::aligned(64)]] void multiply_by_slope(Activation activation, const T* k, const T* slope, T factor,
                                            const LinearCombination<T>& v, T* out, Index size) {
  assert(size % tile_width<T> == 0);
  const Pack<T> one = broadcast<T>(T(1)), scale = broadcast<T>(factor);
  const typename LinearCombination<T>::Reader reader(v);
  const auto apply = [&](auto slope_at) {
    for (Index n = 0; n < size; n += tile_width<T>) {
      Pack<T> sum[2];
      reader.template read<IsPlane>(n, lanes<T>, sum);
      store<T>(out + n, scale * sum[0] * slope_at(n));
      store<T>(out + n + lanes<T>, scale * sum[1] * slope_at(n + lanes<T>));
    }
  };
  switch (activation) {
    case Activation::tanh:
      return apply([&](Index n) { return fnma(load(k + n), load(k + n), one); });
    case Activation::sigmoid:
      return apply([&](Index n) { return load(k + n) * (one - load(k + n)); });
    case Activation::softplus:
      return apply([&](Index n) { return softplus_slope<T>(load(k + n)); });
    case Activation::relu:
      return apply([&](Index n) { return kink_slope<T>(load(k + n), 0); });
    case Activation::leaky_relu:
      return apply([&](Index n) { return kink_slope<T>(load(k + n), leak); });
    case Activation::identity:
      return apply([&](Index) { return one; });
    case Activation::sin:
      return apply([&](Index n) { return load(slope + n); });
  }
}

}  // namespace detail

/// out = factor * sigma' * v, with sigma' computed from the value k = sigma(z), or stored; whole tiles.
template <class T>
void multiply_by_slope(Activation activation, const T* k, const T* slope, T factor,
                       const LinearCombination<T>& v, T* out, Index size) {
  if (v.is_plane())
    detail::multiply_by_slope<true>(activation, k, slope, factor, v, out, size);
  else
    detail::multiply_by_slope<false>(activation, k, slope, factor, v, out, size);
}
template <class T>
void multiply_by_slope(Activation activation, const T* k, const T* slope, T factor, const T* v, T* out,
                       Index size) {
  multiply_by_slope(activation, k, slope, factor,
                    LinearCombination<T>(Plane<const T>(v, size / tile_width<T>, 1)), out, size);
}

/// out = sigma', computed from the value k = sigma(z), or stored.
template <class T>
void write_slope(Activation activation, const T* k, const T* slope, T* out, Index size) {
  std::fill_n(out, size, T(1));
  multiply_by_slope(activation, k, slope, T(1), out, out, size);
}

}  // namespace ocdl
