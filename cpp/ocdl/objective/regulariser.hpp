#pragma once

#include "ocdl/sweep/network.hpp"

namespace ocdl {

/// R(u) = tikhonov/2 |(K, b, W, mu)|^2 + l1 |(K, b, W, mu)|_1 + time_smoothness/2 N/T sum_j |(K, b)[j+1] -
/// (K, b)[j]|^2. The time steps are not penalised: they carry the horizon.
struct Regulariser {
  double tikhonov = 0, l1 = 0, time_smoothness = 0;

  bool none() const { return tikhonov == 0 && l1 == 0 && time_smoothness == 0; }

  /// R(u), adding its gradient unless that is null. The subgradient of |x| at 0 is 0.
  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    const Controls<const T> u = net.split(controls);
    const auto g = [&](const T* values) { return gradient ? gradient + (values - controls) : nullptr; };
    Wide<T> sum{};
    const Index before_steps = net.K_size() + net.b_size(), after_steps = net.W_size() + net.outputs;
    if (tikhonov != 0) sum += add_squares(u.K, before_steps, g(u.K)) + add_squares(u.W, after_steps, g(u.W));
    if (l1 != 0) sum += add_moduli(u.K, before_steps, g(u.K)) + add_moduli(u.W, after_steps, g(u.W));
    if (time_smoothness != 0)
      sum += add_jumps(net, u.K, net.K_size(), g(u.K)) + add_jumps(net, u.b, net.b_size(), g(u.b));
    return sum;
  }

 private:
  // Each sum has a loop of its own: with or without a gradient its bits are the same.
  template <class T>
  Wide<T> add_squares(const T* values, Index size, T* gradient) const {
    Wide<T> sum{};
    for (Index n = 0; n < size; ++n) sum += Wide<T>(values[n]) * Wide<T>(values[n]);
    for (Index n = 0; gradient && n < size; ++n) gradient[n] += T(tikhonov) * values[n];
    return 0.5 * tikhonov * sum;
  }

  template <class T>
  Wide<T> add_moduli(const T* values, Index size, T* gradient) const {
    const auto sign = [](const T& x) { return double(value_of(x) > 0) - double(value_of(x) < 0); };
    Wide<T> sum{};
    for (Index n = 0; n < size; ++n) sum += sign(values[n]) * Wide<T>(values[n]);
    for (Index n = 0; gradient && n < size; ++n) gradient[n] += T(l1 * sign(values[n]));
    return l1 * sum;
  }

  template <class T>
  Wide<T> add_jumps(const Network& net, const T* values, Index size, T* gradient) const {
    const Index layer = size / net.layers;
    const double weight = time_smoothness * static_cast<double>(net.layers) / net.horizon;
    const auto jump = [&](Index n) { return values[n + layer] - values[n]; };
    Wide<T> sum{};
    for (Index n = 0; n + layer < size; ++n) sum += Wide<T>(jump(n)) * Wide<T>(jump(n));
    for (Index n = 0; gradient && n + layer < size; ++n) {
      gradient[n + layer] += T(weight) * jump(n);
      gradient[n] -= T(weight) * jump(n);
    }
    return 0.5 * weight * sum;
  }
};

}  // namespace ocdl
