#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "ocdl/parallel.hpp"

namespace ocdl {

/// What was seen of evaluations of one size, with threads and without, and which way to take next.
///
/// The faster way is kept. The other one is tried again whenever the time spent since then is worth what the
/// trials may cost, so that they take a few per cent of the time at most.
class ThreadRecord {
 public:
  /// Whether the next evaluation takes so many threads, or one.
  bool prefers_threads(int threads) {
    if (limit_ != threads) {
      *this = ThreadRecord{};
      limit_ = threads;
    }
    if (trials_left_ > 0) return took_threads_;
    if (!serial_.is_known()) return false;
    if (!threaded_.is_known()) return true;
    const double lead = serial_.cost() - threaded_.cost();
    if (waited_ > least_wait && credit_ > trials * std::abs(lead)) {
      trials_left_ = trials;
      credit_ = waited_ = 0;
      return lead <= 0;
    }
    return lead > 0;
  }

  void note(bool with_threads, double seconds, double work) {
    const double share = std::min(0.5, seconds / memory_span);
    serial_.forget(share);
    threaded_.forget(share);
    Way& taken = with_threads ? threaded_ : serial_;
    if (with_threads != took_threads_) taken.is_warm = false;
    taken.note(seconds, work);
    took_threads_ = with_threads;
    trials_left_ = std::max(0, trials_left_ - 1);
    credit_ += trial_share * seconds / work;
    waited_ += seconds;
  }

 private:
  static constexpr double trial_share = 0.04;  ///< of the time may go into trials of the slower way
  static constexpr int trials = 4;             ///< that follow each other
  static constexpr double memory_span = 0.05;  ///< seconds after which a time is mostly forgotten
  /// Seconds between trials: threads go on waiting for work at full speed for some milliseconds after one,
  /// and keep a processor from somebody who may need it.
  static constexpr double least_wait = 0.02;

  /// What one way took lately. Stalls count: next to a busy process most evaluations with threads are fast,
  /// and a few wait so long for the other thread that the mean is worse than without.
  struct Way {
    double seconds = 0, work = 0;
    bool is_warm = false;  ///< the first time wakes threads and touches memory; it does not count

    bool is_known() const { return work > 0; }
    double cost() const { return seconds / work; }
    void note(double more_seconds, double more_work) {
      if (is_warm) {
        seconds += more_seconds;
        work += more_work;
      }
      is_warm = true;
    }
    void forget(double share) {
      seconds -= share * seconds;
      work -= share * work;
    }
  };

  Way serial_, threaded_;
  int limit_ = 0;
  bool took_threads_ = false;  ///< the last time
  int trials_left_ = 0;        ///< of the way that is slower as far as is known
  double credit_ = 0;          ///< what these trials may cost by now, per work
  double waited_ = 0;          ///< seconds since the last ones
};

/// How many threads an evaluation takes, decided anew each time: threads only where they pay.
///
/// Little work stays serial and much work takes every thread. In between it depends on the machine: next to a
/// busy process, two threads that have to wait for each other can be many times slower than one. So both ways
/// are timed, see ThreadRecord. Results do not depend on the choice.
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
      record_->note(threads_ > 1, std::chrono::duration<double>(Clock::now() - started_).count(), work_);
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
  static std::atomic<bool>& insisted() {
    static std::atomic<bool> always{false};
    return always;
  }
  static std::array<ThreadRecord, 10>& records() {
    static thread_local std::array<ThreadRecord, 10> own;
    return own;
  }

  int most_, threads_;
  double work_;
  ThreadRecord* record_ = nullptr;
  Clock::time_point started_;
};

}  // namespace ocdl
