#include <boost/test/unit_test.hpp>
#include <cmath>

#include "ocdl/objective/second_order.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/random_problem.hpp"
#include "tests/repetitions.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

using Complex = std::complex<double>;
constexpr double tiny = 1e-40;

/// Also keeps NaN, which std::max would drop.
void keep_worst(double& worst, double error) {
  if (!(error <= worst)) worst = error;
}

/// The worst error of <gradient, w> against Im J(u + i eps w) / eps, relative to the sum of |gradient_n w_n|,
/// over dense directions and single entries of each part of the controls and of the data.
double complex_step_error(const Problem<double>& p, Draw& draw) {
  const Result<double> exact = gradient_of(p);
  Problem<Complex> q = p.as<Complex>();
  double worst = 0;
  const auto check = [&](std::vector<Complex>& where, const std::vector<double>& derivative, Index begin,
                         Index end) {
    if (begin == end) return;
    for (const bool single : {false, true}) {
      const Index entry = draw.whole(begin, end - 1);
      double product = 0, size = 0, largest = 0;
      for (Index n = begin; n < end; ++n) {
        const auto at = static_cast<std::size_t>(n);
        const double w = single ? double(n == entry) : draw.normal();
        where[at] += Complex(0, tiny * w);
        product += derivative[at] * w;
        size += std::abs(derivative[at] * w);
        largest = std::max(largest, std::abs(derivative[at]));
      }
      const double step = value_of(q).imag() / tiny;
      for (Index n = begin; n < end; ++n) where[static_cast<std::size_t>(n)].imag(0);
      if (single) size = largest;
      if (size > 0 || step != 0) keep_worst(worst, std::abs(product - step) / size);
    }
  };
  for (const Part& part : p.net.parts)
    if (part.role != Role::steps || p.net.learns_steps)
      check(q.controls, exact.controls, part.range.begin, part.range.end);
  check(q.X, exact.rows, 0, static_cast<Index>(q.X.size()));
  return worst;
}

std::vector<double> product_of(const Problem<double>& p, Curvature curvature,
                               const std::vector<double>& direction) {
  SecondOrderWorkspace workspace;
  std::vector<double> product(direction.size());
  curvature_product(p.net, p.controls.data(), p.data(), p.objective, curvature, direction.data(),
                    product.data(), workspace);
  return product;
}

/// A direction of all controls; steps that are given, not learned, are no variables.
std::vector<double> random_direction(const Network& net, Draw& draw) {
  std::vector<double> direction = draw.normals(net.control_size());
  if (!net.learns_steps) std::fill_n(direction.begin() + net.steps().begin, net.step_count(), 0.0);
  return direction;
}

/// The worst error of a Hessian product against the complex step of the gradient, Im g(u + i eps w) / eps,
/// relative to its largest entry.
double product_error(const Problem<double>& p, Draw& draw) {
  const std::vector<double> direction = random_direction(p.net, draw);
  const std::vector<double> product = product_of(p, Curvature::hessian, direction);
  Problem<Complex> q = p.as<Complex>();
  for (std::size_t n = 0; n < direction.size(); ++n) q.controls[n] += Complex(0, tiny * direction[n]);
  std::vector<Complex> gradient(direction.size());
  Workspace<Complex> workspace;
  value_and_derivatives<Complex>(q.net, q.controls.data(), q.data(), q.objective,
                                 {.controls = gradient.data()}, workspace);
  double worst = 0, largest = 0;
  for (std::size_t n = 0; n < direction.size(); ++n) {
    const double exact = gradient[n].imag() / tiny;
    largest = std::max(largest, std::abs(exact));
    keep_worst(worst, std::abs(product[n] - exact));
  }
  return largest > 0 ? worst / largest : worst;
}

