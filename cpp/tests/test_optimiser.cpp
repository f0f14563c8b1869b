#include <boost/test/unit_test.hpp>
#include <numeric>

#include "ocdl/optimiser/projection.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using ocdl::testing::Draw;

namespace {

std::vector<double> projected(const std::vector<double>& v, double total) {
  const auto size = static_cast<Index>(v.size());
  std::vector<double> x(v.size()), scratch;
  project_simplex<double>({v.data(), size}, total, {x.data(), size}, scratch);
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(optimiser)

BOOST_AUTO_TEST_CASE(the_projection_is_the_closest_point_of_the_simplex) {
  Draw draw(1);
  for (int trial = 0; trial < 500; ++trial) {
    const Index size = draw.whole(1, 60);
    const double scale = std::pow(10.0, static_cast<double>(draw.whole(-12, 12))),
                 total = std::exp(draw.normal());
    const std::vector<double> v = draw.normals(size, scale);
    const std::vector<double> x = projected(v, total);
    const double sum = std::accumulate(x.begin(), x.end(), 0.0);
    BOOST_TEST(std::abs(sum - total) <= 1e-14 * static_cast<double>(size) * total);
    // Optimality: where x > 0, v - x is one number theta; where x = 0, v is not above theta.
    double theta = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < x.size(); ++i) {
      BOOST_TEST(x[i] >= 0);
      if (x[i] > 0) theta = std::max(theta, v[i] - x[i]);
    }
    const double slack = 1e-14 * (scale + total) * static_cast<double>(size);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] > 0)
        BOOST_TEST(std::abs(v[i] - x[i] - theta) <= slack);
      else
        BOOST_TEST(v[i] <= theta + slack);
    }
    BOOST_TEST(projected(x, total) == x);
  }
}

BOOST_AUTO_TEST_CASE(ties_and_extremes_are_projected) {
  const std::vector<double> equal(4, 7.0), huge = {1e308, -1e308, 1e308, 0};
  BOOST_TEST(projected(equal, 1) == std::vector<double>(4, 0.25));
  BOOST_TEST(projected(huge, 1) == (std::vector<double>{0.5, 0, 0.5, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
