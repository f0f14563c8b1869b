#pragma once

#include <optional>

#include "ocdl/evaluator/batches.hpp"
#include "ocdl/evaluator/evaluator.hpp"
#include "ocdl/evaluator/score.hpp"
#include "ocdl/evaluator/tree_sum.hpp"
#include "ocdl/objective/second_order.hpp"

namespace ocdl {

/// Rows of samples, gathered for a batch.
template <class T>
class Gathered {
 public:
  Gathered(Index most, Index features, Index outputs, const Data<T>& from)
      : features_(features),
        outputs_(outputs),
        X_(static_cast<std::size_t>(most * features)),
        weights_(static_cast<std::size_t>(from.weights ? most : 0)),
        numbers_(static_cast<std::size_t>(from.targets.numbers ? most * outputs : 0)),
        labels_(static_cast<std::size_t>(from.targets.labels ? most : 0)) {}

  /// Targets that stand somewhere else are not gathered.
  Data<T> take(const Data<T>& from, std::span<const Index> rows, double scale) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Index row = rows[i], at = static_cast<Index>(i);
      std::copy_n(from.X + row * features_, features_, X_.begin() + at * features_);
      if (from.targets.labels) labels_[i] = from.targets.labels[row];
      if (from.targets.numbers)
        std::copy_n(from.targets.numbers + row * outputs_, outputs_, numbers_.begin() + at * outputs_);
      if (from.weights) weights_[i] = from.weights[row];
    }
    return {
        X_.data(),
        {from.targets.labels ? labels_.data() : nullptr, from.targets.numbers ? numbers_.data() : nullptr},
        from.weights ? weights_.data() : nullptr,
        static_cast<Index>(rows.size()),
        scale};
  }

 private:
  Index features_, outputs_;
  std::vector<T> X_, weights_, numbers_;
  std::vector<std::int64_t> labels_;
};

/// Data in double precision for the curvature: the same memory, or a copy of single numbers.
template <class T>
class WideData {
 public:
  WideData(const Data<T>& data, Index features, Index outputs) : data_(data) {
    if constexpr (std::is_same_v<T, float>) {
      const auto copy = [](const float* from, Index size, std::vector<double>& to) {
        if (from) to.assign(from, from + size);
      };
      copy(data.X, data.samples * features, X_);
      copy(data.weights, data.samples, weights_);
      copy(data.targets.numbers, data.samples * outputs, numbers_);
    }
  }

  Data<Dual<double>> seen() const {
    const Targets<Dual<double>> targets{data_.targets.labels, wide(data_.targets.numbers, numbers_)};
    return {wide(data_.X, X_), targets, wide(data_.weights, weights_), data_.samples, data_.batch_scale};
  }

 private:
  Data<T> data_;
  std::vector<double> X_, weights_, numbers_;

  static const double* wide(const T* own, const std::vector<double>& copied) {
    if constexpr (std::is_same_v<T, float>)
      return own ? copied.data() : nullptr;
    else
      return own;
  }
};

/// Samples in memory.
template <class T>
class SamplesEvaluator : public Evaluator<T> {
 public:
  SamplesEvaluator(const Network& net, const Data<T>& data, const Objective& objective)
      : net_(net), data_(data), objective_(objective) {}

  Index size() const override { return net_.control_size(); }

  double evaluate(const T* controls, T* gradient, std::int64_t batch) override {
    workspace_.stop_source = this->stop_source_;
    const Data<T> samples = batch < 0 ? data_ : gathered(batches_->at(batch));
    return value_and_derivatives<T>(net_, controls, samples, objective_, {.controls = gradient}, workspace_);
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= data_.samples) return false;
    batches_.emplace(data_.samples, batch_size, seed);
    gathered_.emplace(batch_size, net_.features, net_.outputs, data_);
    batch_scale_ = data_.scale(objective_.mean) * static_cast<double>(data_.samples);
    return true;
  }

  void multiply_curvature(const T* controls, Curvature curvature, const double* direction,
                          double* product) override {
    if (!wide_) wide_.emplace(data_, net_.features, net_.outputs);
    wide_controls_.assign(controls, controls + size());
    second_order_.stop_source = this->stop_source_;
    curvature_product(net_, wide_controls_.data(), wide_->seen(), objective_, curvature, direction, product,
                      second_order_);
  }

  double score(const T* controls) override {
    const SumOverRows<T> over_all = [&](Index size, const auto& of_rows) {
      const auto of_data = [&](Range rows, double* sums) { of_rows(data_, rows, sums); };
      return sum_over_shards(Shards::of(data_.samples), data_.samples, size, of_data)[0].sums.wide;
    };
    if (!score_) {
      score_.emplace(objective_.loss, net_.outputs);
      const T* targets = data_.targets.numbers;
      if (!score_->is_of_classes()) score_->measure_spread({targets, targets + net_.outputs}, over_all);
    }
    std::vector<T> outputs(static_cast<std::size_t>(data_.samples * net_.outputs));
    workspace_.stop_source = this->stop_source_;
    forward<T>(net_, controls, data_.X, data_.samples, {.outputs = outputs.data()}, workspace_);
    return score_->from(over_all(score_->size(), [&](const Data<T>& data, Range rows, double* sums) {
      score_->add(data, rows, outputs.data() + rows.begin * net_.outputs, sums);
    }));
  }

 private:
  Network net_;
  Data<T> data_;
  Objective objective_;
  Workspace<T> workspace_;
  std::optional<Batches> batches_;
  std::optional<Gathered<T>> gathered_;
  double batch_scale_ = 0;
  std::optional<WideData<T>> wide_;
  std::vector<double> wide_controls_;
  SecondOrderWorkspace second_order_;
  std::optional<Score<T>> score_;

  Data<T> gathered(std::span<const Index> rows) {
    return gathered_->take(data_, rows, batch_scale_ / static_cast<double>(rows.size()));
  }
};

}  // namespace ocdl
