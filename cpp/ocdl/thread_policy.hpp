#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>

#include "ocdl/parallel.hpp"

namespace ocdl {

/// Decides for evaluations of about one size whether the next one takes several threads.
///
/// Threads keep an account: an evaluation with threads adds the seconds that it gained over a serial one, or
/// subtracts those that it lost. While the account is not overdrawn, evaluations take threads. When it is,
/// they are serial for a multiple of the time lost, and then threads begin again with an empty account. So
/// threads never lose more than a few per cent of the time, every pause ends, and the only estimate is that
/// of the serial time, which is measured anew all the time.
class ThreadAccount {
 public:
  /// Whether the next evaluation takes so many threads, or one.
  bool takes_threads(int threads) {
    if (limit_ != threads) {
      *this = ThreadAccount{};
      limit_ = threads;
    }
    return serial_trials_ == 0 && pause_left_ <= 0;
  }

  /// Records an evaluation of so much work.
  void record(bool with_threads, double seconds, double work) {
    if (with_threads)
      record_threaded(seconds, work);
    else
      record_serial(seconds, work);
    was_serial_ = !with_threads;
  }

 private:
  static constexpr int trials = 2;  ///< serial evaluations in a row, of which the first warms the cache
  static constexpr int trial_interval = 200;     ///< evaluations with threads between serial trials
  static constexpr double update_weight = 0.25;  ///< of the last serial time in the estimate
  static constexpr double max_ratio = 1.5;       ///< between the last serial time and the estimate
  static constexpr double max_balance = 2e-3;    ///< seconds of gain that later losses may use up
  static constexpr double overdraft = 100e-6;    ///< seconds: about what it takes to wake threads that sleep
  static constexpr double pause_per_loss = 20;
  static constexpr double max_doubled_pause = 0.1;  ///< seconds; soon over when a busy process has gone
  static constexpr double max_pause = 1;            ///< seconds, after losses of 50 ms and more

  int limit_ = 0;
  double serial_cost_ = 0;  ///< seconds per work; 0: unknown
  double balance_ = 0;      ///< seconds that threads have gained, less those that they have lost
  double last_pause_ = 0;   ///< seconds; 0: not since the account was full
  double pause_left_ = 0;   ///< seconds of serial evaluations
  int serial_trials_ = trials;
  int until_trial_ = trial_interval;
  bool was_serial_ = false;

  void record_threaded(double seconds, double work) {
    balance_ = std::min(balance_ + serial_cost_ * work - seconds, max_balance);
    if (balance_ == max_balance) last_pause_ = 0;
    if (balance_ < -overdraft) {
      const double repeated = std::min(2 * last_pause_, max_doubled_pause);
      last_pause_ = pause_left_ = std::min(std::max(repeated, pause_per_loss * -balance_), max_pause);
      balance_ = 0;
    }
    if (--until_trial_ == 0) {
      until_trial_ = trial_interval;
      serial_trials_ = trials;
    }
  }

  void record_serial(double seconds, double work) {
    pause_left_ -= seconds;
    serial_trials_ = std::max(serial_trials_ - 1, 0);
    if (!was_serial_) return;
    const double cost = seconds / work;
    if (serial_cost_ == 0) serial_cost_ = cost;
    // Nothing disturbs an evaluation so that it takes less time: a fall is no disturbance, a high rise is
    // one.
    serial_cost_ = std::min(serial_cost_, max_ratio * cost);
    serial_cost_ += update_weight * (std::min(cost, max_ratio * serial_cost_) - serial_cost_);
  }
};

/// How many threads an evaluation takes, decided anew each time: threads only where they pay.
///
/// Little work stays serial and much work takes every thread. In between a ThreadAccount decides, because it
/// depends on the machine: on how far apart its cores are, and on other processes that keep them busy.
/// Results do not depend on the choice.
class ThreadChoice {
 public:
  /// `work`: activations evaluated, about a nanosecond each. `parts`: how many threads find something to do.
  ThreadChoice(double work, Index parts)
      : max_threads_(work < min_work && !insisted()
                         ? 1
                         : static_cast<int>(std::min<Index>(ThreadLimit::sensible(), parts))),
        threads_(max_threads_),
        work_(work) {
    if (max_threads_ > 1 && work < ample_work && !insisted()) {
      account_ = &accounts()[static_cast<std::size_t>(std::log2(work / min_work))];
      if (!account_->takes_threads(threads_)) threads_ = 1;
      started_ = Clock::now();
    }
  }
  ~ThreadChoice() {
    if (account_)
      account_->record(threads_ > 1, std::chrono::duration<double>(Clock::now() - started_).count(), work_);
  }
  ThreadChoice(const ThreadChoice&) = delete;
  ThreadChoice& operator=(const ThreadChoice&) = delete;

  /// Takes every thread whether it pays or not, or no longer: for tests that compare thread counts.
  static void insist(bool always) { insisted().store(always); }

  int threads() const { return threads_; }
  /// What an evaluation of this size may take another time: memory for so many is allocated once.
  int max_threads() const { return max_threads_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double min_work = 20e3, ample_work = 20e6;
  static std::atomic<bool>& insisted() {
    static std::atomic<bool> always{false};
    return always;
  }
  /// One for each power of two of the work, for each calling thread.
  static std::array<ThreadAccount, 10>& accounts() {
    static thread_local std::array<ThreadAccount, 10> accounts;
    return accounts;
  }

  int max_threads_, threads_;
  double work_;
  ThreadAccount* account_ = nullptr;
  Clock::time_point started_;
};

}  // namespace ocdl
