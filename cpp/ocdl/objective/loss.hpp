#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ocdl/objective/losses/cross_entropy.hpp"
#include "ocdl/objective/losses/huber.hpp"
#include "ocdl/objective/losses/poisson.hpp"
#include "ocdl/objective/losses/quantile.hpp"
#include "ocdl/objective/losses/squared.hpp"
#include "ocdl/objective/losses/squared_error.hpp"

namespace ocdl {

/// All losses: a row each.
using Loss = std::variant<Squared,       //
                          CrossEntropy,  //
                          SquaredError,  //
                          Huber,         //
                          Quantile,      //
                          Poisson>;

/// f(loss) for every loss with its default parameters.
template <class F, std::size_t... Row>
void for_each_loss(const F& f, std::index_sequence<Row...>) {
  (f(std::variant_alternative_t<Row, Loss>{}), ...);
}
template <class F>
void for_each_loss(const F& f) {
  for_each_loss(f, std::make_index_sequence<std::variant_size_v<Loss>>());
}

inline const LossTraits& traits_of(const Loss& loss) {
  return std::visit([](const auto& record) -> const LossTraits& { return record.traits; }, loss);
}

/// How many numbers the mean of a row of outputs has: classes, or one for each output.
inline Index mean_size(const Loss& loss, Index outputs) {
  return traits_of(loss).targets == TargetKind::classes ? std::max<Index>(outputs, 2) : outputs;
}

/// What a row of outputs stands for, in place: probabilities of the classes, or predicted numbers.
inline void mean_of(const Loss& loss, Index outputs, double* row) {
  std::visit([&](const auto& record) { record.mean(outputs, row); }, loss);
}

namespace detail {

/// 0, but NaN for a sample with an output that is not finite: it goes into the loss and into dz, which may be
/// flat there and would hide the overflow.
template <class T>
[[gnu::always_inline]] inline Pack<T> marked_overflow(const OutputTile<T>& tile, Index lane, T* dz) {
  Pack<T> mark{};
  for (Index o = 0; o < tile.outputs; ++o) {
    const Pack<T> z = load(tile.z + o * tile_width<T> + lane);
    mark += z - z;
  }
  for (Index o = 0; dz && o < tile.outputs; ++o) {
    T* gradient = dz + o * tile_width<T> + lane;
    store<T>(gradient, select(mark == mark, load(gradient), mark));
  }
  return mark;
}

}  // namespace detail

/// The weighted loss of the tile's samples, and dz = d loss / dz unless dz is null. `record` is one of the
/// losses.
template <class T, class Record>
Wide<T> tile_loss(const Record& record, const OutputTile<T>& tile, T* dz) {
  Pack<T> sum{};
  for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) {
    const Pack<T> loss = record.evaluate(tile, lane, dz);
    multiply_add(sum, load(tile.weights + lane), loss);
    sum += detail::marked_overflow(tile, lane, dz);
  }
  return Wide<T>(sum_lanes<T>(sum));
}

}  // namespace ocdl
