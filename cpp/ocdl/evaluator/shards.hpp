#pragma once

#include <optional>

#include "ocdl/evaluator/samples.hpp"
#include "ocdl/evaluator/tree_sum.hpp"

namespace ocdl {

/// Rows are cut into shards by their number among all rows, wherever they are: shard k holds the rows from k
/// S on, and S follows from the number of all rows alone.
inline Index shard_size(Index all_rows) {
  constexpr Index least = 1024, most_shards = 256;
  return std::max(least, (all_rows + most_shards - 1) / most_shards);
}
inline Index shard_count(Index all_rows) {
  return (all_rows + shard_size(all_rows) - 1) / shard_size(all_rows);
}

/// Some of all samples, whole shards that follow each other: one part of a sum over several parts. Every part
/// evaluates its own, in step with the others, and has the result of all. The bits of the result do not
/// depend on the number of the parts nor on their shares.
template <class T>
class ShardsEvaluator : public Evaluator<T> {
 public:
  /// `data`: the rows of this part, possibly none, of which the first is number `first_row` of `all_rows`.
  ShardsEvaluator(const Network& net, const Data<T>& data, const Objective& objective, Index first_row,
                  Index all_rows, AddUp add_up)
      : net_(net),
        data_(data),
        objective_(objective),
        first_row_(first_row),
        all_rows_(all_rows),
        add_up_(std::move(add_up)) {
    const Index end = first_row + data.samples, length = shard_size(all_rows);
    if (data.samples > 0 && (first_row % length != 0 || (end % length != 0 && end != all_rows)))
      throw std::invalid_argument("a part holds whole shards");
    const double weights = sum_over_rows(1, [&](Range rows, double* sum) {
      for (Index i = rows.begin; i < rows.end; ++i) *sum += data_.weight(i);
    })[0];
    scale_ = objective.mean ? 1 / weights : 1;
  }

  Index size() const override { return net_.control_size(); }

  double evaluate(const T* controls, T* gradient, std::int64_t batch) override {
    workspace_.watch = this->watch_;
    if (batch >= 0) return evaluate_batch(controls, gradient, batch);
    shard_gradient_.resize(static_cast<std::size_t>(gradient ? size() : 0));
    T* own = gradient ? shard_gradient_.data() : nullptr;
    const std::vector<double> total = sum_over_rows(gradient ? size() + 1 : 1, [&](Range rows, double* sums) {
      sums[0] = losses_and_derivatives<T>(net_, controls, shard(rows), objective_, {.controls = own},
                                          workspace_, plan_blocks<T>(net_, rows.end - rows.begin));
      if (gradient) std::copy(shard_gradient_.begin(), shard_gradient_.end(), sums + 1);
    });
    if (gradient) std::copy(total.begin() + 1, total.end(), gradient);
    return with_regulariser(total[0], controls, gradient);
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= all_rows_) return false;
    batches_.emplace(all_rows_, batch_size, seed);
    return true;
  }

  void multiply_curvature(const T* controls, Curvature curvature, const double* direction,
                          double* product) override {
    if (!wide_) wide_.emplace(data_, net_.features, net_.outputs);
    wide_controls_.assign(controls, controls + size());
    second_order_.watch = this->watch_;
    const std::vector<double> total = sum_over_rows(size(), [&](Range rows, double* sums) {
      differentiate_losses(net_, wide_controls_.data(), rows_of(wide_->seen(), rows), objective_, curvature,
                           direction, second_order_);
      for (Index n = 0; n < size(); ++n) sums[n] = second_order_.gradient[std::size_t(n)].derivative;
    });
    prepare(net_, wide_controls_.data(), direction, second_order_);
    for (std::size_t n = 0; n < total.size(); ++n) second_order_.gradient[n] = {0, total[n]};
    add_regulariser(net_, objective_.regulariser, product, second_order_);
  }

