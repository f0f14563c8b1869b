#include <boost/test/unit_test.hpp>

#include "ocdl/sweep/flow.hpp"
#include "tests/random_problem.hpp"
#include "tests/repetitions.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

using Complex = std::complex<double>;
constexpr double tiny = 1e-40;

/// Cotangents of everything that a flow gives; empty ones are not given.
struct Cotangents {
  std::vector<double> outputs, states;
  bool every_layer = false;
};

Cotangents random_cotangents(const Problem<double>& p, Draw& draw) {
  Cotangents cotangents;
  const Index kind = draw.whole(1, 5), m = p.samples(), d = p.net.dim;
  if (kind <= 3) cotangents.outputs = draw.normals(m * p.net.outputs);
  cotangents.every_layer = kind == 3 || kind == 5;
  if (kind >= 2) cotangents.states = draw.normals((cotangents.every_layer ? p.net.layers + 1 : 1) * m * d);
  return cotangents;
}

Result<double> vjp(const Problem<double>& p, const Cotangents& cotangents, const BlockPlan& plan,
                   std::vector<double>* costates = nullptr) {
  Workspace<double> workspace;
  Result<double> r{0, std::vector<double>(p.controls.size(), 7), std::vector<double>(p.X.size(), 7)};
  const GivenCotangents<double> outputs(cotangents.outputs.data());
  const StateCotangents<double> states(cotangents.states.data(), cotangents.every_layer, p.samples());
  AdjointSweep<double>(
      p.net, p.controls.data(), {p.net, p.X.data()}, p.samples(),
      {cotangents.outputs.empty() ? nullptr : &outputs, cotangents.states.empty() ? nullptr : &states},
      {r.controls.data(), r.rows.data(), costates ? costates->data() : nullptr}, workspace, plan)
      .run();
  return r;
}

/// <cotangents, outputs> + <cotangents, states>.
Complex product_of(const Problem<Complex>& p, const Cotangents& cotangents) {
  Workspace<Complex> workspace;
  const auto size = [&](Index n) { return static_cast<std::size_t>(n * p.samples()); };
  std::vector<Complex> states(size((p.net.layers + 1) * p.net.dim)), outputs(size(p.net.outputs)),
      last(size(p.net.dim));
  forward<Complex>(p.net, p.controls.data(), p.X.data(), p.samples(),
                   {states.data(), last.data(), outputs.data()}, workspace);
  Complex sum = 0;
  for (std::size_t n = 0; n < cotangents.outputs.size(); ++n) sum += cotangents.outputs[n] * outputs[n];
  for (std::size_t n = 0; n < cotangents.states.size(); ++n)
    sum += cotangents.states[n] * (cotangents.every_layer ? states[n] : last[n]);
  return sum;
}

/// The worst error along a direction of each part of the controls and of the data, relative to the sizes of
/// its terms.
double complex_step_error(const Problem<double>& p, const Cotangents& cotangents, Draw& draw,
                          const BlockPlan& plan) {
  const Result<double> exact = vjp(p, cotangents, plan);
  Problem<Complex> q = p.as<Complex>();
  double worst = 0;
  const auto check = [&](std::vector<Complex>& where, const std::vector<double>& derivative, Range place) {
    double product = 0, size = 0;
    for (Index n = place.begin; n < place.end; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const double w = draw.normal();
      where[at] += Complex(0, tiny * w);
      product += derivative[at] * w;
      size += std::abs(derivative[at] * w);
    }
    const double step = product_of(q, cotangents).imag() / tiny;
    for (Index n = place.begin; n < place.end; ++n) where[static_cast<std::size_t>(n)].imag(0);
    const double error = std::abs(product - step);
    if (!(error <= worst * size)) worst = error / size;
  };
  for (const Part& part : p.net.parts)
    if (part.range.begin < part.range.end && (part.role != Role::steps || p.net.learns_steps))
      check(q.controls, exact.controls, part.range);
  check(q.X, exact.rows, {0, static_cast<Index>(p.X.size())});
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adjoint_sweep)

BOOST_AUTO_TEST_CASE(it_is_the_complex_step_on_six_hundred_networks_with_cotangents_of_every_kind) {
  Draw draw(31);
  const std::vector<std::string> methods = names();
  double worst_explicit = 0, worst_implicit = 0;
  const int networks = repetitions(630);
  for (int n = 0; n < networks; ++n) {
    const auto number = static_cast<std::size_t>(n);
    const auto activation = static_cast<Activation>(number % activations.size());
    const std::string& tableau = methods[number % methods.size()];
    const bool is_explicit = named(tableau).is_explicit();
    const Network net = draw.network(tableau, activation, draw.whole(is_explicit ? 1 : 4, 15),
                                     draw.whole(1, is_explicit ? 20 : 6));
    const Problem<double> p = draw.problem(net, draw.whole(1, 40));
    const Cotangents cotangents = random_cotangents(p, draw);
    const double error = complex_step_error(p, cotangents, draw, plan_blocks<double>(net, p.samples()));
    BOOST_TEST(error <= (is_explicit ? 1e-12 : 1e-11),
               "network " << n << ": " << tableau << ", " << net.layers << " layers, dimension " << net.dim
                          << ", " << traits_of(net.field_kind).name << ", " << net.inputs
                          << " inputs: " << error);
    double& worst = is_explicit ? worst_explicit : worst_implicit;
    worst = std::max(worst, error);
  }
  BOOST_TEST_MESSAGE("worst relative error of " << networks << " products: " << worst_explicit
                                                << " explicit, " << worst_implicit << " implicit");
}

