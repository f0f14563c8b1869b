#include <boost/test/unit_test.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "ocdl/tableau/library.hpp"
#include "ocdl/tableau/tableau.hpp"

using ocdl::Index;
using ocdl::Matrix;
using ocdl::Tableau;
using ocdl::Vector;

namespace {

constexpr double roundoff = 1e-14;

auto message_contains(const std::string& part) {
  return [part](const std::invalid_argument& error) {
    BOOST_TEST_INFO("message: " << error.what());
    return std::string(error.what()).find(part) != std::string::npos;
  };
}

Matrix lower_bidiagonal(double below_diagonal) {
  Matrix A = Matrix::Zero(2, 2);
  A(1, 0) = below_diagonal;
  return A;
}

const Vector halves = Vector::Constant(2, 0.5);

}  // namespace

BOOST_AUTO_TEST_SUITE(tableau)

BOOST_AUTO_TEST_CASE(every_named_method_is_consistent_and_knows_its_name) {
  for (const std::string& name : ocdl::names()) {
    BOOST_TEST_CONTEXT(name) {
      const Tableau& method = ocdl::named(name);
      BOOST_TEST(method.name() == name);
      BOOST_TEST(method.order() >= 1);
      BOOST_TEST(method.order() <= (method.is_explicit() ? 1 : 2) * method.stages());
      Vector row_sums = Vector::Zero(method.stages());
      for (Index j = 0; j < method.stages(); ++j) row_sums += method.A().col(j);
      BOOST_TEST((row_sums - method.c()).norm() == 0.0);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_order_conditions_give_the_orders_of_the_literature) {
  const std::pair<const char*, int> explicit_orders[] = {
      {"euler", 1},  {"improved_euler", 2}, {"midpoint", 2},       {"ralston", 2},
      {"kutta3", 3}, {"heun3", 3},          {"ssprk3", 3},         {"kutta4", 4},
      {"rk38", 4},   {"kutta5", 5},         {"dormand_prince", 5},
  };
  const std::pair<const char*, int> implicit_orders[] = {
      {"implicit_euler", 1}, {"implicit_midpoint", 2}, {"trapezoidal", 2}, {"sdirk2", 2}, {"gauss2", 4},
      {"gauss3", 6},         {"radau_iia2", 3},
  };
  BOOST_TEST(std::size(explicit_orders) + std::size(implicit_orders) == ocdl::names().size());
  for (const auto& [name, order] : explicit_orders) {
    BOOST_TEST(ocdl::named(name).order() == order, name);
    BOOST_TEST(ocdl::named(name).is_explicit(), name);
  }
  for (const auto& [name, order] : implicit_orders) {
    BOOST_TEST(ocdl::named(name).order() == order, name);
    BOOST_TEST(!ocdl::named(name).is_explicit(), name);
  }
}

BOOST_AUTO_TEST_CASE(stages_are_grouped_as_they_depend_on_each_other) {
  const auto groups = [](const Tableau& method) {
    std::string text;
    for (const ocdl::StageGroup& group : method.groups())
      text += std::to_string(group.first) + "-" + std::to_string(group.last) +
              (group.is_implicit ? " implicit " : " explicit ");
    return text;
  };
  BOOST_TEST(groups(ocdl::named("kutta3")) == "0-1 explicit 1-2 explicit 2-3 explicit ");
  BOOST_TEST(groups(ocdl::named("trapezoidal")) == "0-1 explicit 1-2 implicit ");
  BOOST_TEST(groups(ocdl::named("sdirk2")) == "0-1 implicit 1-2 implicit ");
  BOOST_TEST(groups(ocdl::named("gauss3")) == "0-3 implicit ");
  // Stage 1 needs stage 2, so that the two belong together, and stage 3 needs no other.
  Matrix A = Matrix::Zero(4, 4);
  A(1, 0) = A(1, 2) = A(2, 1) = 1;
  BOOST_TEST(groups(Tableau(A, Vector::Constant(4, 0.25))) == "0-1 explicit 1-3 implicit 3-4 explicit ");
}

BOOST_AUTO_TEST_CASE(the_observed_order_is_the_derived_order) {
  // y' = sin(y) + 1/2 to t = 1: the error of n steps against that of 2n steps falls by 2^order.
  const auto integrate = [](const Tableau& method, int steps) {
    const double h = 1.0 / steps;
    double y = 0.3;
    for (int step = 0; step < steps; ++step) {
      Vector k = Vector::Zero(method.stages());
      // As often as the stages of an implicit method take to settle: the steps are short.
      for (int sweep = 0; sweep < (method.is_explicit() ? 1 : 20); ++sweep)
        for (Index i = 0; i < method.stages(); ++i) k(i) = std::sin(y + h * method.A().row(i).dot(k)) + 0.5;
      y += h * method.b().dot(k);
    }
    return y;
  };
  const double reference = integrate(ocdl::named("dormand_prince"), 2000);
  for (const std::string& name : ocdl::names()) {
    BOOST_TEST_CONTEXT(name) {
      const Tableau& method = ocdl::named(name);
      const double coarse = std::abs(integrate(method, 20) - reference);
      const double fine = std::abs(integrate(method, 40) - reference);
      BOOST_TEST(std::abs(std::log2(coarse / fine) - method.order()) < 0.3);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_adjoint_makes_a_symplectic_pair_and_is_an_involution) {
  for (const std::string& name : ocdl::names()) {
    const Tableau& method = ocdl::named(name);
    if ((method.b().array() == 0.0).any()) continue;
    BOOST_TEST_CONTEXT(name) {
      const Tableau partner = method.adjoint();
      const Vector& b = method.b();
      const Matrix defect =
          b.asDiagonal() * partner.A() + (b.asDiagonal() * method.A()).transpose() - b * b.transpose();
      BOOST_TEST(defect.cwiseAbs().maxCoeff() < roundoff);
      BOOST_TEST((partner.b() - b).norm() == 0.0);
      BOOST_TEST((partner.adjoint().A() - method.A()).cwiseAbs().maxCoeff() < roundoff);
      if (method.is_explicit()) BOOST_TEST(!partner.is_explicit());
      BOOST_TEST(partner.name() == "adjoint of " + name);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_adjoint_of_explicit_euler_is_implicit_euler) {
  const Tableau partner = ocdl::named("euler").adjoint();
  BOOST_TEST(partner.A()(0, 0) == 1.0);
  BOOST_TEST(partner.c()(0) == 1.0);
}

BOOST_AUTO_TEST_CASE(a_zero_weight_has_no_adjoint) {
  BOOST_CHECK_EXCEPTION(ocdl::named("midpoint").adjoint(), std::invalid_argument,
                        message_contains("b is 0 at stage 1 of midpoint"));
  BOOST_CHECK_EXCEPTION(ocdl::named("heun3").adjoint(), std::invalid_argument,
                        message_contains("b is 0 at stage 2 of heun3"));
}

BOOST_AUTO_TEST_CASE(implicit_tableaux_are_data_like_any_other) {
  const Tableau implicit_midpoint(Matrix::Constant(1, 1, 0.5), Vector::Ones(1));
  BOOST_TEST(!implicit_midpoint.is_explicit());
  BOOST_TEST(implicit_midpoint.order() == 2);
  BOOST_TEST(implicit_midpoint.name().empty());
  // The Gauss methods are symplectic: they are their own partners.
  BOOST_TEST(implicit_midpoint.adjoint().A()(0, 0) == 0.5);

  // Gauss with three stages has order 6: reported is the highest order that is checked.
  const double root = std::sqrt(15.0);
  Matrix A(3, 3);
  A << 5.0 / 36, 2.0 / 9 - root / 15, 5.0 / 36 - root / 30,  //
      5.0 / 36 + root / 24, 2.0 / 9, 5.0 / 36 - root / 24,   //
      5.0 / 36 + root / 30, 2.0 / 9 + root / 15, 5.0 / 36;
  Vector b(3);
  b << 5.0 / 18, 4.0 / 9, 5.0 / 18;
  const Tableau gauss(A, b);
  BOOST_TEST(gauss.order() == Tableau::highest_checked_order);
  BOOST_TEST((gauss.adjoint().A() - A).cwiseAbs().maxCoeff() < roundoff);
}

BOOST_AUTO_TEST_CASE(the_order_survives_roundoff_but_no_larger_error) {
  Matrix A = ocdl::named("kutta5").A();
  const Vector b = ocdl::named("kutta5").b();
  A(3, 1) *= 1.0 + 4.0 * std::numeric_limits<double>::epsilon();
  BOOST_TEST(Tableau(A, b).order() == 5);
  A(3, 1) *= 1.0 + 1e-9;
  BOOST_TEST(Tableau(A, b).order() < 5);
}

BOOST_AUTO_TEST_CASE(huge_coefficients_overflow_to_no_order) {
  BOOST_TEST(Tableau(lower_bidiagonal(1e200), halves).order() == 1);
}

BOOST_AUTO_TEST_CASE(c_is_the_row_sum_unless_given) {
  const Vector given = Vector::Constant(2, 0.25);
  BOOST_TEST(Tableau(lower_bidiagonal(1), halves).c()(1) == 1.0);
  BOOST_TEST((Tableau(lower_bidiagonal(1), halves, given).c() - given).norm() == 0.0);
  BOOST_TEST(Tableau(lower_bidiagonal(1), halves, given).order() == 2);
}

BOOST_AUTO_TEST_CASE(wrong_coefficients_are_rejected_by_name) {
  const Matrix A = lower_bidiagonal(1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  BOOST_CHECK_EXCEPTION(Tableau(Matrix::Zero(2, 3), halves), std::invalid_argument,
                        message_contains("A must be a square matrix"));
  BOOST_CHECK_EXCEPTION(Tableau(Matrix::Zero(2, 3), halves), std::invalid_argument,
                        message_contains("got shape (2, 3)"));
  BOOST_CHECK_EXCEPTION(Tableau(Matrix(0, 0), Vector(0)), std::invalid_argument,
                        message_contains("at least one"));
  BOOST_CHECK_EXCEPTION(
      Tableau(A, Vector::Ones(1)), std::invalid_argument,
      message_contains("b must have length 2, one entry for each stage of A; got length 1"));
  BOOST_CHECK_EXCEPTION(
      Tableau(A, halves, Vector::Ones(3)), std::invalid_argument,
      message_contains("c must have length 2, one entry for each stage of A; got length 3"));
  BOOST_CHECK_EXCEPTION(Tableau(lower_bidiagonal(nan), halves), std::invalid_argument,
                        message_contains("A must hold finite numbers only; stage 2 holds nan"));
  BOOST_CHECK_EXCEPTION(Tableau(A, Vector::Constant(2, nan)), std::invalid_argument,
                        message_contains("b must hold finite numbers only; stage 1"));
  BOOST_CHECK_EXCEPTION(Tableau(A, halves, Vector::Constant(2, nan)), std::invalid_argument,
                        message_contains("c must hold finite numbers only; stage 1"));
  BOOST_CHECK_EXCEPTION(
      Tableau(Matrix{{0, 0}, {1.7e308, 1.7e308}}, Vector{{0, 1}}), std::invalid_argument,
      message_contains("c, the sums of the rows of A, must hold finite numbers only; stage 2"));
  BOOST_CHECK_EXCEPTION(Tableau(A, Vector::Ones(2)), std::invalid_argument,
                        message_contains("b must sum to 1; got a sum of 2"));
}

BOOST_AUTO_TEST_CASE(large_weights_that_cancel_to_zero_do_not_sum_to_one) {
  Vector b(2);
  b << 1e15, -1e15;
  BOOST_CHECK_EXCEPTION(Tableau(lower_bidiagonal(1), b), std::invalid_argument,
                        message_contains("b must sum to 1"));
}

BOOST_AUTO_TEST_CASE(an_unknown_name_lists_the_known_ones) {
  BOOST_CHECK_EXCEPTION(ocdl::named("rk45"), std::invalid_argument,
                        message_contains("unknown tableau 'rk45'"));
  BOOST_CHECK_EXCEPTION(ocdl::named("rk45"), std::invalid_argument,
                        message_contains("euler, improved_euler, kutta3"));
}

BOOST_AUTO_TEST_SUITE_END()
