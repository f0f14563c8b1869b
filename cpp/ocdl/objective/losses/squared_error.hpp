#pragma once

#include "ocdl/objective/output_tile.hpp"

namespace ocdl {

/// 1/2 |z - c|^2.
struct SquaredError {
  static constexpr LossTraits traits{"squared_error", TargetKind::numbers, "1/2 |z - c|^2"};
  static constexpr NoParameters<SquaredError> parameters{};

  template <class T>
  Pack<T> evaluate(const OutputTile<T>& tile, Index lane, T* dz) const {
    const Pack<T> half = broadcast<T>(T(0.5));
    return sum_over_outputs(tile, lane, dz, [&](Pack<T> z, Pack<T> c, Pack<T> sum) {
      const Pack<T> residual = z - c;
      return std::pair{fma(half * residual, residual, sum), residual};
    });
  }

  template <class T>
  Pack<T> gauss_newton(const OutputTile<Dual<T>>&, Index, Pack<T> curved) const {
    return curved;
  }

  static void mean(Index, double*) {}
};

}  // namespace ocdl
