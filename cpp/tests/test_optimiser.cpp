#include <boost/test/unit_test.hpp>
#include <numeric>

#include "ocdl/optimiser/projection.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using ocdl::testing::Draw;

BOOST_AUTO_TEST_SUITE(optimiser)

BOOST_AUTO_TEST_CASE(the_projection_is_the_closest_point_of_the_simplex) {
  Draw draw(1);
  std::vector<double> scratch;
  for (int trial = 0; trial < 500; ++trial) {
    const Index size = draw.whole(1, 60);
    const double scale = std::pow(10.0, static_cast<double>(draw.whole(-12, 12))),
                 total = std::exp(draw.normal());
    const std::vector<double> v = draw.normals(size, scale);
    std::vector<double> x(v.size()), again(v.size());
    project_simplex(v.data(), size, total, x.data(), scratch);
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
    project_simplex(x.data(), size, total, again.data(), scratch);
    BOOST_TEST(again == x);
  }
}

BOOST_AUTO_TEST_CASE(ties_and_extremes_are_projected) {
  std::vector<double> scratch, x(4);
  const std::vector<double> equal(4, 7.0), huge = {1e308, -1e308, 1e308, 0};
  project_simplex(equal.data(), 4, 1.0, x.data(), scratch);
  BOOST_TEST(x == std::vector<double>(4, 0.25));
  project_simplex(huge.data(), 4, 1.0, x.data(), scratch);
  BOOST_TEST(x == (std::vector<double>{0.5, 0, 0.5, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
