#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "ocdl/parallel.hpp"

namespace ocdl {

/// How many threads an evaluation takes, decided anew each time: threads only where they pay.
///
/// Little work stays serial and much work takes every thread. In between it depends on the machine: next to a
/// busy process, two threads that have to wait for each other can be many times slower than one. Both ways
/// are timed and the faster one is kept. The other one is tried again whenever the time spent since then is
/// worth what the trial may cost, so that trials take a few per cent of the time at most. Results do not
/// depend on the choice.
class ThreadChoice {
 public:
  /// `work`: activations evaluated, about a nanosecond each. `parts`: how many threads find something to do.
  ThreadChoice(double work, Index parts)
      : most_(work < least_work && !insisted()
                  ? 1
                  : static_cast<int>(std::min<Index>(ThreadLimit::sensible(), parts))),
        threads_(most_),
        work_(work) {
    if (most_ > 1 && work < ample_work && !insisted()) {
      record_ = &records()[static_cast<std::size_t>(std::log2(work / least_work))];
      if (!record_->prefers_threads(threads_)) threads_ = 1;
      started_ = Clock::now();
    }
  }
  ~ThreadChoice() {
    if (record_)
      record_->note(threads_ > 1, std::chrono::duration<double>(Clock::now() - started_).count() / work_);
  }
  ThreadChoice(const ThreadChoice&) = delete;
  ThreadChoice& operator=(const ThreadChoice&) = delete;

  /// Takes every thread whether it pays or not, or no longer: for tests that compare thread counts.
  static void insist(bool always) { insisted().store(always); }

  int threads() const { return threads_; }
  /// What an evaluation of this size may take another time: memory for so many is allocated once.
  int most() const { return most_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double least_work = 20e3, ample_work = 20e6;
  static constexpr double trial_share = 0.04;  ///< of the time may go into trials of the slower way

  /// One way of evaluating: seconds per work as they were lately.
  struct Way {
    double cost = 0;    ///< 0: not known yet
    bool warm = false;  ///< the first time starts threads and touches memory; it does not count

    void note(double seconds) {
      if (warm)
        cost = cost == 0 ? seconds : std::min(seconds, 2 * cost);  // one hiccup is not believed at once
      warm = true;
    }
  };

  /// What this thread has seen of evaluations of one size.
  struct Record {
    Way serial, threaded;
    double credit = 0;  ///< what a trial of the slower way may cost by now
    int limit = 0;

    bool prefers_threads(int threads) {
      if (limit != threads) {
        *this = Record{};
        limit = threads;
      }
      if (serial.cost == 0) return false;
      if (threaded.cost == 0) return true;
      const bool threads_are_faster = threaded.cost < serial.cost;
      return credit > std::abs(threaded.cost - serial.cost) ? !threads_are_faster : threads_are_faster;
    }
    void note(bool with_threads, double seconds) {
      Way &taken = with_threads ? threaded : serial, &other = with_threads ? serial : threaded;
      taken.note(seconds);
      credit = other.cost > 0 && taken.cost > other.cost ? 0 : credit + trial_share * seconds;
    }
  };

  static std::atomic<bool>& insisted() {
    static std::atomic<bool> always{false};
    return always;
  }
  static std::array<Record, 10>& records() {
    static thread_local std::array<Record, 10> own;
    return own;
  }

  int most_, threads_;
  double work_;
  Record* record_ = nullptr;
  Clock::time_point started_;
};

}  // namespace ocdl
