#include <boost/test/unit_test.hpp>
#include <cmath>

#include "ocdl/sweep/integrator.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The dense field sigma(K y) with one layer of length h.
Network one_layer(Index dim, const std::string& tableau, Activation activation) {
  return Network({.features = dim,
                  .dim = dim,
                  .layers = 1,
                  .outputs = 1,
                  .tableau = named(tableau),
                  .activation = activation,
                  .learns_steps = true});
}

template <class T>
std::vector<T> controls_of(const Network& net, const Rows& K, double h) {
  std::vector<T> u(static_cast<std::size_t>(net.control_size()), T(0));
  const Controls<T> parts = net.split(u.data());
  parts.at(0, 0).matrix(0, net.dim, net.dim) = K.cast<T>();
  parts.h(0) = T(h);
  return u;
}

/// The k_i at the rows of Y, a matrix of the same shape each.
template <class T>
std::vector<Rows> stages_of(const Network& net, const std::vector<T>& u, const Rows& Y) {
  const Index samples = Y.rows(), tiles = tiles_for<T>(samples), padded = tiles * tile_width<T>;
  const auto memory = [](Index count) { return std::vector<T>(static_cast<std::size_t>(count)); };
  std::vector<T> rows(Y.data(), Y.data() + Y.size()),
      state = memory(net.dim * padded),
      planes = memory(Trajectory<T>::size(net.trajectory_shape(Storage::all_stages), padded)),
      equations = memory(StageEquations<T>::scratch_size(net));
  const Trajectory<T> trajectory(planes.data(), net.trajectory_shape(Storage::all_stages), padded, tiles);
  const Stages<T> stages = trajectory.stages(0);
  rows_to_plane<T>(rows.data(), samples, net.dim, trajectory.state(0));
  Integrator<T>(net, u.data())
      .evaluate_stages(0, trajectory.state(0), stages,
                       {{state.data(), net.dim, tiles}, nullptr, equations.data(), {}},
                       ThreadSlice<T>(tiles));
  std::vector<Rows> k;
  for (Index i = 0; i < net.stages; ++i) {
    plane_to_rows<T>(stages.value(i), samples, net.dim, rows.data());
    k.push_back(Eigen::Map<Eigen::Matrix<T, -1, -1, Eigen::RowMajor>>(rows.data(), samples, net.dim)
                    .template cast<double>());
  }
  return k;
}

