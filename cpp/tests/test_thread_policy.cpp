#include <boost/test/unit_test.hpp>
#include <functional>

#include "ocdl/thread_policy.hpp"

using namespace ocdl;

namespace {

constexpr double serial = 50e-6, threaded = 30e-6, stall = 3e-3, work = 1e5;

/// Seconds that an evaluation takes: evaluation number n of those with threads, or of the serial ones.
using Machine = std::function<double(bool with_threads, int n)>;

double idle(bool with_threads, int) { return with_threads ? threaded : serial; }

/// Next to a process that keeps one of two processors busy, every so often a thread waits for the other until
/// that process has had its turn.
double next_to_busy_process(bool with_threads, int n) {
  constexpr int evaluations_between_stalls = 65;
  static_assert(threaded + stall / evaluations_between_stalls > 1.4 * serial);
  return idle(with_threads, n) + (with_threads && n % evaluations_between_stalls == 0 ? stall : 0);
}

/// Threads that never pay: two cores that are far apart.
double far_apart(bool with_threads, int) { return with_threads ? 1.2 * serial : serial; }

/// A program with an account, and the time that it has taken.
struct Program {
  ThreadAccount account;
  double seconds = 0;
  int evaluations = 0, counts[2] = {0, 0};

  bool evaluate(const Machine& machine) {
    const bool with_threads = account.takes_threads(2);
    const double taken = machine(with_threads, ++counts[with_threads]);
    account.record(with_threads, taken, work);
    seconds += taken;
    ++evaluations;
    return with_threads;
  }
  /// Mean seconds of evaluations over a span of time.
  double mean_over(double span, const Machine& machine) {
    seconds = evaluations = 0;
    while (seconds < span) evaluate(machine);
    return seconds / evaluations;
  }
  /// Seconds until so many evaluations in a row have taken threads.
  double seconds_until_threads(int in_a_row, const Machine& machine) {
    seconds = 0;
    for (int n = 0; n < in_a_row && seconds < 10;) n = evaluate(machine) ? n + 1 : 0;
    return seconds;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(thread_policy)

BOOST_AUTO_TEST_CASE(threads_are_taken_where_they_pay) {
  BOOST_TEST(Program().mean_over(1, idle) < 1.01 * threaded);
}

BOOST_AUTO_TEST_CASE(threads_that_never_pay_cost_little) {
  BOOST_TEST(Program().mean_over(1, far_apart) < 1.01 * serial);
}

BOOST_AUTO_TEST_CASE(stalls_count_although_most_evaluations_with_threads_are_fast) {
  BOOST_TEST(Program().mean_over(1, next_to_busy_process) < 1.05 * serial);
}

BOOST_AUTO_TEST_CASE(long_stalls_of_every_evaluation_with_threads_cost_little) {
  const auto overloaded = [](bool with_threads, int) { return with_threads ? 0.03 : serial; };
  BOOST_TEST(Program().mean_over(5, overloaded) < 1.06 * serial);
}

BOOST_AUTO_TEST_CASE(threads_are_back_soon_after_a_busy_process_has_gone) {
  for (const double busy : {0.01, 0.1, 1.0, 3.0}) {
    Program program;
    program.mean_over(busy, next_to_busy_process);
    BOOST_TEST(program.seconds_until_threads(100, idle) < 0.15);
    BOOST_TEST(program.mean_over(0.5, idle) < 1.01 * threaded);
  }
}

BOOST_AUTO_TEST_CASE(a_busy_process_is_noticed_at_once) {
  Program program;
  program.mean_over(1, idle);
  BOOST_TEST(program.mean_over(0.5, next_to_busy_process) < 1.05 * serial);
}

BOOST_AUTO_TEST_CASE(a_stall_now_and_then_that_threads_have_earned_changes_nothing) {
  const auto waking = [](bool with_threads, int n) { return idle(with_threads, n) + (n % 100 ? 0 : 0.3e-3); };
  BOOST_TEST(Program().mean_over(1, waking) < 1.05 * (threaded + 0.3e-5));
}

/// The serial time is estimated anew however wrong it is, so that no disturbance has an effect for ever.
BOOST_AUTO_TEST_CASE(a_disturbance_of_any_length_is_forgotten) {
  for (const double factor : {0.01, 0.2, 5.0, 100.0})
    for (const double span : {1e-4, 0.01, 1.0})
      for (const bool disturbs_serial : {false, true})
        for (const bool threads_pay : {false, true}) {
          const Machine machine = threads_pay ? idle : far_apart;
          Program program;
          program.mean_over(span, [&](bool with_threads, int n) {
            return machine(with_threads, n) * (with_threads != disturbs_serial ? factor : 1);
          });
          program.mean_over(0.2, machine);
          BOOST_TEST(program.mean_over(0.2, machine) < 1.02 * (threads_pay ? threaded : serial),
                     factor << " " << span << " " << disturbs_serial << " " << threads_pay);
        }
}

BOOST_AUTO_TEST_CASE(another_number_of_threads_begins_anew) {
  Program program;
  program.seconds_until_threads(10, idle);
  BOOST_TEST(program.account.takes_threads(2));
  BOOST_TEST(!program.account.takes_threads(3));
}

BOOST_AUTO_TEST_SUITE_END()
