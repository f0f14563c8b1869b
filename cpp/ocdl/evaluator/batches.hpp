#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "ocdl/types.hpp"

namespace ocdl {

/// Samples in random order, a batch at a time. Which samples batch number k holds follows from the seed and k
/// alone, so that k is all there is to remember.
class Batches {
 public:
  Batches(Index samples, Index batch, std::uint64_t seed)
      : samples_(samples),
        batch_(std::min(batch, samples)),
        seed_(seed),
        order_(static_cast<std::size_t>(samples)) {}

  /// Samples in a batch, at most.
  Index size() const { return batch_; }
  /// The numbers of the samples in a batch.
  std::span<const Index> at(std::int64_t number) {
    const Index per_epoch = (samples_ + batch_ - 1) / batch_;
    if (const std::int64_t epoch = number / per_epoch; epoch != epoch_) shuffle(epoch);
    const Index first = (number % per_epoch) * batch_, count = std::min(batch_, samples_ - first);
    return std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }

 private:
  Index samples_, batch_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  std::vector<Index> order_;

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
