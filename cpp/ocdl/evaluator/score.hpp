#pragma once

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

/// Adds up numbers over all samples: of_rows(rows, sums) adds those of some rows to `sums`, which has `size`
/// entries. Who adds knows where the rows are.
using SumOverRows = std::function<std::vector<double>(
    Index size, const std::function<void(Range rows, double* sums)>& of_rows)>;

/// The score of a loss: the share of samples, by weight, that are classified correctly, or for numbers
///     R^2 = 1 - sum w (c - mean(z))^2 / sum w (c - cbar)^2
/// with the weighted mean cbar, averaged over the outputs; a constant target counts 1 if it is predicted
/// exactly, else 0.
template <class T>
class Score {
 public:
  /// `first_row`: the number of the data's first row among all rows, which may be elsewhere.
  Score(const Loss& loss, const Data<T>& data, Index outputs, const SumOverRows& sum_over_rows,
        Index first_row = 0)
      : loss_(loss),
        data_(data),
        outputs_(outputs),
        row_(static_cast<std::size_t>(std::max<Index>(outputs, 2))) {
    if (!is_of_classes()) measure_spread(sum_over_rows, first_row);
  }

  /// How many sums a score is made of.
  Index size() const { return is_of_classes() ? 2 : outputs_; }

  /// Adds the sums of some rows, with their outputs.
  void add(Range rows, const T* outputs, double* sums) const {
    for (Index i = rows.begin; i < rows.end; ++i, outputs += outputs_)
      is_of_classes() ? add_decision(i, outputs, sums) : add_squares(i, outputs, sums);
  }

  double from(const std::vector<double>& sums) const {
    if (is_of_classes()) return sums[0] / sums[1];
    double total = 0;
    for (std::size_t o = 0; o < sums.size(); ++o)
      total += spread_[o] > 0 ? 1 - sums[o] / spread_[o] : double(sums[o] == 0);
    return total / static_cast<double>(sums.size());
  }

 private:
  const Loss& loss_;
  Data<T> data_;
  Index outputs_;
  std::vector<double> spread_;       ///< sum w (c - cbar)^2 of each output
  mutable std::vector<double> row_;  ///< outputs that become their means

  bool is_of_classes() const { return facts_of(loss_).targets == TargetKind::classes; }
  double target(Index i, Index o) const {
    return static_cast<double>(data_.targets.numbers[i * outputs_ + o]);
  }

  void add_decision(Index i, const T* outputs, double* sums) const {
    const double weight = data_.weight(i);
    sums[1] += weight;
    if (decision(outputs, outputs_) == data_.targets.labels[i]) sums[0] += weight;
  }

  void add_squares(Index i, const T* outputs, double* sums) const {
    std::copy_n(outputs, outputs_, row_.begin());
    mean_of(loss_, outputs_, row_.data());
    for (Index o = 0; o < outputs_; ++o) {
      const double residual = target(i, o) - row_[static_cast<std::size_t>(o)];
      sums[o] += data_.weight(i) * residual * residual;
    }
  }

  /// Differences to the first row's target come first: of a constant target they are exactly 0.
  void measure_spread(const SumOverRows& sum_over_rows, Index first_row) {
    const std::vector<double> first = sum_over_rows(outputs_, [&](Range rows, double* sums) {
      const bool has_first = first_row + rows.begin == 0 && rows.end > 0;
      for (Index o = 0; has_first && o < outputs_; ++o) sums[o] += target(0, o);
    });
    const auto shifted = [&](Index i, Index o) { return target(i, o) - first[static_cast<std::size_t>(o)]; };
    const std::vector<double> moments = sum_over_rows(outputs_ + 1, [&](Range rows, double* sums) {
      for (Index i = rows.begin; i < rows.end; ++i) {
        sums[outputs_] += data_.weight(i);
        for (Index o = 0; o < outputs_; ++o) sums[o] += data_.weight(i) * shifted(i, o);
      }
    });
    spread_ = sum_over_rows(outputs_, [&](Range rows, double* sums) {
      for (Index i = rows.begin; i < rows.end; ++i)
        for (Index o = 0; o < outputs_; ++o) {
          const double distance = shifted(i, o) - moments[static_cast<std::size_t>(o)] / moments.back();
          sums[o] += data_.weight(i) * distance * distance;
        }
    });
  }
};

}  // namespace ocdl
