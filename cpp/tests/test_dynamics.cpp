#include <boost/test/unit_test.hpp>
#include <cmath>

#include "ocdl/evaluator/initial_states.hpp"
#include "ocdl/objective/second_order.hpp"
#include "ocdl/sweep/flow.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

/// All that learning a system from time series takes, together: fields of any width, inputs, shared controls,
/// observations at own times with holes, and initial states that are learned.
namespace {

using Complex = std::complex<double>;
constexpr double tiny = 1e-40;

/// A network of a field that systems are learned with.
Network random_network(Draw& draw, const std::string& tableau, Activation activation) {
  const bool is_explicit = named(tableau).is_explicit();
  while (true) {
    const Network net = draw.network(tableau, activation, draw.whole(is_explicit ? 1 : 4, 9),
                                     draw.whole(1, is_explicit ? 12 : 4));
    const FieldKind field = net.field_kind;
    if (field == FieldKind::dense || field == FieldKind::mlp || field == FieldKind::polynomial) return net;
  }
}

/// A problem whose initial states S are learned, too.
struct LearnedProblem {
  Problem<double> observed;
  InitialStateWeights weights;
  std::vector<double> states;

  std::vector<double> vector() const {
    std::vector<double> all = observed.controls;
    all.insert(all.end(), states.begin(), states.end());
    return all;
  }

  /// J(u, S) by the formula, from the loss of samples that start from S.
  Complex value(const std::vector<Complex>& vector) const {
    const Network& net = observed.net;
    const Index m = observed.samples(), d = net.dim, row = net.row_size();
    const Complex* S = vector.data() + net.control_size();
    Problem<Complex> from = observed.as<Complex>();
    from.net = with_whole_states(net);
    from.controls.assign(vector.data(), S);
    from.X.clear();
    for (Index i = 0; i < m; ++i) {
      from.X.insert(from.X.end(), S + i * d, S + (i + 1) * d);
      from.X.insert(from.X.end(), observed.X.begin() + i * row + net.features,
                    observed.X.begin() + (i + 1) * row);
    }
    Complex sum = value_of(from);
    const double scale = 0.5 / static_cast<double>(m);
    for (Index i = 0; i < m; ++i)
      for (Index f = 0; f < net.features; ++f)
        if (const double x = observed.X[std::size_t(i * row + f)]; !std::isnan(x))
          sum += scale * weights.observed * observed.data().weight(i) * std::pow(S[i * d + f] - x, 2);
    std::vector<Complex> last(std::size_t(m * d));
    Workspace<Complex> workspace;
    forward<Complex>(from.net, from.controls.data(), from.X.data(), m, {.final_state = last.data()},
                     workspace);
    for (Index i = 0; i < static_cast<Index>(weights.next_window.size()); ++i)
      for (Index f = 0, n = weights.next_window[std::size_t(i)]; n >= 0 && f < d; ++f)
        sum += scale * weights.continuity * std::pow(last[std::size_t(i * d + f)] - S[n * d + f], 2);
    return sum;
  }
};

/// Halves the field's controls where its stages are solved for: then their equations have a solution.
void tame(Problem<double>& p) {
  for (Index n = 0; p.net.largest_group > 0 && n < p.net.steps().begin; ++n)
    p.controls[static_cast<std::size_t>(n)] *= 0.5;
}

LearnedProblem random_problem(Draw& draw, const Network& net) {
  const Index samples = draw.whole(1, 30), times = draw.whole(1, 7);
  LearnedProblem p{draw.problem(net, samples, TargetKind::numbers), {}, draw.normals(samples * net.dim, 0.5)};
  draw.observe(p.observed, times, draw.coin());
  tame(p.observed);
  for (Index i = 0; i < samples; ++i)
    for (Index f = 0; f < net.features; ++f)
      if (draw.coin(0.3))
        p.observed.X[std::size_t(i * net.row_size() + f)] = std::numeric_limits<double>::quiet_NaN();
  p.weights = {draw.uniform(), draw.uniform(), {}};
  if (draw.coin())  // windows of series in a random order of 3 each
    for (Index i = 0; i < samples; ++i)
      p.weights.next_window.push_back(i % 3 == 2 || i + 1 == samples ? -1 : i + 1);
  return p;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, size = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (!(std::abs(a[n] - b[n]) <= largest)) largest = std::abs(a[n] - b[n]);
    size = std::max(size, std::abs(b[n]));
  }
  return size > 0 ? largest / size : largest;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dynamics)

