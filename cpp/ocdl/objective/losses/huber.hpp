#pragma once

#include "ocdl/kernel/selection.hpp"
#include "ocdl/objective/output_tile.hpp"

namespace ocdl {

/// With r = z - c of each output: 1/2 r^2 for |r| <= delta, delta (|r| - delta/2) beyond.
struct Huber {
  double delta = 1;

  static constexpr LossTraits traits{
      "huber", TargetKind::numbers,
      "with r = z - c of each output: 1/2 r^2 for |r| <= delta, delta (|r| - delta / 2) beyond"};
  static constexpr std::array<LossParameter<Huber>, 1> parameters{
      {{"delta", &Huber::delta, 0, std::numeric_limits<double>::infinity(),
        "how large a residual is before it counts linearly"}}};

  template <class T>
  Pack<T> evaluate(const OutputTile<T>& tile, Index lane, T* dz) const {
    const Pack<T> half = broadcast<T>(T(0.5)), limit = broadcast<T>(T(delta)), zero{};
    const Values<T> small = value_size<T>(limit);
    return sum_over_outputs(tile, lane, dz, [&](Pack<T> z, Pack<T> c, Pack<T> sum) {
      const Pack<T> r = z - c, size = detail::where_negative<T>(r, -r, r);
      const Pack<T> slope =
          select(value_size<T>(r) <= small, r, detail::where_negative<T>(r, zero - limit, limit));
      const Pack<T> loss = select(value_size<T>(r) <= small, half * r * r, limit * fnma(half, limit, size));
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
