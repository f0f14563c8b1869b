#pragma once

#include <memory>
#include <optional>

#include "ocdl/evaluator/batch_table.hpp"
#include "ocdl/evaluator/callback_loss.hpp"
#include "ocdl/evaluator/rows.hpp"

namespace ocdl {

/// The samples of one rank, whole shards that follow each other. All ranks evaluate collectively, each its
/// own samples, and have the result of all. The bits of the result depend neither on the ranks and their
/// samples nor on whether rows are in memory or read: they are those of `SamplesEvaluator` with all rows.
template <class T>
class ShardsEvaluator : public Evaluator<T> {
 public:
  /// `rows`: those of this rank, possibly none, of which the first is number `first_row` of `all_rows`. A
  /// callback loss takes the place of that of the objective.
  ShardsEvaluator(const Network& net, std::unique_ptr<Rows<T>> rows, const Objective& objective,
                  Index first_row, Index all_rows, AddUp add_up, CallbackRowLoss<T> callback_loss = nullptr)
      : net_(net),
        rows_(std::move(rows)),
        objective_(objective),
        callback_loss_(std::move(callback_loss)),
        first_row_(first_row),
        all_rows_(all_rows),
        shards_(Shards::of(all_rows, first_row)),
        add_up_(std::move(add_up)) {
    const Index end = first_row + rows_->count();
    if (rows_->count() > 0 && (first_row % shards_.size != 0 || (end % shards_.size != 0 && end != all_rows)))
      throw std::invalid_argument("a rank holds whole shards");
  }

  Index size() const override { return net_.control_size(); }

  double differentiate(const T* controls, const Derivatives<T>& derivatives, std::int64_t batch) override {
    workspace_.stop_source = this->stop_source_;
    if (derivatives.known_finite) *derivatives.known_finite = false;
    const Derivatives<T> out{.controls = derivatives.controls, .rows = derivatives.rows};
    const double value = batch >= 0 ? evaluate_batch(controls, out, batch) : evaluate_all(controls, out);
    return objective_.regulariser.none() ? value
                                         : value + objective_.regulariser.add(net_, controls, out.controls);
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= all_rows_) return false;
    batches_.emplace(all_rows_, batch_size, seed, rows_->window());
    window_ = -1;
    return true;
  }

  void multiply_curvature(const T* controls, Curvature curvature, const double* direction,
                          double* product) override {
    if (callback_loss_) throw std::invalid_argument("a custom loss has no second derivative here");
    const double scale = this->scale();
    wide_controls_.assign(controls, controls + size());
    second_order_.stop_source = this->stop_source_;
    const BlockPlan plan = this->plan<Dual<double>>();
    start_product(net_, wide_controls_.data(), direction, shards_, rows_->count(), second_order_);
    for_each_chunk(plan.samples, [&](Data<T> chunk, Range rows) {
      chunk.batch_scale = scale;
      const WideData<T> wide(chunk);
      differentiate_losses(net_, wide.data(), objective_, curvature, second_order_,
                           plan.of_rows(rows, rows_->count()));
    });
    const Sums total = add_up_(finished_nodes(second_order_.tree, [&](const auto& node) {
      Sums sums;
      for (Index n = 0; n < size(); ++n) sums.wide.push_back(product_of(curvature, node.vector[n]));
      return sums;
    }));
    std::copy(total.wide.begin(), total.wide.end(), product);
    finish_product(net_, objective_.regulariser, product, second_order_);
  }

  /// A callback loss would need all outputs at once.
  double score(const T* controls) override {
    if (callback_loss_) return std::numeric_limits<double>::quiet_NaN();
    if (!score_) {
      Score<T> score(objective_.loss, net_.outputs, rows_->grid());
      if (!score.is_of_classes())
        score.measure_spread(reference_of(score),
                             [&](Index size, const auto& of_rows) { return sum_over_rows(size, of_rows); });
      score_.emplace(std::move(score));
    }
    SumOverShards sum(shards_, rows_->count(), score_->size());
    for_each_chunk(1, [&](const Data<T>& chunk, Range) {
      run_forward(controls, chunk);
      sum.add(chunk.samples, [&](Range rows, double* sums) {
        score_->add(chunk, rows, outputs_.data() + rows.begin * score_->row_size(), sums);
      });
    });
    return score_->from(add_up_(sum.finished()).wide);
  }

