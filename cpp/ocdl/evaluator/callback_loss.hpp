#pragma once

#include <functional>
#include <optional>

#include "ocdl/evaluator/samples.hpp"

namespace ocdl {

/// A loss that is a function of the outputs of all samples, or of a batch. It costs one more forward sweep.
/// Of observations the outputs are those at their times, (samples, times, outputs).
template <class T>
struct CallbackLoss {
  /// J without the regulariser at these outputs, (rows, outputs), weighted and reduced, and unless null its
  /// gradient of the same shape. Of all samples `rows` is empty.
  using Value =
      std::function<double(const T* outputs, Index count, std::span<const Index> rows, T* gradient)>;
  /// The score at the outputs of all samples.
  using Score = std::function<double(const T* outputs, Index count)>;

  Value value;
  Score score;
};

/// The same where only some of the rows are at hand: writes the weighted losses of rows at these outputs, and
/// unless null their gradients times the scale. Rows are those that were read last, or, unless empty, those
/// at these positions among them.
template <class T>
using CallbackRowLoss = std::function<void(const T* outputs, Index count, std::span<const Index> positions,
                                           double scale, double* losses, T* gradients)>;

/// Samples in memory with a callback loss.
template <class T>
class CallbackLossEvaluator : public Evaluator<T> {
 public:
  /// `data`: of its targets only the times of observation count.
  CallbackLossEvaluator(const Network& net, const Data<T>& data, Regulariser regulariser,
                        CallbackLoss<T> loss)
      : net_(net), data_(data), regulariser_(std::move(regulariser)), loss_(std::move(loss)) {}

  Index size() const override { return net_.control_size(); }

  double differentiate(const T* controls, const Derivatives<T>& derivatives, std::int64_t batch) override {
    const std::span<const Index> rows = batch < 0 ? std::span<const Index>() : batches_->at(batch);
    const Data<T> data = batch < 0 ? data_ : gathered_->take(data_, rows, 0);
    run_forward(controls, data);
    if (derivatives.known_finite) *derivatives.known_finite = false;
    if (first_non_finite(outputs_.data(), static_cast<Index>(outputs_.size())) >= 0) {
      constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();
      if (derivatives.controls) std::fill_n(derivatives.controls, size(), not_a_number);
      if (derivatives.rows) std::fill_n(derivatives.rows, data.samples * net_.row_size(), not_a_number);
      return not_a_number;
    }
    if (derivatives.any()) gradient_.resize(outputs_.size());
    double value =
        loss_.value(outputs_.data(), data.samples, rows, derivatives.any() ? gradient_.data() : nullptr);
    if (derivatives.any()) {
      with_given_cotangents(net_, controls, data, gradient_.data(), [&](const Cost<T>& cotangents) {
        AdjointSweep<T>(net_, controls, {net_, data.X.data}, data.samples, {&cotangents}, derivatives,
                        workspace_)
            .run();
      });
    }
    if (regulariser_.none()) return value;
    if (derivatives.known_finite) *derivatives.known_finite = false;
    return value + regulariser_.add(net_, controls, derivatives.controls);
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= data_.samples) return false;
    batches_.emplace(data_.samples, batch_size, seed);
    gathered_.emplace(batch_size, data_);
    return true;
  }

  void multiply_curvature(const T*, Curvature, const double*, double*) override {
    throw std::invalid_argument("a custom loss has no second derivative here");
  }

  double score(const T* controls) override {
    run_forward(controls, data_);
    return loss_.score(outputs_.data(), data_.samples);
  }

 private:
  Network net_;
  Data<T> data_;
  Regulariser regulariser_;
  CallbackLoss<T> loss_;
  Workspace<T> workspace_;
  std::vector<T> outputs_, gradient_;
  std::optional<Batches> batches_;
  std::optional<Gathered<T>> gathered_;

  void run_forward(const T* controls, const Data<T>& data) {
    workspace_.stop_source = this->stop_source_;
    outputs_.resize(static_cast<std::size_t>(data.samples * data.targets.grid.row_size(net_.outputs)));
    predict<T>(net_, controls, data, outputs_.data(), workspace_);
  }
};

}  // namespace ocdl
