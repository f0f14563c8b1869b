#pragma once

#include <memory>
#include <optional>

#include "ocdl/evaluator/batch_table.hpp"
#include "ocdl/evaluator/outside_loss.hpp"
#include "ocdl/evaluator/rows.hpp"

namespace ocdl {

/// Some of all samples, whole shards that follow each other: one part of a sum over several parts, or all of
/// it. Every part evaluates its own, in step with the others, and has the result of all. The bits of the
/// result do not depend on the number of the parts, nor on their shares, nor on whether rows are in memory or
/// read: they are those of `SamplesEvaluator` with all rows.
template <class T>
class ShardsEvaluator : public Evaluator<T> {
 public:
  /// `rows`: those of this part, possibly none, of which the first is number `first_row` of `all_rows`. With
  /// a loss from outside that of the objective does not count.
  ShardsEvaluator(const Network& net, std::unique_ptr<Rows<T>> rows, const Objective& objective,
                  Index first_row, Index all_rows, AddUp add_up, LossOfRows<T> outside_loss = nullptr)
      : net_(net),
        rows_(std::move(rows)),
        objective_(objective),
        outside_loss_(std::move(outside_loss)),
        first_row_(first_row),
        all_rows_(all_rows),
        shards_(Shards::of(all_rows, first_row)),
        add_up_(std::move(add_up)) {
    const Index end = first_row + rows_->count();
    if (rows_->count() > 0 && (first_row % shards_.size != 0 || (end % shards_.size != 0 && end != all_rows)))
      throw std::invalid_argument("a part holds whole shards");
  }

  Index size() const override { return net_.control_size(); }

  double evaluate(const T* controls, T* gradient, std::int64_t batch) override {
    workspace_.stop_source = this->stop_source_;
    const double value =
        batch >= 0 ? evaluate_batch(controls, gradient, batch) : evaluate_all(controls, gradient);
    return objective_.regulariser.none() ? value
                                         : value + objective_.regulariser.add(net_, controls, gradient);
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= all_rows_) return false;
    batches_.emplace(all_rows_, batch_size, seed, rows_->window());
    window_ = -1;
    return true;
  }

  void multiply_curvature(const T* controls, Curvature curvature, const double* direction,
                          double* product) override {
    if (outside_loss_) throw std::invalid_argument("a loss of one's own has no second derivative here");
    const double scale = this->scale();
    wide_controls_.assign(controls, controls + size());
    second_order_.stop_source = this->stop_source_;
    const BlockPlan plan = this->plan<Dual<double>>();
    start_product(net_, wide_controls_.data(), direction, shards_, rows_->count(), second_order_);
    for_each_piece(plan.samples, [&](Data<T> piece, Range rows) {
      piece.batch_scale = scale;
      const WideData<T> wide(piece, net_.features, net_.outputs);
      differentiate_losses(net_, wide.seen(), objective_, curvature, second_order_,
                           plan.of_piece(rows, rows_->count()));
    });
    const Sums total = add_up_(finished_nodes(second_order_.tree, [&](const auto& node) {
      Sums sums;
      for (Index n = 0; n < size(); ++n) sums.wide.push_back(product_of(curvature, node.vector[n]));
      return sums;
    }));
    std::copy(total.wide.begin(), total.wide.end(), product);
    finish_product(net_, objective_.regulariser, product, second_order_);
  }

  /// A loss from outside would have to see all outputs at once.
  double score(const T* controls) override {
    if (outside_loss_) return std::numeric_limits<double>::quiet_NaN();
    if (!score_) {
      Score<T> score(objective_.loss, net_.outputs);
      if (!score.is_of_classes())
        score.measure_spread(first_targets(),
                             [&](Index size, const auto& of_rows) { return sum_over_rows(size, of_rows); });
      score_.emplace(std::move(score));
    }
    SumOverShards sum(shards_, rows_->count(), score_->size());
    for_each_piece(1, [&](const Data<T>& piece, Range) {
      run_forward(controls, piece.X, piece.samples);
      sum.add(piece.samples, [&](Range rows, double* sums) {
        score_->add(piece, rows, outputs_.data() + rows.begin * net_.outputs, sums);
      });
    });
    return score_->from(add_up_(sum.finished()).wide);
  }

 private:
  Network net_;
  std::unique_ptr<Rows<T>> rows_;
  Objective objective_;
  LossOfRows<T> outside_loss_;
  Index first_row_, all_rows_;
  Shards shards_;
  AddUp add_up_;
  std::optional<double> scale_;
  Workspace<T> workspace_;
  std::vector<T> outputs_, slopes_;
  std::vector<double> losses_;
  std::optional<Batches> batches_;
  std::int64_t window_ = -1;   ///< of the last batch
  Runs own_runs_, next_runs_;  ///< what this part has of it, and of the next one
  std::vector<double> wide_controls_;
  SecondOrderWorkspace second_order_;
  std::optional<Score<T>> score_;

  /// The cut of all rows, of which these are some.
  template <class S>
  BlockPlan plan() const {
    BlockPlan found = plan_blocks<S>(net_, all_rows_);
    found.shards = shards_;
    return found;
  }

