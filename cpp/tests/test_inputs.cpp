#include <boost/test/unit_test.hpp>

#include "ocdl/sweep/flow.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

/// What the suites with random networks do not show of inputs: they draw some with inputs, too.
namespace {

NetworkOptions options(FieldKind field, const std::string& tableau, bool linear) {
  return {.features = 2,
          .dim = 3,
          .layers = 4,
          .outputs = 2,
          .tableau = named(tableau),
          .field_kind = field,
          .width = field == FieldKind::mlp ? 9 : 0,
          .degree = field == FieldKind::polynomial ? 2 : 0,
          .inputs = 2,
          .linear_inputs = linear,
          .learns_steps = true};
}

template <class F>
void for_each_network(const F& f) {
  for (const FieldKind field : {FieldKind::mlp, FieldKind::polynomial})
    for (const std::string& tableau : names())
      for (const bool linear : {false, true}) f(Network(options(field, tableau, linear)));
}

std::vector<double> states_of(const Problem<double>& p, const std::vector<double>& X) {
  std::vector<double> states(static_cast<std::size_t>((p.net.layers + 1) * p.samples() * p.net.dim));
  Workspace<double> workspace;
  forward<double>(p.net, p.controls.data(), X.data(), p.samples(), {.states = states.data()}, workspace);
  return states;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(inputs)

BOOST_AUTO_TEST_CASE(a_component_that_moves_as_an_input_does_gives_the_same_states) {
  // y' = A y + a x + c with x linear in time is the field of one more component, x' = slope, of a state.
  Draw draw(61);
  for (const std::string& tableau : names()) {
    NetworkOptions with_inputs = options(FieldKind::polynomial, tableau, true);
    with_inputs.features = 3, with_inputs.degree = 1, with_inputs.inputs = 1,
    with_inputs.learns_steps = false;
    NetworkOptions with_state = with_inputs;
    with_state.features = with_state.dim = 4, with_state.inputs = 0;
    Problem<double> p = draw.problem(Network(with_inputs), 5);
    Problem<double> q = draw.problem(Network(with_state), 5);
    const double slope = 0.7, h = 0.25;
    std::fill(q.controls.begin(), q.controls.end(), 0.0);
    for (Index j = 0; j < 4; ++j) {
      const auto from = p.net.split(p.controls.data()).at(j, 0).matrix(0, 3, 5);
      auto to = q.net.split(q.controls.data()).at(j, 0).matrix(0, 4, 5);
      to.topRows(3) = from;
      to(3, 0) = slope;
      p.net.split(p.controls.data()).h(j) = q.net.split(q.controls.data()).h(j) = h;
    }
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t n = 0; n < 3; ++n) q.X[4 * i + n] = p.X[8 * i + n];
      for (std::size_t j = 0; j < 5; ++j)
        p.X[8 * i + 3 + j] = q.X[4 * i + 3] + slope * h * static_cast<double>(j);
    }
    const std::vector<double> a = states_of(p, p.X), b = states_of(q, q.X);
    for (std::size_t n = 0; n < a.size() / 3; ++n)
      for (std::size_t r = 0; r < 3; ++r)
        BOOST_TEST(std::abs(a[3 * n + r] - b[4 * n + r]) <= 1e-13 * (1 + std::abs(b[4 * n + r])), tableau);
  }
}

BOOST_AUTO_TEST_CASE(fused_kernels_have_the_values_of_the_general_way) {
  Draw draw(62);
  for_each_network([&](const Network& net) {
    const Problem<double> p = draw.problem(net, 21);
    const Problem<std::complex<double>> q = p.as<std::complex<double>>();
    BOOST_TEST(value_of(p) == value_of(q).real(), boost::test_tools::tolerance(1e-12));
  });
}

BOOST_AUTO_TEST_CASE(the_tangent_of_inputs_is_the_transpose_of_their_gradient) {
  Draw draw(63);
  for_each_network([&](const Network& net) {
    const Problem<double> p = draw.problem(net, 11);
    const std::vector<double> direction = draw.normals(static_cast<Index>(p.X.size())),
                              cotangents = draw.normals(11 * net.dim);
    std::vector<double> tangents(static_cast<std::size_t>(5 * 11 * net.dim)), rows(p.X.size());
    Workspace<double> workspace;
    tangent<double>(net, p.controls.data(), p.X.data(), 11, nullptr, direction.data(), tangents.data(),
                    workspace);
    const StateCotangents<double> cost(cotangents.data(), false, 11);
    AdjointSweep<double>(net, p.controls.data(), {net, p.X.data()}, 11, {&cost}, {.rows = rows.data()},
                         workspace)
        .run();
    double left = 0, right = 0, size = 0;
    for (std::size_t n = 0; n < cotangents.size(); ++n)
      left += cotangents[n] * tangents[tangents.size() - cotangents.size() + n];
    for (std::size_t n = 0; n < rows.size(); ++n) {
      right += rows[n] * direction[n];
      size += std::abs(rows[n] * direction[n]);
    }
    BOOST_TEST(std::abs(left - right) <= 1e-12 * size, net.tableau.name());
  });
}

BOOST_AUTO_TEST_CASE(the_last_inputs_of_a_feed_forward_network_do_not_count) {
  Draw draw(64);
  NetworkOptions feed_forward = options(FieldKind::mlp, "euler", true);
  feed_forward.residual = feed_forward.learns_steps = false;
  const Problem<double> p = draw.problem(Network(feed_forward), 3);
  const Result<double> r = gradient_of(p);
  Problem<std::complex<double>> q = p.as<std::complex<double>>();
  for (std::size_t n = 0; n < p.X.size(); ++n) {
    q.X[n] += std::complex<double>(0, 1e-40);
    BOOST_TEST(std::abs(r.rows[n] - value_of(q).imag() / 1e-40) <= 1e-13);
    q.X[n].imag(0);
    if (n % 12 >= 10) BOOST_TEST(r.rows[n] == 0);
  }
}

BOOST_AUTO_TEST_CASE(fields_and_tableaux_without_inputs_are_refused) {
  BOOST_CHECK_THROW(Network(options(FieldKind::dense, "euler", true)), std::invalid_argument);
  NetworkOptions other_times = options(FieldKind::mlp, "euler", true);
  other_times.tableau = Tableau(named("kutta3").A(), named("kutta3").b(), Vector::Zero(3));
  BOOST_CHECK_THROW(Network{other_times}, std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
