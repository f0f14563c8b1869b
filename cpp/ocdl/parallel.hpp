#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>

#include "ocdl/types.hpp"

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>

#include <thread>
#endif

/// The only file with threads. Nothing here changes a result: work is cut by the problem, never by
/// the number of threads, and whatever is summed over blocks is summed in their order.
namespace ocdl {

/// Functions of the runtime and of the system; without OpenMP there is one thread, which never waits.
namespace runtime {
#if defined(_OPENMP)
inline int max_threads() { return omp_get_max_threads(); }
inline int processors() { return omp_get_num_procs(); }
inline void at_fork(void (*in_child)()) { pthread_atfork(nullptr, nullptr, in_child); }
inline void yield() { std::this_thread::yield(); }
#else
inline int max_threads() { return 1; }
inline int processors() { return 1; }
inline void at_fork(void (*)()) {}
inline void yield() {}
#endif
}  // namespace runtime

struct Range {
  Index begin, end;

  Index size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// The threads that work together on the same data. Each of them runs the same code on its own range of
/// items.
class Team {
 public:
  static Team alone() { return Team(0, 1); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The range of this thread among `count` equal items.
  Range range_of(Index count) const { return {count * rank_ / size_, count * (rank_ + 1) / size_}; }
  /// The value of the first thread, on all threads; `shared` is memory that they have in common.
  bool broadcast(bool value, bool& shared) const {
    if (size_ == 1) return value;
    if (rank_ == 0) shared = value;
    barrier();
    const bool received = shared;
    barrier();
    return received;
  }
  /// Waits until every thread of the team is here.
  void barrier() const {
#if defined(_OPENMP)
    if (size_ > 1) {
#pragma omp barrier
    }
#endif
  }

 private:
  Team(int rank, int size) : rank_(rank), size_(size) {}
  int rank_, size_;

  template <class Body>
  friend void parallel(int threads, const Body& body);
};

/// ocdl's own number of threads. Unless it is set, OpenMP's limit for the calling thread holds, so that
/// OMP_NUM_THREADS and libraries that lower the limit for a while are respected; no other setting is
/// changed.
class ThreadLimit {
 public:
  static void set(int threads) {
    if (threads < 1) throw std::invalid_argument("the number of threads must be at least 1");
    process_limit().store(threads);
  }
  /// The same for the calling thread alone, where it counts instead; 0: no longer.
  static void set_here(int threads) {
    if (threads < 0) throw std::invalid_argument("the number of threads must not be negative");
    calling_thread_limit() = threads;
  }
  static int get() {
    if (in_forked_child().load(std::memory_order_relaxed)) return 1;
    const int threads =
        calling_thread_limit() > 0 ? calling_thread_limit() : process_limit().load(std::memory_order_relaxed);
    return threads > 0 ? threads : runtime::max_threads();
  }
  /// More threads than this gain nothing anywhere, and a runtime that cannot start a thread ends the process.
  static int sensible() {
    constexpr int per_processor = 8;
    const int threads = get();
    // To count the processors is a system call, which takes longer than to look through some hundred numbers.
    return threads <= per_processor ? threads : std::min(threads, per_processor * runtime::processors());
  }
  /// The OpenMP runtime's threads do not survive a fork: a child stays serial for good.
  static void watch_forks() {
    static std::once_flag once;
    std::call_once(once, [] { runtime::at_fork([] { in_forked_child().store(true); }); });
  }

 private:
  static std::atomic<int>& process_limit() {
    static std::atomic<int> threads{0};
    return threads;
  }
  static int& calling_thread_limit() {
    static thread_local int threads = 0;
    return threads;
  }
  static std::atomic<bool>& in_forked_child() {
    static std::atomic<bool> forked{false};
    return forked;
  }
};

/// Runs body(team) on each of `threads` threads; one thread never enters OpenMP. The body must not throw, so
/// its memory is reserved before: the others would wait for ever for a thread that has left, at a barrier or
/// for its turn.
template <class Body>
void parallel([[maybe_unused]] int threads, const Body& body) {
  const auto run = [&](const Team& team) noexcept { body(team); };
#if defined(_OPENMP)
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    run(Team(omp_get_thread_num(), omp_get_num_threads()));
    return;
  }
#endif
  run(Team::alone());
}

/// Hands out items 0, 1, 2, ... and lets their holders pass in that order.
class OrderedGate {
 public:
  Index take() { return next_item_.fetch_add(1, std::memory_order_relaxed); }
  /// Turns come fast, so that going to sleep would take longer than most waits.
  void wait_for_turn(Index item) const {
    constexpr int patience = 10000;
    for (int tries = 0; turn_.load(std::memory_order_acquire) != item; ++tries)
      if (tries > patience) runtime::yield();
  }
  void pass(Index item) { turn_.store(item + 1, std::memory_order_release); }

 private:
  alignas(cache_line) std::atomic<Index> next_item_{0};
  alignas(cache_line) std::atomic<Index> turn_{0};
};

}  // namespace ocdl