  /// body(piece, its rows) for all rows of this part in their order: whole shards, or where one shard is more
  /// than what is read at once, whole blocks of one.
  template <class Body>
  void for_each_piece(Index block, const Body& body) {
    const Index count = rows_->count(), at_once = rows_->at_once();
    const bool by_shards = at_once >= shards_.size;
    const Index unit = by_shards ? shards_.size : block, most = std::max(at_once / unit * unit, unit);
    const auto piece_from = [&](Index begin) {
      if (at_once >= count) return Range{0, count};
      const Index shard_end = (begin / shards_.size + 1) * shards_.size;
      return Range{begin, std::min({begin + most, by_shards ? count : shard_end, count})};
    };
    for (Range rows = piece_from(0); rows.size() > 0;) {
      const Range next = piece_from(rows.end < count ? rows.end : 0);
      body(rows_->read({rows}, {next}, this->stop_source_), rows);
      if (rows.end == count) return;
      rows = next;
    }
  }

  /// of_rows(data, rows, sums) for the rows of every shard, and the sum over the shards of all parts.
  template <class OfRows>
  std::vector<double> sum_over_rows(Index size, const OfRows& of_rows) {
    SumOverShards sum(shards_, rows_->count(), size);
    for_each_piece(1, [&](const Data<T>& piece, Range) {
      sum.add(piece.samples, [&](Range rows, double* sums) { of_rows(piece, rows, sums); });
    });
    return add_up_(sum.finished()).wide;
  }

  /// What multiplies the sum of all losses. Rows without weights need not be read for it.
  double scale() {
    if (!scale_) {
      const auto weights = [](const Data<T>& data, Range rows, double* sum) {
        for (Index i = rows.begin; i < rows.end; ++i) *sum += data.weight(i);
      };
      const auto ones = [](Range rows, double* sum) { *sum = static_cast<double>(rows.size()); };
      const double total = rows_->are_weighted()
                               ? sum_over_rows(1, weights)[0]
                               : add_up_(sum_over_shards(shards_, rows_->count(), 1, ones)).wide[0];
      if (!(total > 0) || !std::isfinite(total))
        throw std::invalid_argument("sample_weight adds up to " + std::to_string(total) +
                                    " over all samples; the sum must be a positive number");
      scale_ = objective_.mean ? 1 / total : 1;
    }
    return *scale_;
  }

  std::vector<double> first_targets() {
    const bool has_first = first_row_ == 0 && rows_->count() > 0;
    const Runs first = {{0, 1}};
    const T* targets = has_first ? rows_->read(first, first, this->stop_source_).targets.numbers : nullptr;
    const auto of_rows = [&](Range rows, double* sums) {
      if (has_first && rows.begin == 0) std::copy_n(targets, net_.outputs, sums);
    };
    return add_up_(sum_over_shards(shards_, rows_->count(), net_.outputs, of_rows)).wide;
  }

  void run_forward(const T* controls, const T* X, Index count) {
    workspace_.stop_source = this->stop_source_;
    outputs_.resize(static_cast<std::size_t>(count * net_.outputs));
    if (count > 0) forward<T>(net_, controls, X, count, {.outputs = outputs_.data()}, workspace_);
  }

  double evaluate_all(const T* controls, T* gradient) {
    const double scale = this->scale();
    const BlockPlan plan = this->plan<T>();
    SumOverShards outside_losses(shards_, rows_->count(), 1);
    start_sum(net_, shards_, rows_->count(), gradient, workspace_);
    for_each_piece(plan.samples, [&](Data<T> piece, Range rows) {
      const BlockPlan of_piece = plan.of_piece(rows, rows_->count());
      piece.batch_scale = scale;
      if (!outside_loss_)
        return add_up_losses<T>(net_, controls, piece, objective_, gradient, workspace_, of_piece);
      ask_outside(controls, piece.X, piece.samples, {}, scale, gradient);
      outside_losses.add(piece.samples, [&](Range some, double* sum) {
        for (Index i = some.begin; i < some.end; ++i) *sum += losses_[static_cast<std::size_t>(i)];
      });
      if (!gradient) return;
      const GivenSlopes<T> seed(slopes_.data(), net_.outputs);
      PullBack<T>(net_, controls, piece.X, piece.samples, &seed, {}, {.controls = gradient}, workspace_,
                  of_piece)
          .add_up();
    });
    const Sums total = add_up_(nodes_of(gradient, outside_losses));
    if (gradient) {
      std::copy_n(gradient_of(total).end() - size(), size(), gradient);
      transpose_field_map(net_, gradient);
    }
    return scale * total.wide[0];
  }

