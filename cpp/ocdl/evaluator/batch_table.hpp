#pragma once

#include <span>
#include <vector>

#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// The rows of a batch as numbers that ranks can add up, each with the rows that it has: a number plus -0 is
/// that number, so that the sum is exact. A row is its features, its targets, and one number more.
template <class T>
class BatchTable {
 public:
  BatchTable(Index rows, Index features, Index target_width)
      : rows_(rows), features_(features), target_width_(target_width), width_(features + target_width + 1) {}

  std::vector<double> empty_table() const { return std::vector<double>(std::size_t(rows_ * width_), -0.0); }

  /// Puts row `row` of the data at an index of the batch: with its targets and its weight.
  void put(const Data<T>& data, Index row, Index index, std::vector<double>& table) const {
    double* target = put_features(data, row, index, table);
    if (data.targets.labels)
      *target = static_cast<double>(data.targets.labels[row]);
    else
      std::copy_n(data.targets.numbers.row(row), target_width_, target);
    target[target_width_] = data.weight(row);
  }
  /// With the gradient of its loss by the outputs, behind which the times of observations stand, and the
  /// loss.
  void put(const Data<T>& data, Index row, Index index, std::span<const T> gradient, double loss,
           std::vector<double>& table) const {
    double* target = put_features(data, row, index, table);
    double* times = std::copy(gradient.begin(), gradient.end(), target);
    if (const Index count = target + target_width_ - times)
      std::copy_n(data.targets.times().per_sample + row * data.targets.numbers.width, count, times);
    target[target_width_] = loss;
  }

  /// The rows again, from the sum over all ranks.
  void take(const std::vector<double>& table) {
    for (Index i = 0; i < rows_; ++i) {
      const double *entry = table.data() + i * width_, *target = entry + features_;
      X.insert(X.end(), entry, target);
      labels.push_back(static_cast<std::int64_t>(*target));
      numbers.insert(numbers.end(), target, target + target_width_);
      weights.push_back(static_cast<T>(target[target_width_]));
      losses.push_back(target[target_width_]);
    }
  }
  Data<T> data(bool of_classes, const ObservationGrid& grid, double scale) const {
    const RowTable<T> table{numbers.data(), target_width_};
    const Targets<T> targets{of_classes ? labels.data() : nullptr, of_classes ? RowTable<T>{} : table, grid};
    return {{X.data(), features_}, targets, weights.data(), rows_, scale};
  }

  Index target_width() const { return target_width_; }

  std::vector<T> X, numbers, weights;
  std::vector<std::int64_t> labels;
  std::vector<double> losses;

 private:
  Index rows_, features_, target_width_, width_;

  double* put_features(const Data<T>& data, Index row, Index index, std::vector<double>& table) const {
    return std::copy_n(data.X.row(row), features_, table.data() + index * width_);
  }
};

}  // namespace ocdl
