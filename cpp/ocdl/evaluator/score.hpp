#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// One output decides between two classes by its sign, several by the largest.
template <class T>
Index decision(const T* outputs, Index count) {
  if (count == 1) return outputs[0] > 0;
  return std::max_element(outputs, outputs + count) - outputs;
}

/// Adds up numbers over all samples: of_rows(data, rows, sums) adds those of some rows of the data to `sums`,
/// which has `size` entries.
template <class T>
using SumOverRows = std::function<std::vector<double>(
    Index size, const std::function<void(const Data<T>& data, Range rows, double* sums)>& of_rows)>;

/// The score of a loss: the fraction of the samples, by weight, that are classified correctly, or for numbers
///     R^2 = 1 - sum w (c - mean(z))^2 / sum w (c - cbar)^2
/// with the weighted mean cbar, averaged over the outputs; a constant target counts 1 if it is predicted
/// exactly, else 0. Of observations these are sums over what was observed.
template <class T>
class Score {
 public:
  Score(const Loss& loss, Index outputs, const ObservationGrid& grid)
      : loss_(loss),
        outputs_(outputs),
        times_(std::max<Index>(grid.times, 1)),
        row_(static_cast<std::size_t>(std::max<Index>(outputs, 2))) {}

  bool is_of_classes() const { return traits_of(loss_).targets == TargetKind::classes; }
  /// Outputs of a sample.
  Index row_size() const { return times_ * outputs_; }

  /// The first target of each output of the first sample, 0 where nothing was observed.
  std::vector<double> reference(const Data<T>& data) const {
    std::vector<double> first(static_cast<std::size_t>(outputs_));
    for (Index n = times_ - 1; n >= 0; --n)
      for (Index o = 0; o < outputs_; ++o)
        if (is_observed(data, 0, n, o)) first[static_cast<std::size_t>(o)] = target(data, 0, n, o);
    return first;
  }

  /// Has to come first where targets are numbers. Differences to a reference are added up: of a constant
  /// target they are exactly 0.
  void measure_spread(const std::vector<double>& reference, const SumOverRows<T>& sum_over_rows) {
    const auto shifted = [&](const Data<T>& data, Index i, Index n, Index o) {
      return target(data, i, n, o) - reference[static_cast<std::size_t>(o)];
    };
    const std::vector<double> moments =
        sum_over_rows(2 * outputs_, [&](const Data<T>& data, Range rows, double* sums) {
          for_each_target(data, rows, [&](Index i, Index n, Index o) {
            sums[outputs_ + o] += data.weight(i);
            sums[o] = fma(data.weight(i), shifted(data, i, n, o), sums[o]);
          });
        });
    weights_.assign(moments.begin() + outputs_, moments.end());
    spread_ = sum_over_rows(outputs_, [&](const Data<T>& data, Range rows, double* sums) {
      for_each_target(data, rows, [&](Index i, Index n, Index o) {
        const auto at = static_cast<std::size_t>(o);
        const double distance = shifted(data, i, n, o) - moments[at] / weights_[at];
        sums[o] = fma(data.weight(i) * distance, distance, sums[o]);
      });
    });
  }

  /// How many sums a score is made of.
  Index size() const { return is_of_classes() ? 2 : outputs_; }

  /// Adds the sums of some rows, with their outputs.
  void add(const Data<T>& data, Range rows, const T* outputs, double* sums) const {
    for (Index i = rows.begin; i < rows.end; ++i, outputs += row_size())
      is_of_classes() ? add_decision(data, i, outputs, sums) : add_squares(data, i, outputs, sums);
  }

  double from(const std::vector<double>& sums) const {
    if (is_of_classes()) return sums[0] / sums[1];
    double total = 0, count = 0;
    for (std::size_t o = 0; o < sums.size(); ++o) {
      if (weights_[o] == 0) continue;  // never observed
      total += spread_[o] > 0 ? 1 - sums[o] / spread_[o] : double(sums[o] == 0);
      ++count;
    }
    return total / count;
  }

 private:
  const Loss& loss_;
  Index outputs_, times_;
  std::vector<double> weights_;      ///< sum w of each output, over the targets that it has
  std::vector<double> spread_;       ///< sum w (c - cbar)^2 of each output
  mutable std::vector<double> row_;  ///< outputs that become their means

  double target(const Data<T>& data, Index i, Index n, Index o) const {
    return static_cast<double>(data.targets.numbers.row(i)[n * outputs_ + o]);
  }
  bool is_observed(const Data<T>& data, Index i, Index n, Index o) const {
    return !std::isnan(target(data, i, n, o));
  }

  /// f(sample, time, output) for what was observed.
  template <class F>
  void for_each_target(const Data<T>& data, Range rows, const F& f) const {
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index n = 0; n < times_; ++n)
        for (Index o = 0; o < outputs_; ++o)
          if (is_observed(data, i, n, o)) f(i, n, o);
  }

  void add_decision(const Data<T>& data, Index i, const T* outputs, double* sums) const {
    const double weight = data.weight(i);
    sums[1] += weight;
    if (decision(outputs, outputs_) == data.targets.labels[i]) sums[0] += weight;
  }

  void add_squares(const Data<T>& data, Index i, const T* outputs, double* sums) const {
    for (Index n = 0; n < times_; ++n, outputs += outputs_) {
      std::copy_n(outputs, outputs_, row_.begin());
      mean_of(loss_, outputs_, row_.data());
      for (Index o = 0; o < outputs_; ++o) {
        if (!is_observed(data, i, n, o)) continue;
        const double residual = target(data, i, n, o) - row_[static_cast<std::size_t>(o)];
        sums[o] = fma(data.weight(i) * residual, residual, sums[o]);
      }
    }
  }
};

}  // namespace ocdl