  /// The finished nodes of an evaluation, value and gradient each.
  std::vector<TreeNode> nodes_of(const T* gradient, const SumOverShards& outside_losses) const {
    if (outside_loss_ && !gradient) return outside_losses.finished();
    std::vector<TreeNode> nodes = finished_nodes(workspace_.tree, [&](const auto& node) {
      Sums sums{{node.value}, {}};
      auto& vector = gradient_of(sums);
      if (gradient) vector.insert(vector.end(), node.vector, node.vector + size());
      return sums;
    });
    if (outside_loss_) {
      const std::vector<TreeNode> losses = outside_losses.finished();
      for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].sums.wide[0] = losses[n].sums.wide[0];
    }
    return nodes;
  }

  /// Where a gradient of this precision is added, behind whatever else is.
  template <class SomeSums>
  static auto& gradient_of(SomeSums& sums) {
    if constexpr (std::is_same_v<T, float>)
      return sums.single;
    else
      return sums.wide;
  }

  /// The losses of some of the rows that were read last, or of all of them, and their slopes. NaN where the
  /// outputs overflow: nobody outside has to expect that.
  void ask_outside(const T* controls, const T* X, Index count, std::span<const Index> positions, double scale,
                   bool with_slopes) {
    run_forward(controls, X, count);
    losses_.resize(static_cast<std::size_t>(count));
    slopes_.resize(outputs_.size());
    if (first_non_finite(outputs_.data(), static_cast<Index>(outputs_.size())) >= 0) {
      std::fill(losses_.begin(), losses_.end(), std::numeric_limits<double>::quiet_NaN());
      std::fill(slopes_.begin(), slopes_.end(), std::numeric_limits<T>::quiet_NaN());
    } else if (count > 0) {
      outside_loss_(outputs_.data(), count, positions, scale, losses_.data(),
                    with_slopes ? slopes_.data() : nullptr);
    }
  }

  /// The rows of a batch that this part has: their places in the batch, and where they are in what is read.
  struct OwnRows {
    std::vector<Index> places, positions;
    Data<T> read;
  };

  OwnRows read_batch(std::int64_t batch) {
    if (const std::int64_t window = batches_->window_of(batch); window != window_) {
      own_runs_ = own(batches_->runs_of(window));
      next_runs_ = own(batches_->runs_of(window + 1));
      window_ = window;
    }
    OwnRows found{};
    if (own_runs_.empty()) return found;
    found.read = rows_->read(own_runs_, next_runs_, this->stop_source_);
    Index place = 0;
    for (const Index sample : batches_->at(batch)) {
      Index before = 0;
      for (const Range& run : own_runs_) {
        const Index row = sample - first_row_ - run.begin;
        if (0 <= row && row < run.size()) {
          found.places.push_back(place);
          found.positions.push_back(before + row);
        }
        before += run.size();
      }
      ++place;
    }
    return found;
  }

  /// What this part has of some runs, counted from its first row.
  Runs own(const Runs& runs) const {
    Runs found;
    for (const Range& run : runs) {
      const Range part{std::max<Index>(run.begin - first_row_, 0),
                       std::min(run.end - first_row_, rows_->count())};
      if (part.size() > 0) found.push_back(part);
    }
    return found;
  }

  /// Every part receives all rows of the batch, whoever has them, and evaluates it. Of a loss from outside,
  /// whoever has a row computes its loss and the slopes.
  double evaluate_batch(const T* controls, T* gradient, std::int64_t batch) {
    const Index count = static_cast<Index>(batches_->at(batch).size());
    const double batch_scale = scale() * static_cast<double>(all_rows_) / static_cast<double>(count);
    BatchTable<T> table(count, net_.features, net_.outputs);
    std::vector<TreeNode> nodes = sum_over_shards(shards_, rows_->count(), 0, [](Range, double*) {});
    for (TreeNode& node : nodes) node.sums.wide = table.nothing();
    put_own_rows(controls, gradient, batch, batch_scale, table, nodes);
    table.take(add_up_(std::move(nodes)).wide);
    if (outside_loss_) {
      const GivenSlopes<T> seed(table.numbers.data(), net_.outputs);
      if (gradient)
        PullBack<T>(net_, controls, table.X.data(), count, &seed, {}, {.controls = gradient}, workspace_)
            .run();
      return batch_scale * sum_in_order(table.losses);
    }
    const bool of_classes = facts_of(objective_.loss).targets == TargetKind::classes;
    const Objective losses_alone{objective_.loss, objective_.mean, {}};
    return value_and_derivatives<T>(net_, controls, table.data(of_classes, batch_scale), losses_alone,
                                    {.controls = gradient}, workspace_);
  }

  void put_own_rows(const T* controls, const T* gradient, std::int64_t batch, double batch_scale,
                    const BatchTable<T>& table, std::vector<TreeNode>& nodes) {
    const OwnRows own = read_batch(batch);
    const Index count = static_cast<Index>(own.places.size());
    if (outside_loss_) {
      std::vector<T> X;
      for (const Index row : own.positions)
        X.insert(X.end(), own.read.X + row * net_.features, own.read.X + (row + 1) * net_.features);
      ask_outside(controls, X.data(), count, own.positions, batch_scale, gradient);
    }
    for (Index n = 0; n < count; ++n) {
      const Index row = own.positions[std::size_t(n)], place = own.places[std::size_t(n)];
      if (outside_loss_)
        table.put(own.read, row, place, slopes_.data() + n * net_.outputs, losses_[std::size_t(n)],
                  nodes[0].sums.wide);
      else
        table.put(own.read, row, place, nodes[0].sums.wide);
    }
  }
};

}  // namespace ocdl
