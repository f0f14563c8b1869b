#pragma once

#include "ocdl/evaluator/samples.hpp"

namespace ocdl {

/// The same network with X of all components of a state, the augmented ones too.
inline Network with_whole_states(const Network& net) {
  NetworkOptions options = net;
  options.features = net.dim;
  return Network(std::move(options));
}

/// What holds learned initial states together.
struct InitialStateWeights {
  double observed;    ///< of the squared distance to the rows of X, where these are not NaN
  double continuity;  ///< of the squared jumps between windows of one series
  /// Of each sample the one that begins where it ends, or -1; no sample follows two others. Empty: none does.
  std::vector<Index> next_window;
};

/// The jumps y_i[N] - s_n(i) between windows that follow each other, and their cotangents.
template <class T>
class JumpCost : public Cost<T> {
 public:
  /// `scale` multiplies a jump in its cotangent.
  JumpCost(const Network& net, const std::vector<Index>& next_window, const RowTable<T>& states, double scale)
      : dim_(net.dim),
        layers_(net.layers),
        next_window_(next_window),
        states_(states),
        scale_(scale),
        jumps_(next_window.size() * static_cast<std::size_t>(dim_)) {}

  CostNeeds needs() const override { return {.reads_states = true, .adds_state_cotangents = true}; }

  void evaluate(const CostBlock<T>& at) const override {
    const Plane<T> y = at.trajectory.state(layers_).slice(at.thread);
    const Range rows = at.rows();
    plane_to_rows<T>(y, rows.size(), dim_, jump(rows.begin));
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index f = 0; f < dim_; ++f) jump(i)[f] = next(i) < 0 ? T(0) : jump(i)[f] - states_.row(next(i))[f];
  }

  void add_state_cotangent(const CostBlock<T>& at, Index j, const Plane<T>& p) const override {
    if (j != layers_) return;
    const Range rows = at.rows();
    for (Index i = rows.begin; i < rows.end; ++i) {
      const Index row = i - rows.begin, tile = row / tile_width<T>, lane = row % tile_width<T>;
      for (Index f = 0; f < dim_; ++f) {
        T& cotangent = *p.lane(tile, f, lane);
        cotangent = fma(T(scale_), jump(i)[f], cotangent);
      }
    }
  }

  /// The value of the last evaluation, and unless null its gradient by the states that windows begin with.
  double add_gradient(T* by_states) const {
    for (Index i = 0; by_states && i < static_cast<Index>(next_window_.size()); ++i)
      for (Index f = 0; next(i) >= 0 && f < dim_; ++f) {
        T& gradient = by_states[next(i) * dim_ + f];
        gradient = fnma(T(scale_), jump(i)[f], gradient);
      }
    return 0.5 * scale_ * dot(jumps_.data(), jumps_.data(), static_cast<Index>(jumps_.size()));
  }

 private:
  Index dim_, layers_;
  const std::vector<Index>& next_window_;
  RowTable<T> states_;
  double scale_;
  mutable std::vector<T> jumps_;  ///< each row is written by the thread that has the sample

  Index next(Index i) const { return next_window_[static_cast<std::size_t>(i)]; }
  T* jump(Index i) const { return jumps_.data() + i * dim_; }
};

/// Samples in memory whose initial states are learned: the vector is that of the controls, followed by the
/// states S, (samples, dim). With J(u) of samples that start from S,
///     J(u, S) = J(u) + lambda/(2 m) sum_i w_i |s_i - x_i|^2 + rho/(2 m) sum_i |y_i[N] - s_n(i)|^2.
template <class T>
class InitialStatesEvaluator : public Evaluator<T> {
 public:
  /// Features that are NaN are not observed.
  InitialStatesEvaluator(const Network& net, const Data<T>& data, const Objective& objective,
                         InitialStateWeights weights)
      : features_(net.features),
        net_(with_whole_states(net)),
        weights_(std::move(weights)),
        data_(data),
        rows_(static_cast<std::size_t>(data.samples * net_.row_size())),
        gradient_(rows_.size()),
        jumps_(net_, weights_.next_window, table(), weights_.continuity / static_cast<double>(data.samples)),
        samples_(net_, {table(), data.targets, data.weights, data.samples}, objective,
                 weights_.next_window.empty() ? nullptr : &jumps_) {
    for (Index i = 0; i < data.samples; ++i)
      std::copy(data.X.row(i) + features_, data.X.row(i + 1), row(rows_, i) + net_.dim);
  }

  Index size() const override { return net_.control_size() + data_.samples * net_.dim; }

  double differentiate(const T* vector, const Derivatives<T>& derivatives, std::int64_t batch) override {
    if (derivatives.known_finite) *derivatives.known_finite = false;
    take_states(vector);
    T* gradient = derivatives.controls;
    double value = samples_.differentiate(
        vector, {.controls = gradient, .rows = gradient ? gradient_.data() : nullptr}, batch);
    T* by_states = gradient ? gradient + net_.control_size() : nullptr;
    for (Index i = 0; by_states && i < data_.samples; ++i)
      std::copy_n(row(gradient_, i), net_.dim, by_states + i * net_.dim);
    value += add_distance(by_states);
    return weights_.next_window.empty() ? value : value + jumps_.add_gradient(by_states);
  }

  bool cut_into_batches(Index, std::uint64_t) override {
    throw std::invalid_argument("initial states are learned from all samples at once");
  }
  void multiply_curvature(const T*, Curvature, const double*, double*) override {
    throw std::invalid_argument("no products with the curvature by initial states");
  }
  double score(const T* vector) override {
    take_states(vector);
    return samples_.score(vector);
  }

 private:
  Index features_;
  Network net_;
  InitialStateWeights weights_;
  Data<T> data_;
  std::vector<T> rows_, gradient_;  ///< of each sample its state, followed by its inputs
  JumpCost<T> jumps_;
  SamplesEvaluator<T> samples_;

  RowTable<T> table() const { return {rows_.data(), net_.row_size()}; }
  T* row(std::vector<T>& rows, Index i) const { return rows.data() + i * net_.row_size(); }

  void take_states(const T* vector) {
    samples_.set_stop_source(this->stop_source_);
    for (Index i = 0; i < data_.samples; ++i)
      std::copy_n(vector + net_.control_size() + i * net_.dim, net_.dim, row(rows_, i));
  }

  /// lambda/(2 m) sum_i w_i |s_i - x_i|^2, and unless null its gradient.
  double add_distance(T* by_states) const {
    const double scale = weights_.observed / static_cast<double>(data_.samples);
    double sum = 0;
    for (Index i = 0; i < data_.samples; ++i)
      for (Index f = 0; f < features_; ++f) {
        const double observed = static_cast<double>(data_.X.row(i)[f]),
                     distance = static_cast<double>(table().row(i)[f]) - observed;
        if (std::isnan(observed)) continue;
        const double weighted = scale * data_.weight(i) * distance;
        sum = fma(weighted, distance, sum);
        if (by_states) by_states[i * net_.dim + f] += T(weighted);
      }
    return 0.5 * sum;
  }
};

}  // namespace ocdl