  double score(const T* controls) override {
    const SumOverRows over_shards = [&](Index size, const auto& of_rows) {
      return sum_over_rows(size, of_rows);
    };
    if (!score_) score_.emplace(objective_.loss, data_, net_.outputs, over_shards, first_row_);
    workspace_.watch = this->watch_;
    std::vector<T> outputs;
    return score_->from(sum_over_rows(score_->size(), [&](Range rows, double* sums) {
      const Index count = rows.end - rows.begin;
      outputs.resize(static_cast<std::size_t>(count * net_.outputs));
      forward<T>(net_, controls, data_.X + rows.begin * net_.features, count, {.outputs = outputs.data()},
                 workspace_);
      score_->add(rows, outputs.data(), sums);
    }));
  }

 private:
  Network net_;
  Data<T> data_;
  Objective objective_;
  Index first_row_, all_rows_;
  AddUp add_up_;
  double scale_ = 1;
  Workspace<T> workspace_;
  std::vector<T> shard_gradient_;
  std::optional<Batches> batches_;
  std::optional<WideData<T>> wide_;
  std::vector<double> wide_controls_;
  SecondOrderWorkspace second_order_;
  std::optional<Score<T>> score_;

  /// of_rows(rows, sums) for every shard of this part, and the sum over the shards of all parts.
  template <class OfRows>
  std::vector<double> sum_over_rows(Index size, const OfRows& of_rows) const {
    const Index length = shard_size(all_rows_);
    TreeBuilder tree(first_row_ / length);
    for (Index begin = 0; begin < data_.samples; begin += length) {
      std::vector<double> sums(static_cast<std::size_t>(size));
      of_rows(Range{begin, std::min(begin + length, data_.samples)}, sums.data());
      tree.add(std::move(sums));
    }
    return add_up_(tree.take());
  }

  template <class S>
  Data<S> rows_of(const Data<S>& data, Range rows) const {
    const auto from = [&](const auto* numbers, Index width) {
      return numbers ? numbers + rows.begin * width : nullptr;
    };
    const Targets<S> targets{from(data.targets.labels, 1), from(data.targets.numbers, net_.outputs)};
    return {from(data.X, net_.features), targets, from(data.weights, 1), rows.end - rows.begin, scale_};
  }
  Data<T> shard(Range rows) const { return rows_of(data_, rows); }

  double with_regulariser(double value, const T* controls, T* gradient) const {
    return objective_.regulariser.none() ? value
                                         : value + objective_.regulariser.add(net_, controls, gradient);
  }

  /// Every part receives the rows of the batch, whoever has them, and evaluates all of it: a number plus
  /// zeros is that number, so that the sum over the parts hands rows out exactly.
  double evaluate_batch(const T* controls, T* gradient, std::int64_t batch) {
    const std::span<const Index> rows = batches_->at(batch);
    const Index count = static_cast<Index>(rows.size()), q = net_.outputs, width = net_.features + q + 1;
    const auto mine = [&](Range own, double* table) {
      for (Index i = 0; i < count; ++i) {
        const Index row = rows[static_cast<std::size_t>(i)] - first_row_;
        if (row < own.begin || row >= own.end) continue;
        double* entry = table + i * width;
        std::copy_n(data_.X + row * net_.features, net_.features, entry);
        entry += net_.features;
        if (data_.targets.labels)
          *entry = static_cast<double>(data_.targets.labels[row]);
        else
          std::copy_n(data_.targets.numbers + row * q, q, entry);
        entry[q] = data_.weight(row);
      }
    };
    const std::vector<double> table = sum_over_rows(count * width, mine);
    std::vector<T> X, numbers, weights;
    std::vector<std::int64_t> labels;
    for (Index i = 0; i < count; ++i) {
      const double *entry = table.data() + i * width, *target = entry + net_.features;
      X.insert(X.end(), entry, target);
      numbers.insert(numbers.end(), target, target + q);
      labels.push_back(static_cast<std::int64_t>(*target));
      weights.push_back(static_cast<T>(target[q]));
    }
    const bool of_classes = facts_of(objective_.loss).targets == TargetKind::classes;
    const Data<T> gathered{X.data(),
                           {of_classes ? labels.data() : nullptr, of_classes ? nullptr : numbers.data()},
                           weights.data(),
                           count,
                           scale_ * static_cast<double>(all_rows_) / static_cast<double>(count)};
    return value_and_derivatives<T>(net_, controls, gathered, objective_, {.controls = gradient}, workspace_);
  }
};

}  // namespace ocdl