 private:
  Network net_;
  std::unique_ptr<Rows<T>> rows_;
  Objective objective_;
  CallbackRowLoss<T> callback_loss_;
  Index first_row_, all_rows_;
  Shards shards_;
  AddUp add_up_;
  std::optional<double> scale_;
  Workspace<T> workspace_;
  Workspace<T> predictions_;  ///< of observations, whose sweep has sums of its own
  std::vector<T> outputs_, output_gradient_;
  std::vector<double> losses_;
  std::optional<Batches> batches_;
  std::int64_t window_ = -1;        ///< of the last batch
  RowRanges ranges_, next_ranges_;  ///< of this rank in it, and in the next one
  std::vector<double> wide_controls_;
  SecondOrderWorkspace second_order_;
  std::optional<Score<T>> score_;

  /// The cut of all rows, of which these are some.
  template <class S>
  BlockPlan plan() const {
    BlockPlan plan = plan_blocks<S>(net_, all_rows_, rows_->grid().kept_per_sample(net_));
    plan.shards = shards_;
    return plan;
  }

  /// body(chunk, its rows) for all rows of this rank in their order: whole shards, or where one shard is more
  /// than what is read at once, whole blocks of one.
  template <class Body>
  void for_each_chunk(Index block, const Body& body) {
    const Index count = rows_->count(), at_once = rows_->at_once();
    const bool by_shards = at_once >= shards_.size;
    const Index unit = by_shards ? shards_.size : block, longest = std::max(at_once / unit * unit, unit);
    const auto chunk_from = [&](Index begin) {
      if (at_once >= count) return Range{0, count};
      const Index shard_end = (begin / shards_.size + 1) * shards_.size;
      return Range{begin, std::min({begin + longest, by_shards ? count : shard_end, count})};
    };
    for (Range rows = chunk_from(0); rows.size() > 0;) {
      const Range next = chunk_from(rows.end < count ? rows.end : 0);
      body(rows_->read({rows}, {next}, this->stop_source_), rows);
      if (rows.end == count) return;
      rows = next;
    }
  }

  /// of_rows(data, rows, sums) for the rows of every shard, and the sum over the shards of all ranks.
  template <class OfRows>
  std::vector<double> sum_over_rows(Index size, const OfRows& of_rows) {
    SumOverShards sum(shards_, rows_->count(), size);
    for_each_chunk(1, [&](const Data<T>& chunk, Range) {
      sum.add(chunk.samples, [&](Range rows, double* sums) { of_rows(chunk, rows, sums); });
    });
    return add_up_(sum.finished()).wide;
  }

  /// What multiplies the sum of all losses. Rows without weights need not be read for it.
  double scale() {
    if (!scale_) {
      const auto weights = [](const Data<T>& data, Range rows, double* sum) {
        for (Index i = rows.begin; i < rows.end; ++i) *sum += data.weight_in_mean(i);
      };
      const auto ones = [](Range rows, double* sum) { *sum = static_cast<double>(rows.size()); };
      const double total = rows_->are_weighted() || rows_->grid()
                               ? sum_over_rows(1, weights)[0]
                               : add_up_(sum_over_shards(shards_, rows_->count(), 1, ones)).wide[0];
      if (!(total > 0) || !std::isfinite(total))
        throw std::invalid_argument("sample_weight adds up to " + std::to_string(total) +
                                    " over all samples; the sum must be a positive number");
      scale_ = objective_.mean ? 1 / total : 1;
    }
    return *scale_;
  }

  /// That of the first rank.
  std::vector<double> reference_of(const Score<T>& score) {
    const bool has_first = first_row_ == 0 && rows_->count() > 0;
    const RowRanges first = {{0, 1}};
    const std::vector<double> reference =
        has_first ? score.reference(rows_->read(first, first, this->stop_source_)) : std::vector<double>();
    const auto of_rows = [&](Range rows, double* sums) {
      if (has_first && rows.begin == 0) std::copy(reference.begin(), reference.end(), sums);
    };
    return add_up_(sum_over_shards(shards_, rows_->count(), net_.outputs, of_rows)).wide;
  }

