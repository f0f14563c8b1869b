#include <boost/test/unit_test.hpp>
#include <thread>

#include "ocdl/evaluator/samples.hpp"
#include "ocdl/optimiser/training.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

using Scalars = std::tuple<float, double>;

std::vector<MethodOptions> methods(Index batch) {
  return {
      GradientDescentOptions{0.1},
      BacktrackingOptions{0.1, 1.5, 0.99, 200},
      ArmijoOptions{0.4, 0.5, 2.0, 0.1, 10.0, 100},
      AdamOptions{0.01, 0.9, 0.999, 1e-8, 0, 1},
      AdamOptions{0.01, 0.9, 0.999, 1e-8, batch, 1},
      LBFGSOptions{5, 25},
      NewtonCGOptions{Curvature::hessian, 1.0, 0.5, 20, 25},
      NewtonCGOptions{Curvature::gauss_newton, 1.0, 0.5, 20, 25},
  };
}

Problem<double> training_problem(bool residual = true) {
  Draw draw(3);
  const Network net({.features = 2,
                     .dim = 2,
                     .layers = 6,
                     .outputs = 1,
                     .tableau = named("euler"),
                     .residual = residual,
                     .learns_steps = residual});
  Problem<double> p = draw.problem(net, 100);
  std::fill_n(p.controls.begin() + net.steps().begin, net.step_count(),
              1.0 / static_cast<double>(net.layers));
  p.objective = {};
  p.weights.clear();
  return p;
}

/// A training with the evaluator that it sees.
struct Run {
  SamplesEvaluator<double> evaluator;
  Training<double> training;

  Run(const Problem<double>& p, const MethodOptions& method, bool simplex, bool penalised = false)
      : evaluator(p.net, p.data(), p.objective),
        training(evaluator, p.controls.data(), method,
                 {.frozen = {}, .simplex = simplex ? p.net.steps() : Range{0, 0}, .total = p.net.horizon},
                 0.0, 0.0, 0.0,
                 penalised ? nonsmooth_penalty(p.net, {{L1{0.01, {}}}}, {}) : NonsmoothPenalty{}) {}
};