BOOST_AUTO_TEST_CASE(gradients_by_controls_and_initial_states_are_the_complex_step_on_five_hundred_networks) {
  Draw draw(91);
  const std::vector<std::string> methods = names();
  for (std::size_t n = 0; n < 500; ++n) {
    const std::string& tableau = methods[n % methods.size()];
    const Network net = random_network(draw, tableau, static_cast<Activation>(n % activations.size()));
    const LearnedProblem p = random_problem(draw, net);
    InitialStatesEvaluator<double> evaluator(net, p.observed.data(), p.observed.objective, p.weights);
    const std::vector<double> vector = p.vector();
    std::vector<double> gradient(vector.size());
    const double value =
        evaluator.differentiate(vector.data(), {.controls = gradient.data()}, Evaluator<double>::all_samples);

    std::vector<Complex> moved(vector.begin(), vector.end());
    double error = std::abs(p.value(moved).real() - value) / (1 + std::abs(value));
    const auto check = [&](Index begin, Index end) {
      double product = 0, size = 0;
      for (auto at = std::size_t(begin); at < std::size_t(end); ++at) {
        const double w = draw.normal();
        moved[at].imag(tiny * w);
        product += gradient[at] * w;
        size += std::abs(gradient[at] * w);
      }
      const double difference = std::abs(product - p.value(moved).imag() / tiny);
      for (auto at = std::size_t(begin); at < std::size_t(end); ++at) moved[at].imag(0);
      if (!(difference <= error * size)) error = difference / size;
    };
    for (const Part& part : net.parts)
      if (part.range.size() > 0 && (part.role != Role::steps || net.learns_steps))
        check(part.range.begin, part.range.end);
    check(net.control_size(), static_cast<Index>(vector.size()));
    BOOST_TEST(error <= (named(tableau).is_explicit() ? 1e-12 : 1e-11),
               "network " << n << ": " << tableau << ", " << traits_of(net.field_kind).name << ", dimension "
                          << net.dim << ", " << net.inputs << " inputs: " << error);
  }
}

BOOST_AUTO_TEST_CASE(products_with_second_derivatives_are_the_complex_step_of_the_gradient) {
  Draw draw(92);
  const std::vector<std::string> methods = names();
  for (std::size_t n = 0; n < 200; ++n) {
    const std::string& tableau = methods[n % methods.size()];
    const Network net = random_network(draw, tableau, Activation::tanh);
    Problem<double> p = draw.problem(net, draw.whole(1, 20), TargetKind::numbers);
    draw.observe(p, draw.whole(1, 5), draw.coin());
    tame(p);
    std::vector<double> direction = draw.normals(net.control_size()), product(direction.size());
    if (!net.learns_steps) std::fill_n(direction.begin() + net.steps().begin, net.step_count(), 0.0);
    SecondOrderWorkspace workspace;
    curvature_product(net, p.controls.data(), p.data(), p.objective, Curvature::hessian, direction.data(),
                      product.data(), workspace);
    Problem<Complex> q = p.as<Complex>();
    for (std::size_t i = 0; i < direction.size(); ++i) q.controls[i] += Complex(0, tiny * direction[i]);
    std::vector<double> expected;
    for (const Complex& x : gradient_of(q).controls) expected.push_back(x.imag() / tiny);
    if (!net.learns_steps) std::fill_n(expected.begin() + net.steps().begin, net.step_count(), 0.0);
    const double error = largest_difference(product, expected);
    BOOST_TEST(error <= (named(tableau).is_explicit() ? 1e-12 : 1e-11),
               "network " << n << ": " << tableau << ", " << traits_of(net.field_kind).name << ", dimension "
                          << net.dim << ": " << error);
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_long_series_are_so_short_that_their_stages_stay) {
  Draw draw(93);
  const Network net({.features = 2,
                     .dim = 2,
                     .layers = 100,
                     .outputs = 2,
                     .tableau = named("kutta4"),
                     .field_kind = FieldKind::mlp,
                     .width = 50,
                     .layer_sets = std::vector<Index>(100, 0)});
  const BlockPlan plan = plan_blocks<double>(net, 60);
  BOOST_TEST((plan.storage == Storage::all_stages));
  BOOST_TEST(plan.samples < 4 * tile_width<double>);
  Problem<double> p = draw.problem(net, 60, TargetKind::numbers);
  draw.observe(p, 9, false);
  BlockPlan again = plan_blocks<double>(net, 60, p.data().targets.grid.kept_per_sample(net));
  again.storage = Storage::states_only;
  const Result<double> expected = gradient_of(p, again);
  ThreadChoice::insist(true);
  for (const int threads : {1, 3}) {
    ThreadLimit::set(threads);
    BOOST_TEST((gradient_of(p) == expected), threads << " threads");
  }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_SUITE_END()