  void run_forward(const T* controls, const Data<T>& data) {
    Workspace<T>& workspace = rows_->grid() ? predictions_ : workspace_;
    workspace.stop_source = this->stop_source_;
    outputs_.resize(static_cast<std::size_t>(data.samples * rows_->grid().row_size(net_.outputs)));
    predict<T>(net_, controls, data, outputs_.data(), workspace);
  }

  double evaluate_all(const T* controls, const Derivatives<T>& all) {
    const double scale = this->scale();
    const BlockPlan plan = this->plan<T>();
    SumOverShards callback_losses(shards_, rows_->count(), 1);
    T* const gradient = all.controls;
    start_sum(net_, shards_, rows_->count(), gradient, workspace_);
    for_each_chunk(plan.samples, [&](Data<T> chunk, Range rows) {
      const BlockPlan chunk_plan = plan.of_rows(rows, rows_->count());
      const Derivatives<T> out{.controls = gradient,
                               .rows = all.rows ? all.rows + rows.begin * net_.row_size() : nullptr};
      chunk.batch_scale = scale;
      if (!callback_loss_)
        return add_up_losses<T>(net_, controls, chunk, objective_, out, workspace_, chunk_plan);
      call_loss(controls, chunk, {}, scale, out.any());
      callback_losses.add(chunk.samples, [&](Range some, double* sum) {
        for (Index i = some.begin; i < some.end; ++i) *sum += losses_[static_cast<std::size_t>(i)];
      });
      if (!out.any()) return;
      with_given_cotangents(net_, controls, chunk, output_gradient_.data(), [&](const Cost<T>& cotangents) {
        AdjointSweep<T>(net_, controls, {net_, chunk.X.data}, chunk.samples, {&cotangents}, out, workspace_,
                        chunk_plan)
            .add_up();
      });
    });
    const Sums total = add_up_(nodes_of(gradient, callback_losses));
    if (gradient) {
      std::copy_n(gradient_of(total).end() - size(), size(), gradient);
      transpose_field_map(net_, gradient);
    }
    return scale * total.wide[0];
  }