StopSource never() {
  return StopSource([] { return false; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(training)

BOOST_AUTO_TEST_CASE(no_iteration_but_the_first_allocates) {
  const Problem<double> p = training_problem();
  for (const MethodOptions& method : methods(32))
    for (const auto& [simplex, penalised] :
         {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      if (penalised && !is_proximal(method)) continue;
      Run run(p, method, simplex, penalised);
      Training<double>& training = run.training;
      StopSource stop_source = never();
      std::vector<TrainingRecord> records(200);
      training.start(stop_source);
      training.run(1, 1e9, records.data(), stop_source);
      const long before = allocation_count();
      Eigen::internal::set_is_malloc_allowed(false);
      training.run(100, 1e9, records.data(), stop_source);
      Eigen::internal::set_is_malloc_allowed(true);
      BOOST_TEST(allocation_count() == before, "method " << method.index());
      BOOST_TEST(training.iterations() > 10, "method " << method.index());
    }
}

BOOST_AUTO_TEST_CASE(an_interrupted_iteration_has_not_happened) {
  struct Collector : StateVisitor<double> {
    std::vector<double> seen;
    void number(std::string_view name, double& value) override {
      if (name != "seconds") seen.push_back(value);
    }
    void count(std::string_view, std::int64_t& value) override { seen.push_back(static_cast<double>(value)); }
    void rows(std::string_view, double* first, Index count, Index length, Index stride) override {
      for (Index row = 0; row < count; ++row)
        seen.insert(seen.end(), first + row * stride, first + row * stride + length);
    }
  };
  const auto state = [](Training<double>& training) {
    Collector collector;
    training.visit(collector);
    return collector.seen;
  };
  Draw draw(5);
  // Work enough for a look at the clock in every layer; the stop source then stops after so many polls.
  Network net({.features = 30,
               .dim = 30,
               .layers = 8,
               .outputs = 1,
               .tableau = named("euler"),
               .learns_steps = true});
  Problem<double> p = draw.problem(net, 3000);
  p.objective = {};
  // Only the thread that called looks around, and it may find all work taken by another one.
  for (const int threads : {1, 2})
    for (const MethodOptions& method : methods(2000)) {
      ThreadLimit::set(threads);
      const bool penalised = threads == 2 && is_proximal(method);
      Run disturbed_run(p, method, false, penalised), undisturbed_run(p, method, false, penalised);
      Training<double>&training = disturbed_run.training, &undisturbed = undisturbed_run.training;
      StopSource stop_source = never();
      std::vector<TrainingRecord> records(10);
      training.start(stop_source);
      undisturbed.start(stop_source);
      training.run(2, 1e9, records.data(), stop_source);
      const std::vector<double> before = state(training);
      int interrupted = 0;
      for (int looks = 0; looks < 3; ++looks) {
        int left = looks;
        StopSource impatient([&] { return left-- <= 0; });
        std::this_thread::sleep_for(std::chrono::milliseconds(25));  // a stop source polls by the clock
        try {
          training.run(1, 1e9, records.data(), impatient);
          break;
        } catch (const Interrupted&) {
          ++interrupted;
          BOOST_TEST((state(training) == before), "method " << method.index());
        }
      }
      if (threads == 1) BOOST_TEST(interrupted > 0);
      training.run(6 - training.iterations(), 1e9, records.data(), stop_source);
      undisturbed.run(6, 1e9, records.data(), stop_source);
      BOOST_TEST((state(training) == state(undisturbed)), "method " << method.index());
    }
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(sums_do_not_depend_on_threads) {
  Draw draw(9);
  const std::vector<double> a = draw.normals(600001), b = draw.normals(600001);
  std::vector<double> results;
  for (const int threads : {1, 2, 3, 7}) {
    ThreadLimit::set(threads);
    results.push_back(dot(a.data(), b.data(), 600001));
  }
  ThreadLimit::set(2);
  BOOST_TEST(results == std::vector<double>(4, results[0]));
  double plain = 0;
  for (std::size_t n = 0; n < a.size(); ++n) plain += a[n] * b[n];
  BOOST_TEST(std::abs(plain - results[0]) <= 1e-9 * std::sqrt(600001.0));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(vectors_of_controls_end_with_whole_groups, T, Scalars) {
  const double roundoff = 10 * static_cast<double>(std::numeric_limits<T>::epsilon());
  Draw draw(7);
  for (const Index size : {Index(1), Index(16), Index(143), Index(5000), Index(300001)}) {
    const Index whole_size = whole_groups(size);
    ControlVector<T> x(static_cast<std::size_t>(size)), y(x), z(x), v(x), w(x);
    for (ControlVector<T>* vector : {&x, &y, &z, &v, &w})
      for (T& number : *vector) number = T(draw.normal());
    const ControlVector<T> before = y;
    const auto [with_v, with_w] =
        add_two(0.7, x.data(), -1.3, z.data(), y.data(), v.data(), w.data(), whole_size);
    double products[2] = {};
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double moved =
          static_cast<double>(before[n]) + 0.7 * static_cast<double>(x[n]) - 1.3 * static_cast<double>(z[n]);
      BOOST_REQUIRE(std::abs(static_cast<double>(y[n]) - moved) <= roundoff * (1 + std::abs(moved)));
      products[0] += static_cast<double>(v[n]) * static_cast<double>(y[n]);
      products[1] += static_cast<double>(w[n]) * static_cast<double>(y[n]);
    }
    BOOST_TEST(std::abs(with_v - products[0]) <= 1e-12 * static_cast<double>(size));
    BOOST_TEST(std::abs(with_w - products[1]) <= 1e-12 * static_cast<double>(size));
    for (const ControlVector<T>* vector : {&x, &y, &z, &v, &w}) {
      BOOST_TEST(reinterpret_cast<std::uintptr_t>(vector->data()) % 64 == 0u);
      for (Index n = size; n < whole_size; ++n) BOOST_TEST(vector->data()[n] == T(0));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_proximal_map_is_the_minimiser_of_its_definition) {
  Draw draw(13);
  Network net(
      {.features = 3, .dim = 3, .layers = 4, .outputs = 1, .tableau = named("euler"), .learns_steps = true});
  const Range bias = net.parts[1].range;
  const std::vector<Penalty> penalties{L1{0.7, {}}, L1{0.2, {{{"K", "h"}}}}, Tikhonov{0.3, {}}};
  for (int trial = 0; trial < 20; ++trial) {
    Regulariser regulariser{penalties};
    if (trial >= 10) regulariser.penalties.push_back(GroupL1{1.5, {{{"K", "W"}}}, "dim"});
    if (trial >= 15) regulariser.penalties.erase(regulariser.penalties.begin());
    const NonsmoothPenalty penalty = nonsmooth_penalty(net, regulariser, {bias});
    const std::vector<double> u = draw.normals(net.control_size());
    const double step = std::exp(draw.normal());
    std::vector<double> moved = u;
    penalty.apply_prox(step, moved.data());
    const auto minimised = [&](const std::vector<double>& v) {
      double distance = 0;
      for (std::size_t n = 0; n < v.size(); ++n) distance += (v[n] - u[n]) * (v[n] - u[n]);
      return step * penalty.value(v.data()) + distance / 2;
    };
    const double least = minimised(moved);
    for (std::size_t n = 0; n < u.size(); ++n) {
      const auto place = static_cast<Index>(n);
      if (bias.begin <= place && place < bias.end) BOOST_TEST(moved[n] == u[n]);
      for (const double change : {-1e-4, 1e-4}) {
        std::vector<double> other = moved;
        other[n] += change;
        if (place < bias.begin || place >= bias.end) BOOST_TEST(minimised(other) > least);
      }
    }
    // The pseudo-gradient is the subgradient of least norm: the residual vanishes where it does.
    std::vector<double> g(u.size()), v(u.size());
    for (std::size_t n = 0; n < g.size(); ++n) g[n] = (moved[n] - u[n]) / step;
    penalty.pseudo_gradient(moved.data(), g.data(), v.data(), net.control_size());
    for (const double number : v) BOOST_TEST(std::abs(number) <= 1e-12);
    BOOST_TEST(std::sqrt(penalty.squared_residual(moved.data(), g.data())) <= 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(the_wolfe_search_keeps_its_promise) {
  Draw draw(11);
  for (int trial = 0; trial < 50; ++trial) {
    Network net({.features = 3,
                 .dim = 3,
                 .layers = 4,
                 .outputs = 1,
                 .tableau = named("euler"),
                 .learns_steps = true});
    Problem<double> p = draw.problem(net, 20);
    p.objective.regulariser = {};
    SamplesEvaluator<double> evaluator(p.net, p.data(), p.objective);
    TrainingProblem<double> problem(evaluator, {});
    Iterate<double> at(problem.size());
    at.controls.assign(p.controls.begin(), p.controls.end());
    problem.evaluate(at);
    ControlVector<double> direction = at.gradient;
    scale(-1, direction.data(), problem.size());
    const double slope = dot(direction.data(), at.gradient.data(), problem.size());
    WolfeSearch<double> search(problem.size(), 60);
    const double first_step = std::pow(10.0, static_cast<double>(draw.whole(-4, 4)));
    BOOST_REQUIRE(search.run(problem, at, direction, slope, first_step));
    const Iterate<double>& best = search.best();
    double step = 0;
    for (std::size_t n = 0; n < direction.size(); ++n)
      if (direction[n] != 0) step = std::max(step, (best.controls[n] - at.controls[n]) / direction[n]);
    BOOST_TEST(best.value <= at.value + 1e-4 * step * slope * (1 - 1e-6));
    BOOST_TEST(std::abs(dot(direction.data(), best.gradient.data(), problem.size())) <= -0.9 * slope);
  }
}

BOOST_AUTO_TEST_SUITE_END()