/// The largest |k_i - sigma(K (y + h sum_l a_il k_l))|; NaN where a number is.
double residual_of(const Network& net, const Rows& K, double h, const Rows& Y, const std::vector<Rows>& k) {
  double worst = 0;
  for (Index i = 0; i < net.stages; ++i) {
    Rows state = Y;
    for (Index l = 0; l < net.stages; ++l)
      state += h * net.tableau.A()(i, l) * k[static_cast<std::size_t>(l)];
    const Rows f = (state * K.transpose()).unaryExpr([&](double z) {
      return net.activation == Activation::sin ? std::sin(z) : std::tanh(z);
    });
    const double error = (f - k[static_cast<std::size_t>(i)]).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

std::vector<std::string> implicit_tableaux() {
  std::vector<std::string> chosen = names();
  std::erase_if(chosen, [&](const std::string& name) { return named(name).is_explicit(); });
  return chosen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_equations)

/// A bounded field has a solution for every step, and for almost every state a path leads to one.
BOOST_AUTO_TEST_CASE(equations_of_steep_bounded_fields_are_solved) {
  Draw draw(31);
  for (const std::string& tableau : implicit_tableaux())
    for (const Activation activation : {Activation::tanh, Activation::sin})
      for (const Index dim : {1, 2, 3, 5})
        for (const double scale : {1.0, 5.0, 25.0})
          for (const double h : {1.0, -0.7}) {
            if (dim == 5 && scale == 25.0)
              continue;  // some such paths take more evaluations than are allowed
            const Network net = one_layer(dim, tableau, activation);
            const auto entries = draw.normals(dim * dim, scale), points = draw.normals(37 * dim);
            const Rows K = Eigen::Map<const Rows>(entries.data(), dim, dim);
            const Rows Y = Eigen::Map<const Rows>(points.data(), 37, dim);
            const double stiffness = 1 + std::abs(h) * net.tableau.A().norm() * K.norm();
            const auto described = [&](double error) {
              return tableau + ", dimension " + std::to_string(dim) + ", K of size " + std::to_string(scale) +
                     ": " + std::to_string(error / stiffness / stiffness);
            };
            const double error = residual_of(net, K, h, Y, stages_of(net, controls_of<double>(net, K, h), Y));
            BOOST_TEST(error <= 1e-14 * stiffness * stiffness, described(error));
          }
}

BOOST_AUTO_TEST_CASE(single_precision_solves_them_too) {
  Draw draw(32);
  for (const std::string& tableau : implicit_tableaux())
    for (const Index dim : {1, 2, 3}) {
      const Network net = one_layer(dim, tableau, Activation::tanh);
      const auto entries = draw.normals(dim * dim, 5), points = draw.normals(37 * dim);
      const Rows K = Eigen::Map<const Rows>(entries.data(), dim, dim).cast<float>().cast<double>();
      const Rows Y = Eigen::Map<const Rows>(points.data(), 37, dim).cast<float>().cast<double>();
      const double stiffness = 1 + net.tableau.A().norm() * K.norm();
      const double error = residual_of(net, K, 1, Y, stages_of(net, controls_of<float>(net, K, 1), Y));
      BOOST_TEST(error <= 5e-6 * stiffness * stiffness, tableau << ", dimension " << dim << ": " << error);
    }
}

/// Lanes that are solved at once, by backtracking, along a path and not at all stand side by side.
BOOST_AUTO_TEST_CASE(a_sample_has_the_same_stages_in_any_company) {
  Draw draw(33);
  for (const std::string& tableau : implicit_tableaux())
    for (const Activation activation : {Activation::tanh, Activation::softplus}) {
      const Network net = one_layer(2, tableau, activation);
      const auto entries = draw.normals(4, 6), points = draw.normals(2 * 61);
      const Rows K = Eigen::Map<const Rows>(entries.data(), 2, 2);
      const Rows Y = Eigen::Map<const Rows>(points.data(), 61, 2);
      const auto u = controls_of<double>(net, K, 1);
      const std::vector<Rows> together = stages_of(net, u, Y);
      for (Index s = 0; s < Y.rows(); ++s) {
        const std::vector<Rows> alone = stages_of(net, u, Y.row(s));
        for (std::size_t i = 0; i < alone.size(); ++i) {
          const Rows expected = together[i].row(s);
          BOOST_TEST(std::memcmp(alone[i].data(), expected.data(), 2 * sizeof(double)) == 0,
                     tableau << ", sample " << s);
        }
      }
    }
}

/// y' = tanh(K y) with K < 0 contracts, so that every step has one solution, and bisection finds it.
BOOST_AUTO_TEST_CASE(implicit_euler_finds_the_only_solution_of_steep_contractions) {
  const Network net = one_layer(1, "implicit_euler", Activation::tanh);
  const Rows Y = Eigen::VectorXd::LinSpaced(41, -1, 1);
  for (const double K : {-10.0, -100.0, -1e4}) {
    const Rows k = stages_of(net, controls_of<double>(net, Rows::Constant(1, 1, K), 1), Y)[0];
    for (Index s = 0; s < 41; ++s) {
      double low = -1, high = 1;
      for (int halving = 0; halving < 60; ++halving) {
        const double middle = (low + high) / 2;
        (middle < std::tanh(K * (Y(s, 0) + middle)) ? low : high) = middle;
      }
      BOOST_TEST(std::abs(k(s, 0) - low) <= 1e-15 * (1 - K), K << ", y = " << Y(s, 0));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
