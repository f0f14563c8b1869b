#pragma once

#include "ocdl/objective/output_tile.hpp"

namespace ocdl {

/// exp(z) - c z + (c log c - c) of each output, the negative logarithm of Poisson's probability of c >= 0
/// with the mean exp(z), up to a function of c: least, and 0, at exp(z) = c.
struct Poisson {
  static constexpr LossTraits traits{
      "poisson", TargetKind::numbers,
      "exp(z) - c z + c log c - c of each output, with the mean exp(z) and c >= 0", 0};
  static constexpr NoParameters<Poisson> parameters{};

  /// Where exp(z) is not much larger than c, with d = z - log c, the loss is c (exp(d) - 1 - d): so its terms
  /// do not cancel.
  template <class T>
  Pack<T> evaluate(const OutputTile<T>& tile, Index lane, T* dz) const {
    const Pack<T> one = broadcast<T>(T(1)), zero{};
    return sum_over_outputs(tile, lane, dz, [&](Pack<T> z, Pack<T> c, Pack<T> sum) {
      const Pack<T> power = exp<T>(z), distance = z - log_lanes<T>(c);
      const Pack<T> far = fnma(c, distance, power - c);
      const Pack<T> close = c * (expm1<T>(distance) - distance);
      const Pack<T> beyond_one = one - distance;
      const Pack<T> loss = select(c == zero, power, detail::where_negative<T>(beyond_one, far, close));
      return std::pair{sum + loss, power - c};
    });
  }

  template <class T>
  Pack<T> gauss_newton(const OutputTile<Dual<T>>&, Index, Pack<T> curved) const {
    return curved;
  }

  static void mean(Index outputs, double* row) {
    std::transform(row, row + outputs, row, [](double z) { return std::exp(z); });
  }

 private:
  /// log c of targets, which is a constant of the derivatives; 0 for c = 0, where it is not used.
  template <class T>
  static Pack<T> log_lanes(Pack<T> c) {
    T lane[lanes<T>];
    store<T>(lane, c);
    for (T& x : lane) x = value_of(x) > 0 ? T(std::log(value_of(x))) : T(0);
    return load<T>(lane);
  }
};

}  // namespace ocdl
