#include <boost/test/unit_test.hpp>
#include <cmath>

#include "ocdl/objective/second_order.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

using Complex = std::complex<double>;
constexpr double tiny = 1e-40;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The largest error along a random direction of each part of the controls and of the data, relative to the
/// sizes of its terms.
double complex_step_error(const Problem<double>& p, Draw& draw) {
  const Result<double> exact = gradient_of(p);
  Problem<Complex> q = p.as<Complex>();
  double largest = std::abs(value_of(q).real() - exact.value) / (1 + std::abs(exact.value));
  const auto check = [&](std::vector<Complex>& where, const std::vector<double>& derivative, Range range) {
    double product = 0, size = 0;
    for (Index n = range.begin; n < range.end; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const double w = draw.normal();
      where[at] += Complex(0, tiny * w);
      product += derivative[at] * w;
      size += std::abs(derivative[at] * w);
    }
    const double error = std::abs(product - value_of(q).imag() / tiny);
    for (Index n = range.begin; n < range.end; ++n) where[static_cast<std::size_t>(n)].imag(0);
    if (!(error <= largest * size)) largest = error / size;
  };
  for (const Part& part : p.net.parts)
    if (part.range.size() > 0 && (part.role != Role::steps || p.net.learns_steps))
      check(q.controls, exact.controls, part.range);
  check(q.X, exact.rows, {0, static_cast<Index>(p.X.size())});
  return largest;
}

Problem<double> observed_problem(Draw& draw, const Network& net, Index samples, Index times, bool shared) {
  Problem<double> p = draw.problem(net, samples, TargetKind::numbers);
  draw.observe(p, times, shared);
  return p;
}

/// Outputs at the times of observation, by Neville's scheme from all states; of the controls' scalar.
template <class T>
std::vector<T> reference_outputs(const Problem<T>& p) {
  const Network& net = p.net;
  const Index m = p.samples(), q = net.outputs, d = net.dim;
  std::vector<T> states(static_cast<std::size_t>((net.layers + 1) * m * d)), outputs;
  Workspace<T> workspace;
  forward<T>(net, p.controls.data(), p.X.data(), m, {.states = states.data()}, workspace);
  const Controls<const T> u = net.split(p.controls.data());
  const bool are_numbers = net.learns_steps || !net.residual;
  std::vector<double> layer_times = {0};
  for (Index j = 0; j < net.layers; ++j)
    layer_times.push_back(are_numbers ? double(j + 1) : layer_times.back() + ocdl::value_of(u.h(j)));
  const auto times = p.data().targets.times();
  for (Index i = 0; i < m; ++i)
    for (Index n = 0; n < p.times; ++n) {
      const double t = times.at(i, n);
      Index j = 0;
      while (j + 1 < net.layers && t > layer_times[std::size_t(j + 1)]) ++j;
      Index first = std::max<Index>(std::min(std::max<Index>(j - 1, 0), net.layers - 3), 0);
      Index begin = j, end = j + 1;  // the states of the side of its set
      while (begin > 0 && net.set_of(begin - 1) == net.set_of(j)) --begin;
      while (end < net.layers && net.set_of(end) == net.set_of(j)) ++end;
      if (end - begin >= 3) first = std::clamp(first, begin, end - 3);
      const Index count = std::min<Index>(4, net.layers + 1);
      for (Index o = 0; o < q; ++o) {
        std::vector<T> table;
        for (Index l = first; l < first + count; ++l) {
          T z = u.mu()(o);
          for (Index r = 0; r < d; ++r) z += u.W()(o, r) * states[std::size_t((l * m + i) * d + r)];
          table.push_back(z);
        }
        for (Index step = 1; step < count; ++step)
          for (Index l = 0; l + step < count; ++l) {
            const double a = layer_times[std::size_t(first + l)],
                         b = layer_times[std::size_t(first + l + step)];
            table[std::size_t(l)] =
                (T(t - b) * table[std::size_t(l)] + T(a - t) * table[std::size_t(l + 1)]) / T(a - b);
          }
        outputs.push_back(table[0]);
      }
    }
  return outputs;
}

