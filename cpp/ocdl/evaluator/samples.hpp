#pragma once

#include <optional>

#include "ocdl/evaluator/batches.hpp"
#include "ocdl/evaluator/evaluator.hpp"
#include "ocdl/evaluator/score.hpp"
#include "ocdl/evaluator/tree_sum.hpp"
#include "ocdl/objective/second_order.hpp"
#include "ocdl/sweep/flow.hpp"

namespace ocdl {

/// Rows of samples, gathered for a batch.
template <class T>
class Gathered {
 public:
  /// For at most so many rows.
  Gathered(Index capacity, const Data<T>& from)
      : X_(static_cast<std::size_t>(capacity * from.X.width)),
        weights_(static_cast<std::size_t>(from.weights ? capacity : 0)),
        numbers_(static_cast<std::size_t>(from.targets.numbers ? capacity * from.targets.numbers.width : 0)),
        labels_(static_cast<std::size_t>(from.targets.labels ? capacity : 0)) {}

  Data<T> take(const Data<T>& from, std::span<const Index> rows, double scale) {
    const Data<T> to{{X_.data(), from.X.width},
                     {from.targets.labels ? labels_.data() : nullptr,
                      {from.targets.numbers ? numbers_.data() : nullptr, from.targets.numbers.width},
                      from.targets.grid},
                     from.weights ? weights_.data() : nullptr,
                     static_cast<Index>(rows.size()),
                     scale};
    const auto copy = [](const RowTable<T>& table, Index row, std::vector<T>& numbers, std::size_t i) {
      if (table)
        std::copy_n(table.row(row), table.width, numbers.begin() + static_cast<Index>(i) * table.width);
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      copy(from.X, rows[i], X_, i);
      copy(from.targets.numbers, rows[i], numbers_, i);
      copy({from.weights, 1}, rows[i], weights_, i);
      if (from.targets.labels) labels_[i] = from.targets.labels[rows[i]];
    }
    return to;
  }

 private:
  std::vector<T> X_, weights_, numbers_;
  std::vector<std::int64_t> labels_;
};

/// Data in double precision for the curvature: the same memory, or a copy of single numbers.
template <class T>
class WideData {
 public:
  explicit WideData(const Data<T>& data)
      : data_{wide(data.X, data.samples, X_),
              {data.targets.labels, wide(data.targets.numbers, data.samples, numbers_), data.targets.grid},
              wide({data.weights, 1}, data.samples, weights_).data,
              data.samples,
              data.batch_scale} {}
  WideData(const WideData&) = delete;
  WideData& operator=(const WideData&) = delete;

  const Data<double>& data() const { return data_; }

 private:
  std::vector<double> X_, weights_, numbers_;
  Data<double> data_;

  static RowTable<double> wide(const RowTable<T>& table, Index rows, std::vector<double>& copied) {
    if constexpr (std::is_same_v<T, double>) return table;
    if (!table) return {};
    copied.assign(table.data, table.row(rows));
    return {copied.data(), table.width};
  }
};

/// Samples in memory.
template <class T>
class SamplesEvaluator : public Evaluator<T> {
 public:
  /// `more_cost`, unless null, adds its derivatives by all samples.
  SamplesEvaluator(const Network& net, const Data<T>& data, const Objective& objective,
                   const Cost<T>* more_cost = nullptr)
      : net_(net), data_(data), objective_(objective), more_cost_(more_cost) {
    if (data.targets.grid) data_.batch_scale = data.scale(objective.mean);  // reads every target
  }

  Index size() const override { return net_.control_size(); }

  double differentiate(const T* controls, const Derivatives<T>& derivatives, std::int64_t batch) override {
    workspace_.stop_source = this->stop_source_;
    const Data<T> samples = batch < 0 ? data_ : gathered(batches_->at(batch));
    return value_and_derivatives<T>(net_, controls, samples, objective_, derivatives, workspace_, more_cost_);
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= data_.samples) return false;
    batches_.emplace(data_.samples, batch_size, seed);
    gathered_.emplace(batch_size, data_);
    batch_scale_ = data_.scale(objective_.mean) * static_cast<double>(data_.samples);
    return true;
  }

  void multiply_curvature(const T* controls, Curvature curvature, const double* direction,
                          double* product) override {
    if (!wide_) wide_.emplace(data_);
    wide_controls_.assign(controls, controls + size());
    second_order_.stop_source = this->stop_source_;
    curvature_product(net_, wide_controls_.data(), wide_->data(), objective_, curvature, direction, product,
                      second_order_);
  }

  double score(const T* controls) override {
    const SumOverRows<T> over_all = [&](Index size, const auto& of_rows) {
      const auto of_data = [&](Range rows, double* sums) { of_rows(data_, rows, sums); };
      return sum_over_shards(Shards::of(data_.samples), data_.samples, size, of_data)[0].sums.wide;
    };
    if (!score_) {
      score_.emplace(objective_.loss, net_.outputs, data_.targets.grid);
      if (!score_->is_of_classes()) score_->measure_spread(score_->reference(data_), over_all);
    }
    std::vector<T> outputs(static_cast<std::size_t>(data_.samples * score_->row_size()));
    workspace_.stop_source = this->stop_source_;
    predict<T>(net_, controls, data_, outputs.data(), workspace_);
    return score_->from(over_all(score_->size(), [&](const Data<T>& data, Range rows, double* sums) {
      score_->add(data, rows, outputs.data() + rows.begin * score_->row_size(), sums);
    }));
  }

 private:
  Network net_;
  Data<T> data_;
  Objective objective_;
  const Cost<T>* more_cost_;
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
