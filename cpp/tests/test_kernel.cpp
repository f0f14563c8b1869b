#include <Eigen/LU>
#include <boost/test/unit_test.hpp>

#include "ocdl/kernel/lane_system.hpp"
#include "ocdl/kernel/linear_combination.hpp"
#include "ocdl/kernel/product.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using ocdl::testing::Draw;

namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Rows random_rows(Draw& draw, Index rows, Index cols) {
  return Rows::NullaryExpr(rows, cols, [&] { return draw.normal(); });
}

/// A plane of whole tiles as the matrix (features x samples), and back.
Rows plane_matrix(const std::vector<double>& plane, Index dim) {
  const Index width = tile_width<double>, samples = static_cast<Index>(plane.size()) / dim;
  return Rows::NullaryExpr(dim, samples, [&](Index i, Index s) {
    return plane[static_cast<std::size_t>((s / width * dim + i) * width + s % width)];
  });
}

MatrixView<const double> matrix(const Rows& M) { return {M.data(), M.rows(), M.cols()}; }

double relative_error(const Rows& a, const Rows& b) { return (a - b).norm() / b.norm(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel)

BOOST_AUTO_TEST_CASE(products_equal_eigens_for_every_shape) {
  Draw draw(1);
  const Index tiles = 5, samples = tiles * tile_width<double>;
  std::vector<double> scratch(static_cast<std::size_t>(panel::scratch_size<double>()));
  for (const Index rows : {1, 2, 3, 4, 5, 7, 13, 24, 97, 300})
    for (const Index cols : {1, 2, 3, 4, 6, 8, 19, 64, 290}) {
      const Rows M = random_rows(draw, rows, cols), bias = random_rows(draw, rows, 1);
      const std::vector<double> Y = draw.normals(cols * samples), D = draw.normals(rows * samples);
      const Rows y = plane_matrix(Y, cols), d = plane_matrix(D, rows);

      std::vector<double> Z(D.size()), E(Y.size());
      const Plane<const double> y_plane(Y.data(), cols, tiles), d_plane(D.data(), rows, tiles);
      const ThreadSlice<double> all(tiles);
      affine(matrix(M), bias.data(), y_plane, Plane<double>(Z.data(), rows, tiles), all);
      BOOST_TEST(relative_error(plane_matrix(Z, rows), (M * y).colwise() + bias.col(0)) < 1e-14);
      transposed_product(matrix(M), d_plane, Plane<double>(E.data(), cols, tiles), all, scratch.data());
      BOOST_TEST(relative_error(plane_matrix(E, cols), M.transpose() * d) < 1e-14);

      Rows G = random_rows(draw, rows, cols), g = random_rows(draw, rows, 1);
      std::vector<double> panels(static_cast<std::size_t>(panel::transposed_size<double>(cols, tiles)));
      for (const bool accumulate : {false, true}) {
        const Rows expected = d * y.transpose() + (accumulate ? G : Rows::Zero(rows, cols));
        const Rows sums = d.rowwise().sum() + (accumulate ? g : Rows::Zero(rows, 1));
        outer_product(d_plane, y_plane, all, accumulate, MatrixView<double>(G.data(), rows, cols), g.data(),
                      panels.data());
        BOOST_TEST(relative_error(G, expected) < 1e-14);
        BOOST_TEST(relative_error(g, sums) < 1e-13);
      }
    }
}

BOOST_AUTO_TEST_CASE(sums_that_a_product_adds_up_have_the_bits_of_sums_that_were_written) {
  Draw draw(8);
  for (const Index cols : {1, 4, 9, 15, 16, 17, 40})
    for (const int terms : {0, 1, 3}) {
      const Index rows = 11, tiles = 3, samples = tiles * tile_width<double>, size = cols * samples;
      const std::vector<double> D = draw.normals(rows * samples), Y = draw.normals(size),
                                more[3] = {draw.normals(size), draw.normals(size), draw.normals(size)};
      std::vector<double> written(Y),
          panels(static_cast<std::size_t>(panel::transposed_size<double>(cols, tiles)));
      const auto product = [&](bool is_written) {
        LinearCombination<double> sum(Plane<const double>(Y.data(), cols, tiles),
                                      {written.data(), cols, tiles});
        for (int l = 0; l < terms; ++l) sum.add(0.3 * (l + 1), {more[l].data(), cols, tiles});
        if (is_written) sum.write();
        Rows G(rows, cols), g(rows, 1);
        outer_product(Plane<const double>(D.data(), rows, tiles), sum, ThreadSlice<double>(tiles), false,
                      MatrixView<double>(G.data(), rows, cols), g.data(), panels.data());
        return G;
      };
      BOOST_TEST((product(false) == product(true)));
    }
}

BOOST_AUTO_TEST_CASE(products_have_the_same_bits_however_a_team_shares_them_and_leave_padding_out) {
  Draw draw(6);
  const Index width = tile_width<double>, rows = 101, cols = 97;
  const Rows M = random_rows(draw, rows, cols), bias = random_rows(draw, rows, 1);
  for (const Index samples : {Index(1), width / 2, width / 2 + 1, width + 1, 2 * width, 5 * width - 1}) {
    const Index tiles = tiles_for<double>(samples);
    std::vector<double> Y = draw.normals(cols * tiles * width), D = draw.normals(rows * tiles * width);
    for (Index s = samples; s < tiles * width; ++s)
      for (Index i = 0; i < rows; ++i)
        D[static_cast<std::size_t>((s / width * rows + i) * width + s % width)] = 0;
    const auto products = [&](int threads) {
      const auto sized = [](Index size) {
        return std::vector<double>(static_cast<std::size_t>(size), 1e300);
      };
      std::vector<double> Z = sized(std::ssize(D)), E = sized(std::ssize(Y)), G = sized(rows * cols),
                          g = sized(rows), panels = sized(panel::transposed_size<double>(cols, tiles)),
                          scratch = sized(threads * panel::scratch_size<double>());
      parallel(threads, [&](const Team& team) {
        const ThreadSlice<double> thread = ThreadSlice<double>::of(team, samples);
        const Plane<const double> y(Y.data(), cols, tiles), d(D.data(), rows, tiles);
        affine(matrix(M), bias.data(), y, Plane<double>(Z.data(), rows, tiles), thread);
        transposed_product(matrix(M), d, Plane<double>(E.data(), cols, tiles), thread,
                           scratch.data() + team.rank() * panel::scratch_size<double>());
        outer_product(d, y, thread, false, MatrixView<double>(G.data(), rows, cols), g.data(), panels.data());
      });
      return std::array{Z, E, G, g};
    };
    const auto expected = products(1);
    for (const int threads : {2, 3, 7}) BOOST_TEST((products(threads) == expected));

    const Rows y = plane_matrix(Y, cols), d = plane_matrix(D, rows), z = plane_matrix(expected[0], rows);
    const Rows affine_of_y = (M * y).colwise() + bias.col(0);
    BOOST_TEST(relative_error(z.leftCols(samples), affine_of_y.leftCols(samples)) < 1e-14);
    BOOST_TEST(z.allFinite());
    BOOST_TEST((z.array() < 1e300).all());
    BOOST_TEST(relative_error(plane_matrix(expected[1], cols), M.transpose() * d) < 1e-14);
    const Rows G = Eigen::Map<const Rows>(expected[2].data(), rows, cols);
    BOOST_TEST(relative_error(G, d * y.transpose()) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(rows_and_planes_are_inverse_and_padding_repeats_the_last_row) {
  Draw draw(2);
  const Index width = tile_width<double>;
  for (const Index samples : {Index(1), width - 1, width, width + 1, 3 * width + 2}) {
    const Index features = 3, dim = 5, tiles = tiles_for<double>(samples);
    const std::vector<double> rows = draw.normals(samples * features);
    std::vector<double> plane(static_cast<std::size_t>(tiles * width * dim), 9), back(rows.size());
    rows_to_plane<double>(rows.data(), samples, features, {plane.data(), dim, tiles});
    plane_to_rows<double>({plane.data(), dim, tiles}, samples, features, back.data());
    BOOST_TEST(back == rows);
    const Rows states = plane_matrix(plane, dim);
    BOOST_TEST(states.bottomRows(dim - features).isZero(0));
    for (Index s = samples; s < tiles * width; ++s) BOOST_TEST((states.col(s) == states.col(samples - 1)));
  }
}

BOOST_AUTO_TEST_CASE(the_first_non_finite_number_is_found_wherever_it_stands) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {inf, -inf, nan})
    for (std::size_t size = 1; size < 40; ++size)
      for (std::size_t at = 0; at < size; ++at) {
        std::vector<double> values(size, 1e308);
        BOOST_TEST(first_non_finite(values.data(), static_cast<Index>(size)) == -1);
        values[at] = bad;
        BOOST_TEST(first_non_finite(values.data(), static_cast<Index>(size)) == static_cast<Index>(at));
      }
}

BOOST_AUTO_TEST_CASE(threads_agree_on_the_first_non_finite_number) {
  ThreadLimit::set(3);
  std::vector<float> values(std::size_t(1) << 20, 1.0f);
  const auto first = [&] { return first_non_finite(values.data(), static_cast<Index>(values.size())); };
  BOOST_TEST(first() == -1);
  for (const std::size_t at : {values.size() - 1, values.size() / 2, values.size() / 3, std::size_t(0)}) {
    values[at] = std::numeric_limits<float>::infinity();
    BOOST_TEST(first() == static_cast<Index>(at));
  }
}

BOOST_AUTO_TEST_CASE(every_lane_solves_its_own_system) {
  Draw draw(9);
  constexpr Index width = lanes<double>;
  for (const Index size : {1, 2, 3, 4, 5, 6, 12}) {
    std::vector<double> matrix = draw.normals(size * size * width), x = draw.normals(size * width);
    if (size > 1) matrix[0] = 0;  // a pivot that one lane has to exchange and its neighbours need not
    const std::vector<double> M = matrix, right = x;
    const LaneMask<double> is_determinant_negative = solve_lanes<double>(size, matrix.data(), x.data());
    for (Index lane = 0; lane < width; ++lane) {
      Eigen::MatrixXd A(size, size);
      Eigen::VectorXd solution(size), r(size);
      for (Index i = 0; i < size; ++i) {
        for (Index k = 0; k < size; ++k) A(i, k) = M[static_cast<std::size_t>((i * size + k) * width + lane)];
        solution(i) = x[static_cast<std::size_t>(i * width + lane)];
        r(i) = right[static_cast<std::size_t>(i * width + lane)];
      }
      BOOST_TEST((A * solution - r).norm() <= 1e-14 * double(size) * A.norm() * solution.norm(),
                 "size " << size << ", lane " << lane);
      BOOST_TEST((is_determinant_negative[lane] != 0) == (A.determinant() < 0), "size " << size);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
