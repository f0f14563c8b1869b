#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <utility>

#include "ocdl/types.hpp"

namespace ocdl {

/// Thrown by work that was stopped before its end; its results are not to be used.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Lets long work be stopped: every thread asks between two layers whether to go on. The thread that called
/// also looks around by the clock, for a signal say, however long the work takes.
class Watch {
 public:
  /// `look_around` says whether to stop; it must not throw.
  explicit Watch(std::function<bool()> look_around) : look_around_(std::move(look_around)) {}

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Notes work done by the calling thread, about a nanosecond a unit.
  void progress(double work) {
    if ((since_clock_ += work) < clock_stride) return;
    since_clock_ = 0;
    if (const auto now = Clock::now(); now >= next_look_) {
      next_look_ = now + interval;
      if (look_around_()) stopped_.store(true, std::memory_order_relaxed);
    }
  }
  void throw_if_stopped() const {
    if (stopped()) throw Interrupted();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double clock_stride = 1e5;
  static constexpr std::chrono::milliseconds interval{20};

  std::function<bool()> look_around_;
  double since_clock_ = 0;
  Clock::time_point next_look_ = Clock::now() + interval;
  /// In a line of its own: everybody reads it between two layers, and the caller writes the rest as often.
  alignas(cache_line) std::atomic<bool> stopped_{false};
};

/// The watch as one thread at work sees it.
struct Pulse {
  Watch* watch = nullptr;
  bool is_caller = false;  ///< the thread that called, and only that one, reports its work

  /// Whether to go on, after so much work.
  bool goes_on(double work) const {
    if (!watch) return true;
    if (is_caller) watch->progress(work);
    return !watch->stopped();
  }
};

}  // namespace ocdl
