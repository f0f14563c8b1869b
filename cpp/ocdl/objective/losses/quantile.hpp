#pragma once

#include "ocdl/objective/output_tile.hpp"

namespace ocdl {

/// max(level (c - z), (level - 1) (c - z)) of each output, least where z is the quantile of that level; 1/2
/// is half the absolute error. Its slope at z = c is 0.
struct Quantile {
  double level = 0.5;

  static constexpr LossTraits traits{"quantile", TargetKind::numbers,
                                     "max(level (c - z), (level - 1) (c - z)) of each output"};
  static constexpr std::array<LossParameter<Quantile>, 1> parameters{
      {{"level", &Quantile::level, 0, 1, "the quantile that is predicted; 0.5: the median"}}};

  template <class T>
  Pack<T> evaluate(const OutputTile<T>& tile, Index lane, T* dz) const {
    const Pack<T> under = broadcast<T>(T(level)), over = broadcast<T>(T(1 - level)), zero{};
    return sum_over_outputs(tile, lane, dz, [&](Pack<T> z, Pack<T> c, Pack<T> sum) {
      const Pack<T> r = z - c;
      const Pack<T> loss = detail::where_negative<T>(r, fnma(under, r, zero), over * r);
      const Pack<T> slope =
          detail::where_negative<T>(r, zero - under, detail::where_negative<T>(-r, over, zero));
      return std::pair{sum + loss, slope};
    });
  }

  template <class T>
  Pack<T> gauss_newton(const OutputTile<Dual<T>>&, Index, Pack<T> curved) const {
    return curved;
  }

  static void mean(Index, double*) {}
};

}  // namespace ocdl