BOOST_AUTO_TEST_CASE(wide_states_several_blocks_and_teams) {
  Draw draw(32);
  ThreadChoice::insist(true);
  for (const int threads : {1, 3}) {
    ThreadLimit::set(threads);
    for (const Index dim : {2, 17, 97})
      for (int kind = 0; kind < 5; ++kind) {
        const Problem<double> p = draw.problem(draw.network("kutta3", Activation::tanh, 3, dim), 150);
        BlockPlan plan = plan_blocks<double>(p.net, p.samples());
        plan.samples = std::min(plan.samples, 4 * tile_width<double>);
        BOOST_TEST(block_count(plan, p.samples()) > 2);
        BOOST_TEST(complex_step_error(p, random_cotangents(p, draw), draw, plan) <= 1e-12,
                   "dimension " << dim);
      }
  }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_storage_or_threads) {
  Draw draw(33);
  ThreadChoice::insist(true);
  for (const Index dim : {1, 2, 5, 100})
    for (const char* tableau : {"euler", "kutta4"}) {
      const Problem<double> p = draw.problem(draw.network(tableau, Activation::sin, 6, dim), 777);
      const Cotangents cotangents = random_cotangents(p, draw);
      BlockPlan plan = plan_blocks<double>(p.net, p.samples());
      if (draw.coin()) plan.shards = {150, 0, 6};
      ThreadLimit::set(1);
      const Result<double> serial = vjp(p, cotangents, plan);
      for (const Storage storage : {Storage::all_stages, Storage::states_only})
        for (const int threads : {1, 2, 3, 7}) {
          plan.storage = storage;
          ThreadLimit::set(threads);
          BOOST_TEST((vjp(p, cotangents, plan) == serial), tableau << ", dimension " << dim);
        }
    }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(the_gradient_of_an_objective_is_the_vjp_of_its_output_gradient_to_the_last_bit) {
  Draw draw(34);
  for (int n = 0; n < 200; ++n) {
    const Network net =
        draw.network("kutta4", Activation::tanh, draw.whole(1, 8), draw.coin() ? draw.whole(1, 20) : 100);
    Problem<double> p =
        draw.problem(net, draw.whole(1, net.dim < 100 ? 300 : 100), static_cast<TargetKind>(n % 2));
    p.objective.regulariser = {};
    std::vector<double> outputs(static_cast<std::size_t>(p.samples() * net.outputs));
    Workspace<double> workspace;
    forward<double>(net, p.controls.data(), p.X.data(), p.samples(), {.outputs = outputs.data()}, workspace);
    Cotangents cotangents;
    cotangents.outputs.resize(outputs.size());
    output_gradient(p.objective, p.data(), net.outputs, outputs.data(), cotangents.outputs.data());
    const Result<double> gradient = gradient_of(p),
                         product = vjp(p, cotangents, plan_blocks<double>(net, p.samples()));
    BOOST_TEST((gradient.controls == product.controls), "network " << n);
    BOOST_TEST((gradient.rows == product.rows), "network " << n);
  }
}

BOOST_AUTO_TEST_CASE(cotangents_of_the_first_state_go_into_the_inputs_and_augmented_components_drop_out) {
  Draw draw(35);
  const Network net(
      {.features = 2, .dim = 3, .layers = 4, .outputs = 1, .tableau = named("kutta3"), .learns_steps = true});
  const Problem<double> p = draw.problem(net, 21);
  Cotangents cotangents{{}, std::vector<double>(5 * 21 * 3), true};
  for (std::size_t n = 0; n < 21 * 3; ++n) cotangents.states[n] = static_cast<double>(n + 1);
  std::vector<double> costates(cotangents.states.size());
  const Result<double> r = vjp(p, cotangents, plan_blocks<double>(net, 21), &costates);
  BOOST_TEST(r.controls == std::vector<double>(p.controls.size()), boost::test_tools::per_element());
  BOOST_TEST(costates == cotangents.states, boost::test_tools::per_element());
  for (std::size_t i = 0; i < 21; ++i) {
    BOOST_TEST(r.rows[2 * i] == static_cast<double>(3 * i + 1));
    BOOST_TEST(r.rows[2 * i + 1] == static_cast<double>(3 * i + 2));
  }
}

BOOST_AUTO_TEST_SUITE_END()
