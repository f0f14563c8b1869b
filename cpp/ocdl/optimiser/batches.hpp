#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// Samples in random order, a batch at a time. Which samples batch number k holds follows from the seed and k
/// alone, so that k is all there is to remember.
template <class T>
class Batches {
 public:
  Batches(const Data<T>& data, Index features, bool mean, Index batch, std::uint64_t seed)
      : data_(data),
        features_(features),
        batch_(std::min(batch, data.samples)),
        scale_(data.scale(mean) * static_cast<double>(data.samples)),
        seed_(seed),
        order_(static_cast<std::size_t>(data.samples)),
        X_(static_cast<std::size_t>(batch_ * features)),
        labels_(static_cast<std::size_t>(batch_)),
        weights_(static_cast<std::size_t>(data.weights ? batch_ : 0)) {}

  /// Its sum of losses is scaled so that its expectation is that of all samples.
  Data<T> at(std::int64_t number) {
    const Index per_epoch = (data_.samples + batch_ - 1) / batch_;
    if (const std::int64_t epoch = number / per_epoch; epoch != epoch_) shuffle(epoch);
    const Index first = (number % per_epoch) * batch_, count = std::min(batch_, data_.samples - first);
    for (Index i = 0; i < count; ++i) {
      const Index row = order_[static_cast<std::size_t>(first + i)];
      std::copy_n(data_.X + row * features_, features_, X_.begin() + i * features_);
      labels_[static_cast<std::size_t>(i)] = data_.labels[row];
      if (data_.weights) weights_[static_cast<std::size_t>(i)] = data_.weights[row];
    }
    return {X_.data(), labels_.data(), data_.weights ? weights_.data() : nullptr, count,
            scale_ / static_cast<double>(count)};
  }

 private:
  Data<T> data_;
  Index features_, batch_;
  double scale_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  std::vector<Index> order_;
  std::vector<T> X_;
  std::vector<std::int64_t> labels_;
  std::vector<T> weights_;

  /// The order of an epoch: Fisher and Yates' shuffle of 0, 1, 2, ...
  void shuffle(std::int64_t epoch) {
    std::iota(order_.begin(), order_.end(), Index(0));
    std::uint64_t state = mixed(seed_) ^ mixed(static_cast<std::uint64_t>(epoch) + 0x632be59bd9b4e019u);
    for (std::size_t left = order_.size(); left > 1; --left) {
      state += 0x9e3779b97f4a7c15u;
      std::swap(order_[left - 1], order_[mixed(state) % left]);
    }
    epoch_ = epoch;
  }

  /// The output function of the generator splitmix64 (Steele, Lea and Flood 2014).
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

}  // namespace ocdl
