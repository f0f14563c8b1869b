#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "ocdl/parallel.hpp"

namespace ocdl {

/// Rows in some ranges.
using RowRanges = std::vector<Range>;

/// Samples in random order, a batch at a time. Which samples batch number k holds follows from the seed and k
/// alone, so that k is all there is to remember.
///
/// Where not all samples are at hand, they come by windows: an epoch puts ranges of samples that follow each
/// other into random order, some of these ranges are a window, and its batches are drawn from its samples in
/// random order. No batch crosses the end of a window. The last range of all, which may be shorter, stays the
/// last, so that windows have the same lengths in every epoch.
class Batches {
 public:
  static constexpr Index ranges_per_window = 16;

  /// `window`: how many samples may be at hand at once.
  Batches(Index samples, Index batch, std::uint64_t seed, Index window)
      : samples_(samples),
        batch_(std::min(batch, samples)),
        seed_(seed),
        range_size_(samples <= window
                        ? samples
                        : (std::max(window, batch_) + ranges_per_window - 1) / ranges_per_window),
        window_(samples <= window ? samples : range_size_ * ranges_per_window) {}
  Batches(Index samples, Index batch, std::uint64_t seed) : Batches(samples, batch, seed, samples) {}

  /// The numbers of the samples in a batch.
  std::span<const Index> at(std::int64_t number) {
    if (const std::int64_t window = window_of(number); window != shuffled_) shuffle(window);
    const Index first = in_epoch(number) % per_window() * batch_, all = static_cast<Index>(order_.size());
    return std::span(order_).subspan(static_cast<std::size_t>(first),
                                     static_cast<std::size_t>(std::min(batch_, all - first)));
  }

  /// Which window a batch is of; windows are counted through all epochs.
  std::int64_t window_of(std::int64_t number) const {
    return number / per_epoch() * windows() + in_epoch(number) / per_window();
  }

  /// The samples of a window as ranges.
  RowRanges ranges_of(std::int64_t window) const {
    const std::int64_t epoch = window / windows();
    const Index full = samples_ / range_size_, count = (samples_ + range_size_ - 1) / range_size_;
    std::vector<Index> order(static_cast<std::size_t>(full));
    std::iota(order.begin(), order.end(), Index(0));
    if (windows() > 1) permute(order, mixed(mixed(seed_) ^ static_cast<std::uint64_t>(epoch)));
    RowRanges ranges;
    const Index first = (window % windows()) * (window_ / range_size_);
    for (Index n = first; n < std::min(first + window_ / range_size_, count); ++n) {
      const Index index = n < full ? order[static_cast<std::size_t>(n)] : n;
      ranges.push_back({index * range_size_, std::min((index + 1) * range_size_, samples_)});
    }
    return ranges;
  }

 private:
  Index samples_, batch_;
  std::uint64_t seed_;
  Index range_size_, window_;  ///< lengths
  std::int64_t shuffled_ = -1;
  std::vector<Index> order_;  ///< the samples of that window

  Index windows() const { return (samples_ + window_ - 1) / window_; }
  Index per_window() const { return (window_ + batch_ - 1) / batch_; }
  Index per_epoch() const {
    const Index last = samples_ - (windows() - 1) * window_;
    return (windows() - 1) * per_window() + (last + batch_ - 1) / batch_;
  }
  Index in_epoch(std::int64_t number) const { return number % per_epoch(); }

  void shuffle(std::int64_t window) {
    if (windows() == 1) {  // the usual case allocates no ranges, and memory once
      order_.resize(static_cast<std::size_t>(samples_));
      std::iota(order_.begin(), order_.end(), Index(0));
    } else {
      order_.clear();
      for (const Range& range : ranges_of(window))
        for (Index i = range.begin; i < range.end; ++i) order_.push_back(i);
    }
    const auto epoch = static_cast<std::uint64_t>(window / windows());
    const auto in_epoch = static_cast<std::uint64_t>(window % windows());
    permute(order_, mixed(seed_) ^ mixed(epoch + 0x632be59bd9b4e019u) ^ mixed(in_epoch));
    shuffled_ = window;
  }

  /// Fisher and Yates' shuffle.
  static void permute(std::vector<Index>& order, std::uint64_t state) {
    for (std::size_t left = order.size(); left > 1; --left) {
      state += 0x9e3779b97f4a7c15u;
      std::swap(order[left - 1], order[mixed(state) % left]);
    }
  }

  /// The output function of the generator splitmix64 (Steele, Lea and Flood 2014). Of 0 it is 0.
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

}  // namespace ocdl
