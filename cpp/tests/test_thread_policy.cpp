#include <boost/test/unit_test.hpp>

#include "ocdl/thread_policy.hpp"

using namespace ocdl;

namespace {

/// Seconds of evaluations on an idle machine, and next to a process that keeps one of two processors busy:
/// every so often a thread waits for the other until that process has had its turn.
constexpr double serial = 50e-6, threaded = 27e-6, stall = 3e-3;
constexpr int evaluations_between_stalls = 65;

/// Mean seconds of so many evaluations, as the record chooses.
double mean_seconds(ThreadRecord& record, int evaluations, bool next_to_busy_process) {
  double total = 0;
  int with_threads = 0;
  for (int n = 0; n < evaluations; ++n) {
    const bool takes_threads = record.prefers_threads(2);
    with_threads += takes_threads;
    const bool waits =
        next_to_busy_process && takes_threads && with_threads % evaluations_between_stalls == 0;
    const double seconds = takes_threads ? threaded + (waits ? stall : 0) : serial;
    record.note(takes_threads, seconds, 1e5);
    total += seconds;
  }
  return total / evaluations;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(thread_policy)

BOOST_AUTO_TEST_CASE(threads_are_taken_where_they_pay) {
  ThreadRecord record;
  BOOST_TEST(mean_seconds(record, 20000, false) < 1.05 * threaded);
}

BOOST_AUTO_TEST_CASE(stalls_count_although_most_evaluations_with_threads_are_fast) {
  static_assert(threaded + stall / evaluations_between_stalls > 1.4 * serial);
  ThreadRecord record;
  BOOST_TEST(mean_seconds(record, 20000, true) < 1.1 * serial);
}

BOOST_AUTO_TEST_CASE(a_machine_that_becomes_idle_or_busy_is_noticed) {
  ThreadRecord record;
  mean_seconds(record, 20000, true);
  mean_seconds(record, 4000, false);  // 0.2 s
  BOOST_TEST(mean_seconds(record, 2000, false) < 1.05 * threaded);
  mean_seconds(record, 4000, true);
  BOOST_TEST(mean_seconds(record, 20000, true) < 1.1 * serial);
}

BOOST_AUTO_TEST_CASE(one_stall_at_the_beginning_is_forgotten) {
  ThreadRecord record;
  for (int n = 0; n < 4; ++n) {
    const bool takes_threads = record.prefers_threads(2);
    record.note(takes_threads, takes_threads ? stall : serial, 1e5);
  }
  mean_seconds(record, 20000, false);  // a second
  BOOST_TEST(mean_seconds(record, 2000, false) < 1.05 * threaded);
}

BOOST_AUTO_TEST_SUITE_END()