std::vector<std::string> tableaux(bool is_explicit) {
  std::vector<std::string> chosen = names();
  std::erase_if(chosen, [&](const std::string& name) { return named(name).is_explicit() != is_explicit; });
  return chosen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(objective)

BOOST_AUTO_TEST_CASE(the_gradient_is_the_complex_step_on_a_thousand_networks) {
  Draw draw(1);
  const std::vector<std::string> methods = tableaux(true);
  double worst = 0;
  const int networks = repetitions(1050);
  for (int n = 0; n < networks; ++n) {
    const auto activation = static_cast<Activation>(static_cast<std::size_t>(n) % activations.size());
    const std::string& tableau = methods[static_cast<std::size_t>(n) % methods.size()];
    const Index layers = draw.coin(0.8) ? draw.whole(1, 20) : draw.whole(21, 100);
    const Network net = draw.network(tableau, activation, layers, draw.whole(1, 20));
    const double error = complex_step_error(draw.problem(net, draw.whole(1, 9)), draw);
    BOOST_TEST(error <= 1e-12, "network " << n << ": " << tableau << ", " << layers << " layers, dimension "
                                          << net.dim << ", " << traits_of(activation).name << ": " << error);
    keep_worst(worst, error);
  }
  BOOST_TEST_MESSAGE("worst relative error of " << networks << " gradients: " << worst);
}

BOOST_AUTO_TEST_CASE(the_gradient_of_an_implicit_method_is_the_complex_step_on_five_hundred_networks) {
  Draw draw(11);
  const std::vector<std::string> methods = tableaux(false);
  double worst = 0;
  const int networks = repetitions(520);
  for (int n = 0; n < networks; ++n) {
    const auto number = static_cast<std::size_t>(n);
    const auto activation = static_cast<Activation>((number / methods.size()) % activations.size());
    const std::string& tableau = methods[number % methods.size()];
    const Index layers = draw.whole(4, 12);  // steps that are short enough for a solution to exist
    const Network net = draw.network(tableau, activation, layers, draw.whole(1, 6));
    const double error = complex_step_error(draw.problem(net, draw.whole(1, 9)), draw);
    BOOST_TEST(error <= 1e-11, "network " << n << ": " << tableau << ", " << layers << " layers, dimension "
                                          << net.dim << ", " << traits_of(net.field_kind).name << ", "
                                          << traits_of(activation).name << ": " << error);
    keep_worst(worst, error);
  }
  BOOST_TEST_MESSAGE("worst relative error of " << networks << " gradients: " << worst);
}

/// Equations that Newton's method alone does not solve, of fields whose equations are well conditioned.
BOOST_AUTO_TEST_CASE(steep_fields_have_exact_first_and_second_derivatives_too) {
  Draw draw(12);
  for (const char* tableau : {"implicit_euler", "implicit_midpoint", "sdirk2", "radau_iia2"})
    for (const FieldKind field : {FieldKind::dense, FieldKind::antisymmetric}) {
      const Network net({.features = 2,
                         .dim = 2,
                         .layers = 2,
                         .outputs = 1,
                         .tableau = named(tableau),
                         .field_kind = field,
                         .learns_steps = true});
      Problem<double> p = draw.problem(net, 40);
      for (Index j = 0; j < net.layers; ++j) {
        MatrixView<double> K = net.split(p.controls.data()).at(j, 0).matrix(0, net.dim, net.dim);
        K *= 8;
        if (field == FieldKind::dense) K = (-K * K.transpose() / 16).eval();
        net.split(p.controls.data()).h(j) = 1;
      }
      BOOST_TEST(complex_step_error(p, draw) <= 1e-10, tableau << ", " << traits_of(field).name);
      BOOST_TEST(product_error(p, draw) <= 1e-8, tableau << ", " << traits_of(field).name);
    }
}

BOOST_AUTO_TEST_CASE(the_gradient_of_a_regression_is_the_complex_step_on_a_thousand_networks) {
  Draw draw(21);
  const std::vector<std::string> methods = names();
  double worst = 0;
  const int networks = repetitions(1050);
  for (int n = 0; n < networks; ++n) {
    const auto number = static_cast<std::size_t>(n);
    const auto activation = static_cast<Activation>(number % activations.size());
    const std::string& tableau = methods[number % methods.size()];
    const bool is_explicit = named(tableau).is_explicit();
    const Network net = draw.network(tableau, activation, draw.whole(is_explicit ? 1 : 4, 15),
                                     draw.whole(1, is_explicit ? 16 : 6));
    const Problem<double> p = draw.problem(net, draw.whole(1, 30), TargetKind::numbers);
    const double error = complex_step_error(p, draw);
    BOOST_TEST(error <= (is_explicit ? 1e-12 : 1e-11),
               "network " << n << ": " << tableau << ", " << net.layers << " layers, dimension " << net.dim
                          << ", " << activations[number % activations.size()].name << ", "
                          << traits_of(p.objective.loss).name << ": " << error);
    keep_worst(worst, error);
  }
  BOOST_TEST_MESSAGE("worst relative error of " << networks << " gradients: " << worst);
}

BOOST_AUTO_TEST_CASE(wide_states_and_many_samples_have_exact_gradients_too) {
  Draw draw(2);
  for (const Index dim : {8, 17, 33, 64, 97, 130}) {
    const Network net = draw.network("kutta4", Activation::tanh, 3, dim);
    BOOST_TEST(complex_step_error(draw.problem(net, 75), draw) <= 1e-12, "dimension " << dim);
  }
  for (const Index dim : {1, 2, 3, 4, 5}) {
    const Network net = draw.network("heun3", Activation::sin, 4, dim);
    BOOST_TEST(complex_step_error(draw.problem(net, 1500), draw) <= 1e-12, "dimension " << dim);
  }
}

BOOST_AUTO_TEST_CASE(blocks_that_a_team_shares_add_up_to_the_exact_gradient) {
  Draw draw(7);
  ThreadChoice::insist(true);
  ThreadLimit::set(3);
  for (const auto& [tableau, field] :
       {std::pair{"midpoint", FieldKind::hamiltonian}, {"dormand_prince", FieldKind::dense}})
    for (const bool stage_controls : {false, true}) {
      const Network net({.features = 98,
                         .dim = 98,
                         .layers = 2,
                         .outputs = 3,
                         .tableau = named(tableau),
                         .field_kind = field,
                         .stage_controls = stage_controls,
                         .learns_steps = true});
      const Problem<double> p = draw.problem(net, 530);
      BOOST_TEST(block_count(plan_blocks<double>(net, 530), 530) > 1);
      BOOST_TEST(complex_step_error(p, draw) <= 1e-12, tableau);
    }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(shards_add_up_to_the_exact_gradient) {
  Draw draw(14);
  ThreadChoice::insist(true);
  for (const Index dim : {2, 97}) {
    const Network net({.features = dim,
                       .dim = dim,
                       .layers = 2,
                       .outputs = 2,
                       .tableau = named("euler"),
                       .learns_steps = true});
    const Problem<double> p = draw.problem(net, 2 * shard_size(1) + 100);
    BOOST_TEST(plan_blocks<double>(net, p.samples()).shards.all == 3);
    BOOST_TEST(complex_step_error(p, draw) <= 1e-12, "dimension " << dim);
  }
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(wide_sweeps_show_that_controls_and_gradient_are_finite_only_where_they_are) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Draw draw(15);
  int shown = 0;
  const auto shows_finite = [](const Problem<double>& p, std::vector<double>& gradient) {
    Workspace<double> workspace;
    bool answer = false;
    gradient.assign(p.controls.size(), 0);
    value_and_derivatives<double>(p.net, p.controls.data(), p.data(), p.objective,
                                  {.controls = gradient.data(), .known_finite = &answer}, workspace);
    return answer;
  };
  ThreadChoice::insist(true);
  for (std::size_t n = 0; n < 120; ++n) {
    const auto activation = static_cast<Activation>(n % activations.size());
    const char* tableau = std::array{"euler", "kutta4", "heun3"}[n % 3];
    Problem<double> p = draw.problem(draw.network(tableau, activation, 3, 98), draw.whole(1, 40));
    std::vector<double> gradient;
    const bool expected = p.objective.regulariser.none() && !traits_of(p.net.field_kind).is_mapped;
    BOOST_TEST(shows_finite(p, gradient) == expected, "network " << n);
    shown += expected;
    const Part& part = p.net.parts[static_cast<std::size_t>(draw.whole(0, Index(p.net.parts.size()) - 1))];
    if (part.range.size() == 0) continue;
    auto& control = p.controls[static_cast<std::size_t>(draw.whole(part.range.begin, part.range.end - 1))];
    control = std::array{infinity, -infinity, std::nan("")}[n / 3 % 3];
    BOOST_TEST(!shows_finite(p, gradient), "network " << n << ", " << part.name << " with " << control);
  }
  ThreadChoice::insist(false);
  BOOST_TEST(shown > 40);

  // Cotangents and states are finite, their products in dJ/dK are not.
  Problem<double> p = draw.problem(Network({.features = 98,
                                            .dim = 98,
                                            .layers = 1,
                                            .outputs = 1,
                                            .tableau = named("euler"),
                                            .activation = Activation::identity}),
                                   5, TargetKind::numbers);
  p.objective = {SquaredError{}, false, {}};
  std::fill(p.controls.begin(), p.controls.end(), 0);
  std::fill(p.X.begin(), p.X.end(), 1e200);
  std::fill(p.numbers.begin(), p.numbers.end(), 1e10);
  const Controls<double> u = p.net.split(p.controls.data());
  u.at(0, 0).matrix(0, p.net.dim, p.net.dim).diagonal().setConstant(-1);
  u.h(0) = 1;
  u.W().setConstant(1e150);
  std::vector<double> gradient;
  BOOST_TEST(!shows_finite(p, gradient));
  for (const Part& part : p.net.parts)
    BOOST_TEST(
        (first_non_finite(gradient.data(), part.range.begin, part.range.end) < 0) == (part.name != "K"),
        part.name);

  // A stage that does not matter has controls that are not checked.
  const Tableau dead_end(Matrix{{0, 0}, {1, 0}}, Vector{{1, 0}});
  p = draw.problem(Network({.features = 98,
                            .dim = 98,
                            .layers = 2,
                            .outputs = 1,
                            .tableau = dead_end,
                            .stage_controls = true}),
                   5);
  p.objective.regulariser = {};
  p.controls[98 * 98 + 7] = infinity;
  BOOST_TEST(!shows_finite(p, gradient));
}

BOOST_AUTO_TEST_CASE(a_team_solves_the_equations_of_wide_stages) {
  Draw draw(8);
  ThreadChoice::insist(true);
  ThreadLimit::set(3);
  const Network net({.features = 96,
                     .dim = 96,
                     .layers = 1,
                     .outputs = 1,
                     .tableau = named("trapezoidal"),
                     .learns_steps = true});
  BOOST_TEST(plan_blocks<double>(net, 11).by_team);
  BOOST_TEST(complex_step_error(draw.problem(net, 11), draw) <= 1e-12);
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(deep_and_wide_networks_stay_within_the_memory_budget) {
  for (const auto& [dim, layers, tableau] : {std::tuple{2, 20, "euler"},
                                             {16, 100, "kutta4"},
                                             {784, 100, "kutta4"},
                                             {1024, 100, "dormand_prince"}}) {
    const Network net(
        {.features = dim, .dim = dim, .layers = layers, .outputs = 1, .tableau = named(tableau)});
    const BlockPlan plan = plan_blocks<double>(net, 1000000);
    const Index bytes =
        net.trajectory_shape(plan.storage).numbers_per_sample() * plan.samples * Index(sizeof(double));
    BOOST_TEST(bytes <= (plan.by_team ? team_budget : stage_budget),
               dim << " x " << layers << " " << tableau);
  }
}

BOOST_AUTO_TEST_CASE(value_and_gradient_see_the_same_value) {
  Draw draw(3);
  for (const Index dim : {1, 2, 7, 20, 100})
    for (const Index samples : {1, 63, 1000}) {
      const Problem<double> p = draw.problem(draw.network("kutta3", Activation::tanh, 5, dim), samples);
      BOOST_TEST(value_of(p) == gradient_of(p).value);
    }
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_storage_or_threads) {
  Draw draw(4);
  ThreadChoice::insist(true);
  for (const Index dim : {1, 2, 3, 4, 5, 16, 100})
    for (const char* tableau : {"euler", "kutta4", "dormand_prince", "trapezoidal", "gauss2"}) {
      if (dim > 5 && !named(tableau).is_explicit()) continue;  // the same code, only slower
      const Problem<double> p = draw.problem(draw.network(tableau, Activation::sin, 6, dim), 1111);
      BlockPlan plan = plan_blocks<double>(p.net, 1111);
      if (draw.coin()) plan.shards = {200, 0, 6};
      ThreadLimit::set(1);
      const Result<double> serial = gradient_of(p, plan);
      for (const Storage storage : {Storage::all_stages, Storage::states_only})
        for (const int threads : {1, 2, 3, 7}) {
          plan.storage = storage;
          ThreadLimit::set(threads);
          BOOST_TEST((gradient_of(p, plan) == serial),
                     tableau << ", dimension " << dim << ", " << threads << " threads");
        }
      ThreadLimit::set(2);
    }
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(single_precision_agrees_with_double) {
  Draw draw(5);
  for (const Index dim : {2, 5, 100}) {
    const Problem<double> p = draw.problem(draw.network("kutta4", Activation::tanh, 10, dim), 400);
    const Result<double> wide = gradient_of(p);
    const Result<float> narrow = gradient_of(p.as<float>());
    BOOST_TEST(std::abs(narrow.value - wide.value) <= 1e-5 * std::abs(wide.value));
    double error = 0, size = 0;
    for (std::size_t n = 0; n < wide.controls.size(); ++n) {
      error += std::pow(narrow.controls[n] - wide.controls[n], 2);
      size += std::pow(wide.controls[n], 2);
    }
    BOOST_TEST(std::sqrt(error) <= 1e-5 * std::sqrt(size));
  }
}

BOOST_AUTO_TEST_CASE(a_warm_evaluation_allocates_nothing) {
  Draw draw(6);
  for (const auto& [tableau, dim] :
       {std::pair{"kutta4", 2}, {"gauss2", 2}, {"kutta4", 16}, {"gauss2", 6}, {"kutta4", 100}}) {
    const Problem<double> p = draw.problem(draw.network(tableau, Activation::tanh, 5, dim), 500);
    std::vector<double> gradient(p.controls.size());
    Workspace<double> workspace;
    BlockPlan plan = plan_blocks<double>(p.net, 500);
    plan.shards = {100, 0, 5};
    const auto evaluate = [&] {
      value_and_derivatives<double>(p.net, p.controls.data(), p.data(), p.objective,
                                    {gradient.data(), nullptr, nullptr}, workspace, plan);
    };
    evaluate();
    const long before = allocation_count();
    Eigen::internal::set_is_malloc_allowed(false);
    evaluate();
    Eigen::internal::set_is_malloc_allowed(true);
    BOOST_TEST(allocation_count() == before);
  }
}

BOOST_AUTO_TEST_CASE(the_hessian_product_is_the_complex_step_of_the_gradient_on_five_hundred_networks) {
  Draw draw(8);
  const std::vector<std::string> tableaux = names();
  double worst = 0;
  const int networks = repetitions(539);
  for (int n = 0; n < networks; ++n) {
    const auto activation = static_cast<Activation>(static_cast<std::size_t>(n) % activations.size());
    const std::string& tableau = tableaux[static_cast<std::size_t>(n) % tableaux.size()];
    const Index least = named(tableau).is_explicit() ? 1 : 4;  // steps for which stages have a solution
    const Index layers = draw.coin(0.9) ? draw.whole(least, 20) : draw.whole(21, 60);
    const Network net = draw.network(tableau, activation, layers, draw.whole(1, 12));
    const auto kind = static_cast<TargetKind>(draw.coin());
    const double error = product_error(draw.problem(net, draw.whole(1, 19), kind), draw);
    BOOST_TEST(error <= 1e-11, "network " << n << ": " << tableau << ", " << layers << " layers, dimension "
                                          << net.dim << ", " << traits_of(activation).name << ": " << error);
    keep_worst(worst, error);
  }
  BOOST_TEST_MESSAGE("worst relative error of " << networks << " Hessian products: " << worst);
}

BOOST_AUTO_TEST_CASE(wide_states_and_teams_have_exact_hessian_products_too) {
  Draw draw(9);
  ThreadChoice::insist(true);
  for (const int threads : {1, 3}) {
    ThreadLimit::set(threads);
    for (const Index dim : {17, 64, 97})
      BOOST_TEST(
          product_error(draw.problem(draw.network("kutta3", Activation::tanh, 2, dim), 300), draw) <= 1e-11,
          "dimension " << dim);
    BOOST_TEST(product_error(draw.problem(draw.network("heun3", Activation::sin, 4, 2), 1500), draw) <=
               1e-11);
  }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(bits_of_products_do_not_depend_on_threads) {
  Draw draw(10);
  ThreadChoice::insist(true);
  for (const Index dim : {1, 2, 3, 4, 5, 16, 100})
    for (const Curvature curvature : {Curvature::hessian, Curvature::gauss_newton}) {
      const Problem<double> p = draw.problem(draw.network("kutta4", Activation::tanh, 4, dim), 555);
      const std::vector<double> direction = random_direction(p.net, draw);
      ThreadLimit::set(1);
      const std::vector<double> serial = product_of(p, curvature, direction);
      for (const int threads : {2, 3, 7}) {
        ThreadLimit::set(threads);
        BOOST_TEST((product_of(p, curvature, direction) == serial), "dimension " << dim << ", " << threads);
      }
    }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(extreme_outputs_keep_the_losses_finite_and_their_digits) {
  // -log of a probability of 1 - e^-40: lost when computed from the rounded probability.
  const Network net({.features = 1, .dim = 1, .layers = 1, .outputs = 1, .tableau = named("euler")});
  const std::vector<double> u = {0, 0, 0, 1, 0}, X = {40, -40, 800, -800};
  const std::vector<std::int64_t> labels = {1, 0, 0, 1};
  Workspace<double> workspace;
  const auto loss_of = [&](Index i) {
    const Data<double> one{{X.data() + i, 1}, {labels.data() + i}, nullptr, 1};
    return value<double>(net, u.data(), one, {CrossEntropy(), false, {}}, workspace);
  };
  BOOST_TEST(loss_of(0) == std::exp(-40), boost::test_tools::tolerance(1e-14));
  BOOST_TEST(loss_of(1) == std::exp(-40), boost::test_tools::tolerance(1e-14));
  BOOST_TEST(loss_of(2) == 800.0);
  BOOST_TEST(loss_of(3) == 800.0);
}

BOOST_AUTO_TEST_SUITE_END()