  /// The finished nodes of an evaluation, value and gradient each.
  std::vector<TreeNode> nodes_of(const T* gradient, const SumOverShards& callback_losses) const {
    if (callback_loss_ && !gradient) return callback_losses.finished();
    std::vector<TreeNode> nodes = finished_nodes(workspace_.tree, [&](const auto& node) {
      Sums sums{{node.value}, {}};
      auto& vector = gradient_of(sums);
      if (gradient) vector.insert(vector.end(), node.vector, node.vector + size());
      return sums;
    });
    if (callback_loss_) {
      const std::vector<TreeNode> losses = callback_losses.finished();
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

  /// The losses of some of the rows that were read last, or of all of them, and their gradients. NaN where
  /// the outputs overflow, which no callback has to expect.
  void call_loss(const T* controls, const Data<T>& data, std::span<const Index> positions, double scale,
                 bool with_gradient) {
    const Index count = data.samples;
    run_forward(controls, data);
    losses_.resize(static_cast<std::size_t>(count));
    output_gradient_.resize(outputs_.size());
    if (first_non_finite(outputs_.data(), static_cast<Index>(outputs_.size())) >= 0) {
      std::fill(losses_.begin(), losses_.end(), std::numeric_limits<double>::quiet_NaN());
      std::fill(output_gradient_.begin(), output_gradient_.end(), std::numeric_limits<T>::quiet_NaN());
    } else if (count > 0) {
      callback_loss_(outputs_.data(), count, positions, scale, losses_.data(),
                     with_gradient ? output_gradient_.data() : nullptr);
    }
  }

  /// The rows of a batch that this rank has: their indices in the batch, and their positions in the data.
  struct BatchRows {
    std::vector<Index> indices, positions;
    Data<T> data;
  };

  BatchRows read_batch(std::int64_t batch) {
    if (const std::int64_t window = batches_->window_of(batch); window != window_) {
      ranges_ = local_ranges(batches_->ranges_of(window));
      next_ranges_ = local_ranges(batches_->ranges_of(window + 1));
      window_ = window;
    }
    BatchRows result{};
    if (ranges_.empty()) return result;
    result.data = rows_->read(ranges_, next_ranges_, this->stop_source_);
    Index index = 0;
    for (const Index sample : batches_->at(batch)) {
      Index before = 0;
      for (const Range& range : ranges_) {
        const Index row = sample - first_row_ - range.begin;
        if (0 <= row && row < range.size()) {
          result.indices.push_back(index);
          result.positions.push_back(before + row);
        }
        before += range.size();
      }
      ++index;
    }
    return result;
  }

  /// The rows of this rank in some ranges, counted from its first row.
  RowRanges local_ranges(const RowRanges& ranges) const {
    RowRanges result;
    for (const Range& range : ranges) {
      const Range local{std::max<Index>(range.begin - first_row_, 0),
                        std::min(range.end - first_row_, rows_->count())};
      if (local.size() > 0) result.push_back(local);
    }
    return result;
  }

  /// Every rank receives all rows of the batch and evaluates it. A callback loss of a row and its gradient
  /// are computed by the rank that has the row.
  double evaluate_batch(const T* controls, const Derivatives<T>& out, std::int64_t batch) {
    const Index count = static_cast<Index>(batches_->at(batch).size());
    const double batch_scale = scale() * static_cast<double>(all_rows_) / static_cast<double>(count);
    const ObservationGrid grid = rows_->grid();
    const Index row_size = grid.row_size(net_.outputs);
    BatchTable<T> table(count, net_.row_size(), grid ? grid.row_width(net_.outputs) : net_.outputs);
    std::vector<TreeNode> nodes = sum_over_shards(shards_, rows_->count(), 0, [](Range, double*) {});
    for (TreeNode& node : nodes) node.sums.wide = table.empty_table();
    put_local_rows(controls, out.any(), batch, batch_scale, table, nodes);
    table.take(add_up_(std::move(nodes)).wide);
    const bool of_classes = !callback_loss_ && traits_of(objective_.loss).targets == TargetKind::classes;
    const Data<T> data = table.data(of_classes, grid, batch_scale);
    if (callback_loss_) {
      std::vector<T> cotangents;
      for (Index i = 0; i < count; ++i) {
        const T* row = table.numbers.data() + i * table.target_width();
        cotangents.insert(cotangents.end(), row, row + row_size);
      }
      if (out.any())
        with_given_cotangents(net_, controls, data, cotangents.data(), [&](const Cost<T>& cost) {
          AdjointSweep<T>(net_, controls, {net_, data.X.data}, count, {&cost}, out, workspace_).run();
        });
      return batch_scale * sum_in_order(table.losses);
    }
    const Objective losses_alone{objective_.loss, objective_.mean, {}};
    return value_and_derivatives<T>(net_, controls, data, losses_alone, out, workspace_);
  }

  void put_local_rows(const T* controls, bool with_gradient, std::int64_t batch, double batch_scale,
                      const BatchTable<T>& table, std::vector<TreeNode>& nodes) {
    const BatchRows local = read_batch(batch);
    const Index count = static_cast<Index>(local.indices.size());
    if (callback_loss_) {
      Gathered<T> gathered(count, local.data);
      call_loss(controls, gathered.take(local.data, local.positions, 0), local.positions, batch_scale,
                with_gradient);
    }
    const auto row_size = static_cast<std::size_t>(rows_->grid().row_size(net_.outputs));
    for (Index n = 0; n < count; ++n) {
      const Index row = local.positions[std::size_t(n)], index = local.indices[std::size_t(n)];
      if (callback_loss_)
        table.put(local.data, row, index,
                  std::span<const T>(output_gradient_).subspan(std::size_t(n) * row_size, row_size),
                  losses_[std::size_t(n)], nodes[0].sums.wide);
      else
        table.put(local.data, row, index, nodes[0].sums.wide);
    }
  }
};

}  // namespace ocdl