template <class T>
std::vector<T> predicted(const Problem<T>& p) {
  std::vector<T> outputs(static_cast<std::size_t>(p.samples() * p.times * p.net.outputs));
  Workspace<T> workspace;
  predict<T>(p.net, p.controls.data(), p.data(), outputs.data(), workspace);
  return outputs;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, size = 0;
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (!(std::abs(a[n] - b[n]) <= largest)) largest = std::abs(a[n] - b[n]);
    size = std::max(size, std::abs(b[n]));
  }
  return size > 0 ? largest / size : largest;
}

/// A network of steps that are not learned, whose states are those of layers.
Network smooth_network(Index layers, std::vector<Index> sets = {}) {
  return Network({.features = 1,
                  .dim = 1,
                  .layers = layers,
                  .outputs = 1,
                  .tableau = named("kutta4"),
                  .layer_sets = std::move(sets)});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(observations)

BOOST_AUTO_TEST_CASE(gradients_are_the_complex_step) {
  Draw draw(71);
  const std::vector<std::string> methods = names();
  for (std::size_t n = 0; n < 330; ++n) {
    const std::string& tableau = methods[n % methods.size()];
    const bool is_explicit = named(tableau).is_explicit();
    const Network net = draw.network(tableau, static_cast<Activation>(n % activations.size()),
                                     draw.whole(is_explicit ? 1 : 4, 9), draw.whole(1, is_explicit ? 12 : 4));
    const Problem<double> p = observed_problem(draw, net, draw.whole(1, 40), draw.whole(1, 7), draw.coin());
    const double error = complex_step_error(p, draw);
    BOOST_TEST(error <= (is_explicit ? 1e-12 : 1e-11),
               "network " << n << ": " << tableau << ", dimension " << net.dim << ": " << error);
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_wide_states_many_samples_and_teams_are_the_complex_step) {
  Draw draw(72);
  ThreadChoice::insist(true);
  ThreadLimit::set(3);
  for (const Index dim : {2, 17, 97}) {
    const Network net = draw.network("kutta3", Activation::tanh, 6, dim);
    const Problem<double> p = observed_problem(draw, net, dim < 97 ? 1100 : 530, 5, dim == 17);
    BOOST_TEST(complex_step_error(p, draw) <= 1e-12, "dimension " << dim);
  }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(outputs_are_those_of_interpolated_states) {
  Draw draw(73);
  for (int n = 0; n < 200; ++n) {
    const Network net = draw.network("kutta4", Activation::tanh, draw.whole(1, 9), draw.whole(1, 8));
    const Problem<double> p = observed_problem(draw, net, draw.whole(1, 40), draw.whole(1, 7), draw.coin());
    BOOST_TEST(largest_difference(predicted(p), reference_outputs(p)) <= 1e-12, "network " << n);
  }
}

BOOST_AUTO_TEST_CASE(the_value_is_the_sum_over_what_was_observed_and_the_mean_counts_it) {
  Draw draw(74);
  for (int n = 0; n < 50; ++n) {
    const Network net = draw.network("midpoint", Activation::tanh, 6, draw.whole(1, 5));
    Problem<double> p = observed_problem(draw, net, draw.whole(1, 30), draw.whole(1, 5), n % 2);
    p.objective = {SquaredError{}, draw.coin(), {}};
    const std::vector<double> z = reference_outputs(p);
    const Index per_sample = p.times * net.outputs, width = p.data().targets.numbers.width;
    double sum = 0, count = 0;
    for (Index i = 0; i < p.samples(); ++i)
      for (Index k = 0; k < per_sample; ++k) {
        const double value = p.numbers[std::size_t(i * width + k)], weight = p.data().weight(i);
        if (std::isnan(value)) continue;
        sum += weight * 0.5 * std::pow(z[std::size_t(i * per_sample + k)] - value, 2);
        count += weight / double(net.outputs);
      }
    const double expected = p.objective.mean ? sum / count : sum;
    BOOST_TEST(std::abs(value_of(p) - expected) <= 1e-12 * expected);
  }
}

BOOST_AUTO_TEST_CASE(one_observation_at_the_end_is_the_loss_of_the_outputs) {
  Draw draw(75);
  for (int n = 0; n < 60; ++n) {
    const Network net = draw.network("kutta4", Activation::tanh, draw.whole(1, 6), draw.whole(1, 6));
    Problem<double> p = draw.problem(net, draw.whole(1, 600), TargetKind::numbers);
    const std::vector<double> targets = p.numbers;
    draw.observe(p, 1, true);
    p.numbers = targets;
    Problem<double> at_end = p;
    at_end.times = 0;
    const Controls<double> u = net.split(p.controls.data());
    double end = 0;
    for (Index j = 0; j < net.layers; ++j) end += net.residual && !net.learns_steps ? u.h(j) : 1;
    p.shared_times = {end};
    const Result<double> observed = gradient_of(p), expected = gradient_of(at_end);
    BOOST_TEST(std::abs(observed.value - expected.value) <= 1e-13 * std::abs(expected.value));
    BOOST_TEST(largest_difference(observed.controls, expected.controls) <= 1e-13);
    BOOST_TEST(largest_difference(observed.rows, expected.rows) <= 1e-13);
  }
}

BOOST_AUTO_TEST_CASE(products_with_second_derivatives) {
  Draw draw(76);
  const std::vector<std::string> methods = {"kutta4", "trapezoidal", "euler", "dormand_prince"};
  for (std::size_t n = 0; n < 80; ++n) {
    const Network net = draw.network(methods[n % 4], Activation::tanh, draw.whole(4, 7), draw.whole(1, 5));
    Problem<double> p = observed_problem(draw, net, draw.whole(1, 30), draw.whole(1, 5), draw.coin());
    std::vector<double> direction = draw.normals(net.control_size());
    if (!net.learns_steps) std::fill_n(direction.begin() + net.steps().begin, net.step_count(), 0.0);
    Problem<Complex> q = p.as<Complex>();
    for (std::size_t i = 0; i < direction.size(); ++i) q.controls[i] += Complex(0, tiny * direction[i]);
    SecondOrderWorkspace workspace;
    const auto product = [&](Curvature curvature) {
      std::vector<double> result(direction.size());
      curvature_product(net, p.controls.data(), p.data(), p.objective, curvature, direction.data(),
                        result.data(), workspace);
      return result;
    };
    const auto imaginary = [](const std::vector<Complex>& numbers) {
      std::vector<double> result;
      for (const Complex& x : numbers) result.push_back(x.imag() / tiny);
      return result;
    };
    std::vector<double> expected = imaginary(gradient_of(q).controls);
    if (!net.learns_steps) std::fill_n(expected.begin() + net.steps().begin, net.step_count(), 0.0);
    BOOST_TEST(largest_difference(product(Curvature::hessian), expected) <= 1e-11, "network " << n);

    // Of the squared error the matrix of Gauss and Newton is Z^T Z over what was observed.
    p.objective = {SquaredError{}, false, {}};
    std::vector<double> cotangents = imaginary(predicted(q)), vjp(direction.size());
    const Index per_sample = p.times * net.outputs, width = p.data().targets.numbers.width;
    for (Index i = 0; i < p.samples(); ++i)
      for (Index k = 0; k < per_sample; ++k)
        cotangents[std::size_t(i * per_sample + k)] *=
            std::isnan(p.numbers[std::size_t(i * width + k)]) ? 0 : p.data().weight(i);
    Workspace<double> plain;
    with_given_cotangents(net, p.controls.data(), p.data(), cotangents.data(), [&](const Cost<double>& cost) {
      AdjointSweep<double>(net, p.controls.data(), {net, p.X.data()}, p.samples(), {&cost},
                           {.controls = vjp.data()}, plain)
          .run();
    });
    if (!net.learns_steps) std::fill_n(vjp.begin() + net.steps().begin, net.step_count(), 0.0);
    BOOST_TEST(largest_difference(product(Curvature::gauss_newton), vjp) <= 1e-11, "network " << n);
  }
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_storage_or_threads_and_values_not_on_derivatives) {
  Draw draw(77);
  ThreadChoice::insist(true);
  for (const Index dim : {1, 2, 5, 100})
    for (const bool shared : {false, true}) {
      const Network net = draw.network("kutta4", Activation::sin, 8, dim);
      const Problem<double> p = observed_problem(draw, net, 700, 4, shared);
      BlockPlan plan = plan_blocks<double>(net, p.samples(), p.data().targets.grid.kept_per_sample(net));
      ThreadLimit::set(1);
      const Result<double> serial = gradient_of(p, plan);
      const std::vector<double> outputs = predicted(p);
      for (const Storage storage : {Storage::all_stages, Storage::states_only})
        for (const int threads : {1, 2, 3}) {
          plan.storage = storage;
          ThreadLimit::set(threads);
          BOOST_TEST((gradient_of(p, plan) == serial), "dimension " << dim);
          BOOST_TEST(value_of(p) == serial.value);
          BOOST_TEST((predicted(p) == outputs));
        }
    }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(what_was_not_observed_changes_nothing_even_where_its_loss_would_overflow) {
  Draw draw(78);
  const Network net = smooth_network(5);
  Problem<double> p = draw.problem(net, 20, TargetKind::numbers);
  p.objective = {Poisson{}, true, {}};
  std::fill(p.controls.begin(), p.controls.end(), 0.0);
  const Controls<double> u = net.split(p.controls.data());
  for (Index j = 0; j < net.layers; ++j) u.h(j) = 0.2;
  u.W()(0, 0) = 1;
  std::fill(p.X.begin(), p.X.end(), 1.0);
  p.X[3] = 2000;  // exp(2000) is not finite
  p.weights.clear();
  p.times = 2;
  p.shared_times = {0.3, 1};
  p.numbers.assign(40, 1.0);
  p.numbers[6] = p.numbers[7] = not_a_number;
  const Result<double> result = gradient_of(p);
  BOOST_TEST(std::abs(result.value - (std::exp(1.0) - 2)) <= 1e-12);
  for (const double g : result.controls) BOOST_TEST(std::isfinite(g));
  BOOST_TEST(result.rows[3] == 0);
}

BOOST_AUTO_TEST_CASE(single_precision) {
  Draw draw(79);
  for (int n = 0; n < 20; ++n) {
    const Network net = draw.network("kutta4", Activation::tanh, draw.whole(1, 6), draw.whole(1, 6));
    const Problem<double> p = observed_problem(draw, net, draw.whole(1, 100), 4, n % 2);
    const Result<double> exact = gradient_of(p);
    const Result<float> single = gradient_of(p.as<float>());
    BOOST_TEST(std::abs(single.value - exact.value) <= 1e-4 * (1 + std::abs(exact.value)));
    const std::vector<double> rounded(single.controls.begin(), single.controls.end());
    BOOST_TEST(largest_difference(rounded, exact.controls) <= 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(interpolation_is_exact_on_cubics) {
  Draw draw(80);
  for (int n = 0; n < 100; ++n) {
    const Network net = smooth_network(draw.whole(3, 9));
    std::vector<double> controls(static_cast<std::size_t>(net.control_size()), 0.0);
    std::vector<double> times = {0};
    for (Index j = 0; j < net.layers; ++j) {
      net.split(controls.data()).h(j) = 0.05 + draw.uniform();
      times.push_back(times.back() + net.split(controls.data()).h(j));
    }
    const double* vector = controls.data();
    const LayerTimes layers(net, net.split(vector), precision_of<double>);
    const auto cubic = [](double t) { return ((0.3 * t - 1.1) * t + 0.7) * t + 2; };
    for (int k = 0; k < 20; ++k) {
      const double t = times.back() * draw.uniform();
      const Stencil stencil = layers.at(t);
      double sum = 0;
      for (Index i = 0; i < stencil.count; ++i)
        sum += stencil.weights[std::size_t(i)] * cubic(times[std::size_t(stencil.first + i)]);
      BOOST_TEST(std::abs(sum - cubic(t)) <= 1e-11 * (1 + std::abs(cubic(t))));
    }
    for (Index j = 0; j <= net.layers; ++j)
      for (const double shift : {-0.9e-9, 0.0, 0.9e-9}) {
        const Stencil stencil = layers.at(times[std::size_t(j)] + shift * times.back());
        BOOST_TEST((stencil.first == j && stencil.count == 1 && stencil.weights[0] == 1));
      }
  }
}

BOOST_AUTO_TEST_CASE(stencils_stay_on_their_side_of_a_boundary) {
  const Network net = smooth_network(10, {0, 0, 0, 0, 1, 1, 2, 2, 2, 2});
  std::vector<double> controls(static_cast<std::size_t>(net.control_size()), 0.0);
  for (Index j = 0; j < net.layers; ++j) net.split(controls.data()).h(j) = 1;
  const double* vector = controls.data();
  const LayerTimes layers(net, net.split(vector), precision_of<double>);
  // Layers 4 and 5 have three states, so their stencils cross; layer 0 starts at 0.
  const Index first[] = {0, 0, 1, 1, 3, 4, 6, 6, 7, 7};
  for (Index j = 0; j < net.layers; ++j) {
    BOOST_TEST(layers.at(double(j) + 0.5).first == first[j], "layer " << j);
    BOOST_TEST(layers.at(double(j) + 0.5).count == 4);
  }
  for (const Index few : {1, 2}) {
    const Network shallow = smooth_network(few);
    std::vector<double> steps(static_cast<std::size_t>(shallow.control_size()), 0.5);
    const double* begin = steps.data();
    const Stencil stencil = LayerTimes(shallow, shallow.split(begin), precision_of<double>).at(0.3);
    BOOST_TEST((stencil.first == 0 && stencil.count == few + 1));
  }
}

BOOST_AUTO_TEST_CASE(the_interpolation_of_a_smooth_flow_has_order_four) {
  double before = 0;
  for (const Index layers : {8, 16, 32}) {
    const Network net = smooth_network(layers, std::vector<Index>(std::size_t(layers), 0));
    Problem<double> p{net, {}, {}, {}, {}, {}, {}};
    p.objective = {SquaredError{}, false, {}};
    p.controls.assign(std::size_t(net.control_size()), 0.0);
    const Controls<double> u = net.split(p.controls.data());
    u.set(0, 0).parts[0][0] = 1.5;  // y' = tanh(1.5 y + 0.2)
    u.set(0, 0).parts[1][0] = 0.2;
    for (Index j = 0; j < layers; ++j) u.h(j) = 2.0 / double(layers);
    u.W()(0, 0) = 1;
    p.X = {0.1};
    p.times = 50;
    for (int n = 0; n < 50; ++n) p.shared_times.push_back(2 * (n + 0.5) / 50);
    p.numbers.assign(50, 0.0);
    // sinh(w) with w = 1.5 y + 0.2 grows like exp(1.5 t).
    const std::vector<double> z = predicted(p);
    double error = 0;
    for (std::size_t n = 0; n < z.size(); ++n) {
      const double exact =
          (std::asinh(std::sinh(1.5 * 0.1 + 0.2) * std::exp(1.5 * p.shared_times[n])) - 0.2) / 1.5;
      error = std::max(error, std::abs(z[n] - exact));
    }
    if (before > 0) BOOST_TEST(std::log2(before / error) > 3.6);
    before = error;
  }
}

BOOST_AUTO_TEST_SUITE_END()
