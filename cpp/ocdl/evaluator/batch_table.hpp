#pragma once

#include <vector>

#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// The rows of a batch as numbers that parts can add up, each with the rows that it has: a number plus -0 is
/// that number, so that the sum hands rows out exactly. A row is its features, a label or one number for each
/// output, and one number more.
template <class T>
class BatchTable {
 public:
  BatchTable(Index rows, Index features, Index outputs)
      : rows_(rows), features_(features), outputs_(outputs), width_(features + outputs + 1) {}

  std::vector<double> nothing() const { return std::vector<double>(std::size_t(rows_ * width_), -0.0); }

  /// Puts row `row` of the data at a place of the batch: with its targets and its weight.
  void put(const Data<T>& data, Index row, Index place, std::vector<double>& table) const {
    double* target = put_features(data, row, place, table);
    if (data.targets.labels)
      *target = static_cast<double>(data.targets.labels[row]);
    else
      std::copy_n(data.targets.numbers + row * outputs_, outputs_, target);
    target[outputs_] = data.weight(row);
  }
  /// With the slopes of its loss and the loss.
  void put(const Data<T>& data, Index row, Index place, const T* slopes, double loss,
           std::vector<double>& table) const {
    double* target = put_features(data, row, place, table);
    std::copy_n(slopes, outputs_, target);
    target[outputs_] = loss;
  }

  /// The rows again, from the sum over all parts.
  void take(const std::vector<double>& table) {
    for (Index i = 0; i < rows_; ++i) {
      const double *entry = table.data() + i * width_, *target = entry + features_;
      X.insert(X.end(), entry, target);
      labels.push_back(static_cast<std::int64_t>(*target));
      numbers.insert(numbers.end(), target, target + outputs_);
      weights.push_back(static_cast<T>(target[outputs_]));
      losses.push_back(target[outputs_]);
    }
  }
  Data<T> data(bool of_classes, double scale) const {
    const Targets<T> targets{of_classes ? labels.data() : nullptr, of_classes ? nullptr : numbers.data()};
    return {X.data(), targets, weights.data(), rows_, scale};
  }

  std::vector<T> X, numbers, weights;
  std::vector<std::int64_t> labels;
  std::vector<double> losses;

 private:
  Index rows_, features_, outputs_, width_;

  double* put_features(const Data<T>& data, Index row, Index place, std::vector<double>& table) const {
    return std::copy_n(data.X + row * features_, features_, table.data() + place * width_);
  }
};

}  // namespace ocdl
