#pragma once

#include <functional>
#include <optional>

#include "ocdl/evaluator/samples.hpp"

namespace ocdl {

/// A loss that the core does not know: a function of the outputs of all samples, or of a batch. It costs its
/// own time and one more forward sweep.
template <class T>
struct OutsideLoss {
  /// J without the regulariser at these outputs, (rows, outputs), weighted and reduced, and unless null its
  /// slopes of the same shape. Of all samples `rows` is empty.
  using Value = std::function<double(const T* outputs, Index count, std::span<const Index> rows, T* slopes)>;
  /// The score at the outputs of all samples.
  using Score = std::function<double(const T* outputs, Index count)>;

  Value value;
  Score score;
};

/// The same for whoever has some of the rows at a time: the weighted losses of rows at these outputs, and
/// unless null their slopes times the scale. Rows are those that were read last, or, unless empty, those at
/// these positions among them.
template <class T>
using LossOfRows = std::function<void(const T* outputs, Index count, std::span<const Index> positions,
                                      double scale, double* losses, T* slopes)>;

/// Samples in memory whose loss is somebody else's.
template <class T>
class OutsideLossEvaluator : public Evaluator<T> {
 public:
  OutsideLossEvaluator(const Network& net, const T* X, Index samples, Regulariser regulariser,
                       OutsideLoss<T> loss)
      : net_(net),
        data_{X, {}, nullptr, samples},
        regulariser_(std::move(regulariser)),
        loss_(std::move(loss)) {}

  Index size() const override { return net_.control_size(); }

  double evaluate(const T* controls, T* gradient, std::int64_t batch) override {
    const std::span<const Index> rows = batch < 0 ? std::span<const Index>() : batches_->at(batch);
    const Data<T> data = batch < 0 ? data_ : gathered_->take(data_, rows, 0);
    run_forward(controls, data);
    if (first_non_finite(outputs_.data(), static_cast<Index>(outputs_.size())) >= 0) {
      constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();
      if (gradient) std::fill_n(gradient, size(), not_a_number);
      return not_a_number;
    }
    if (gradient) slopes_.resize(outputs_.size());
    double value = loss_.value(outputs_.data(), data.samples, rows, gradient ? slopes_.data() : nullptr);
    if (gradient) {
      const GivenSlopes<T> seed(slopes_.data(), net_.outputs);
      PullBack<T>(net_, controls, data.X, data.samples, &seed, {}, {.controls = gradient}, workspace_).run();
    }
    if (!regulariser_.none()) value += regulariser_.add(net_, controls, gradient);
    return value;
  }

  bool cut_into_batches(Index batch_size, std::uint64_t seed) override {
    if (batch_size >= data_.samples) return false;
    batches_.emplace(data_.samples, batch_size, seed);
    gathered_.emplace(batch_size, net_.features, net_.outputs, data_);
    return true;
  }

  void multiply_curvature(const T*, Curvature, const double*, double*) override {
    throw std::invalid_argument("a loss of one's own has no second derivative here");
  }

  double score(const T* controls) override {
    run_forward(controls, data_);
    return loss_.score(outputs_.data(), data_.samples);
  }

 private:
  Network net_;
  Data<T> data_;
  Regulariser regulariser_;
  OutsideLoss<T> loss_;
  Workspace<T> workspace_;
  std::vector<T> outputs_, slopes_;
  std::optional<Batches> batches_;
  std::optional<Gathered<T>> gathered_;

  void run_forward(const T* controls, const Data<T>& data) {
    workspace_.stop_source = this->stop_source_;
    outputs_.resize(static_cast<std::size_t>(data.samples * net_.outputs));
    forward<T>(net_, controls, data.X, data.samples, {.outputs = outputs_.data()}, workspace_);
  }
};

}  // namespace ocdl
