#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <utility>

#include "ocdl/types.hpp"

namespace ocdl {

/// Thrown by work that was stopped before its end; its results are invalid.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Stops long work: every thread checks `stopped` between two layers. The calling thread also polls at a
/// fixed interval, for a signal for example, however long the work takes.
class StopSource {
 public:
  /// `poll` returns whether to stop; it must not throw.
  explicit StopSource(std::function<bool()> poll) : poll_(std::move(poll)) {}

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Counts work of the calling thread, about a nanosecond per unit; after enough of it this reads the
  /// clock and, once per interval, polls.
  void progress(double work) {
    if ((since_clock_ += work) < clock_stride) return;
    since_clock_ = 0;
    if (const auto now = Clock::now(); now >= next_poll_) {
      next_poll_ = now + interval;
      if (poll_()) stopped_.store(true, std::memory_order_relaxed);
    }
  }
  void throw_if_stopped() const {
    if (stopped()) throw Interrupted();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double clock_stride = 1e5;
  static constexpr std::chrono::milliseconds interval{20};

  std::function<bool()> poll_;
  double since_clock_ = 0;
  Clock::time_point next_poll_ = Clock::now() + interval;
  /// In a cache line of its own: all threads read it between two layers, while the caller writes the rest.
  alignas(cache_line) std::atomic<bool> stopped_{false};
};

/// One thread's view of a stop source.
struct StopToken {
  StopSource* stop_source = nullptr;
  bool is_caller = false;  ///< only the calling thread counts its work and polls

  /// Whether to continue after this much work.
  bool should_continue(double work) const {
    if (!stop_source) return true;
    if (is_caller) stop_source->progress(work);
    return !stop_source->stopped();
  }
};

}  // namespace ocdl
