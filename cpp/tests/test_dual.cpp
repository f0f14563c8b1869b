#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "ocdl/kernel/dual.hpp"

using namespace ocdl;

namespace {

using D = Dual<double>;

struct Function {
  const char* name;
  Pack<D> (*kernel)(Pack<D>);
  long double (*slope)(long double);
};

long double logistic(long double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<Function> functions{
    {"exp", [](Pack<D> x) { return ocdl::exp<D>(x); }, [](long double x) { return std::exp(x); }},
    {"tanh", [](Pack<D> x) { return ocdl::tanh<D>(x); },
     [](long double x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
    {"sigmoid", [](Pack<D> x) { return ocdl::sigmoid<D>(x); },
     [](long double x) { return logistic(x) * logistic(-x); }},
    {"softplus", [](Pack<D> x) { return ocdl::softplus<D>(x); }, logistic},
    {"softplus_slope", [](Pack<D> k) { return ocdl::softplus_slope<D>(k); },
     [](long double k) { return std::exp(-k); }},
    {"sine", [](Pack<D> x) { return ocdl::sincos<D>(x).first; }, [](long double x) { return std::cos(x); }},
    {"cosine", [](Pack<D> x) { return ocdl::sincos<D>(x).second; },
     [](long double x) { return -std::sin(x); }},
    {"square", [](Pack<D> x) { return x * x; }, [](long double x) { return 2 * x; }},
    {"quotient", [](Pack<D> x) { return x / (broadcast<D>(1) + x * x); },
     [](long double x) { return (1 - x * x) / ((1 + x * x) * (1 + x * x)); }}};

std::vector<D> applied(const Function& function, const std::vector<double>& arguments, double direction) {
  std::vector<D> numbers;
  for (const double x : arguments) numbers.emplace_back(x, direction);
  numbers.resize((numbers.size() + lanes<D> - 1) / lanes<D> * lanes<D>, D(0));
  for (std::size_t n = 0; n < numbers.size(); n += lanes<D>)
    store<D>(numbers.data() + n, function.kernel(load(numbers.data() + n)));
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dual)

BOOST_AUTO_TEST_CASE(packs_of_dual_numbers_are_written_as_they_were_read) {
  std::vector<D> numbers, copy(lanes<D>);
  for (int n = 0; n < lanes<D>; ++n) numbers.emplace_back(n, 100 + n);
  const Pack<D> pack = load(numbers.data());
  store<D>(copy.data(), pack);
  BOOST_TEST((copy == numbers));
  D sum = 0;
  for (const D x : numbers) sum += x;
  BOOST_TEST((sum_lanes<D>(pack) == sum));
  static_assert(lanes<D> == lanes<double>);
}

BOOST_AUTO_TEST_CASE(derivatives_are_those_of_the_functions) {
  std::vector<double> arguments;
  for (int n = -60; n <= 60; ++n) arguments.push_back(0.137 * n);
  for (const Function& function : functions) {
    const std::vector<D> results = applied(function, arguments, 3.0);
    for (std::size_t n = 0; n < arguments.size(); ++n) {
      const double exact = static_cast<double>(3 * function.slope(arguments[n]));
      BOOST_TEST(std::abs(results[n].derivative - exact) <= 1e-15 * (3 + std::abs(exact)),
                 function.name << " at " << arguments[n] << ": " << results[n].derivative - exact);
    }
  }
}

BOOST_AUTO_TEST_CASE(logistic_derivatives_keep_their_digits_in_both_tails) {
  const std::vector<double> arguments{-700, -100, -40, 40, 100, 700};
  for (const Function& function : functions)
    if (function.name == std::string_view("sigmoid") || function.name == std::string_view("softplus")) {
      const std::vector<D> results = applied(function, arguments, 1.0);
      for (std::size_t n = 0; n < arguments.size(); ++n)
        BOOST_TEST(results[n].derivative == static_cast<double>(function.slope(arguments[n])),
                   boost::test_tools::tolerance(1e-14));
    }
}

BOOST_AUTO_TEST_CASE(numbers_obey_the_rules_of_differentiation) {
  const D x(2, 1), y(3, -5);
  BOOST_TEST((x * y == D(6, 3 - 10)));
  BOOST_TEST((x / y == D(2.0 / 3.0, (1 - 2.0 / 3.0 * -5) / 3)));
  BOOST_TEST((x - 1 == D(1, 1)));
  BOOST_TEST((2.0 * x == D(4, 2)));
  BOOST_TEST((sqrt(D(4, 1)) == D(2, 0.25)));
  BOOST_TEST((abs(D(-4, 1)) == D(4, -1)));
  BOOST_TEST((x < y && !(D(1, 0) == D(1, 1)) && value_of(y) == 3));
}

BOOST_AUTO_TEST_SUITE_END()
