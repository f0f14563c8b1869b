#pragma once

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>

#include "ocdl/types.hpp"

/// The only file that knows of threads. Nothing here changes a result: work is cut by the problem, never by
/// the number of threads, and whatever is summed over blocks is summed in the order of the blocks.
namespace ocdl {

struct Range {
  Index begin, end;
};

/// The threads that work together on one piece of data. Each of them runs the same code on its own share.
class Team {
 public:
  static Team alone() { return Team(0, 1); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// This thread's share of `count` equal items.
  Range share(Index count) const { return {count * rank_ / size_, count * (rank_ + 1) / size_}; }
  /// Waits until every thread of the team is here.
  void barrier() const {
    if (size_ > 1) {
#pragma omp barrier
    }
  }

 private:
  Team(int rank, int size) : rank_(rank), size_(size) {}
  int rank_, size_;

  template <class Body>
  friend void parallel(int threads, const Body& body);
};

/// ocdl's own number of threads. Unless it is set, OpenMP's limit for the calling thread holds, so that
/// OMP_NUM_THREADS and libraries that lower the limit for a while are respected; nobody else's setting is
/// changed.
class ThreadLimit {
 public:
  static void set(int threads) {
    if (threads < 1) throw std::invalid_argument("the number of threads must be at least 1");
    chosen().store(threads);
  }
  static int get() {
    if (in_forked_child().load(std::memory_order_relaxed)) return 1;
    const int threads = chosen().load(std::memory_order_relaxed);
    return threads > 0 ? threads : omp_get_max_threads();
  }
  /// The OpenMP runtime's threads do not survive a fork: a child stays serial for good.
  static void watch_forks() {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { in_forked_child().store(true); }); });
  }

 private:
  static std::atomic<int>& chosen() {
    static std::atomic<int> threads{0};
    return threads;
  }
  static std::atomic<bool>& in_forked_child() {
    static std::atomic<bool> forked{false};
    return forked;
  }
};

/// Runs body(team) on each of `threads` threads. One thread never enters OpenMP; the first exception is
/// rethrown.
template <class Body>
void parallel(int threads, const Body& body) {
  if (threads <= 1) return body(Team::alone());
  std::exception_ptr error;
  std::mutex error_lock;
#pragma omp parallel num_threads(threads)
  {
    try {
      body(Team(omp_get_thread_num(), omp_get_num_threads()));
    } catch (...) {
      const std::lock_guard hold(error_lock);
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

/// Hands out items 0, 1, 2, ... and lets their holders pass in that order.
class Turnstile {
 public:
  Index take() { return next_item_.fetch_add(1, std::memory_order_relaxed); }
  void wait_for_turn(Index item) const {
    for (Index now = turn_.load(std::memory_order_acquire); now != item;
         now = turn_.load(std::memory_order_acquire))
      turn_.wait(now, std::memory_order_acquire);
  }
  void pass(Index item) {
    turn_.store(item + 1, std::memory_order_release);
    turn_.notify_all();
  }

 private:
  std::atomic<Index> next_item_{0}, turn_{0};
};

}  // namespace ocdl
