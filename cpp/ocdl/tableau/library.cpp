#include "ocdl/tableau/library.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>

namespace ocdl {
namespace {

/// One method as it is printed: the rows of A up to their last entry (zeros follow), then the weights.
struct Row {
  const char* name;
  std::vector<std::vector<double>> A;
  std::vector<double> b;
};

const double root2 = std::sqrt(2.0), root3 = std::sqrt(3.0), root15 = std::sqrt(15.0);

// clang-format off
const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
    // The four methods of the paper's Table 1.
    {"euler", {{}}, {1}},
    {"improved_euler", {{}, {1}}, {1.0/2, 1.0/2}},
    {"kutta3", {{}, {1.0/2}, {-1, 2}}, {1.0/6, 2.0/3, 1.0/6}},
    {"kutta4", {{}, {1.0/2}, {0, 1.0/2}, {0, 0, 1}}, {1.0/6, 1.0/3, 1.0/3, 1.0/6}},
    // Second and third order.
    {"midpoint", {{}, {1.0/2}}, {0, 1}},
    {"ralston", {{}, {2.0/3}}, {1.0/4, 3.0/4}},
    {"heun3", {{}, {1.0/3}, {0, 2.0/3}}, {1.0/4, 0, 3.0/4}},
    {"ssprk3", {{}, {1}, {1.0/4, 1.0/4}}, {1.0/6, 1.0/6, 2.0/3}},
    // Kutta's 3/8 rule.
    {"rk38", {{}, {1.0/3}, {-1.0/3, 1}, {1, -1, 1}}, {1.0/8, 3.0/8, 3.0/8, 1.0/8}},
    // Kutta's fifth-order method with Nystroem's correction: Kutta's own coefficients miss the order.
    {"kutta5",
     {{},
      {1.0/3},
      {4.0/25, 6.0/25},
      {1.0/4, -3, 15.0/4},
      {2.0/27, 10.0/9, -50.0/81, 8.0/81},
      {2.0/25, 12.0/25, 2.0/15, 8.0/75, 0}},
     {23.0/192, 0, 125.0/192, 0, -27.0/64, 125.0/192}},
    // Dormand and Prince (1980) with the fifth-order weights: the last row of A is b, the last weight 0.
    {"dormand_prince",
     {{},
      {1.0/5},
      {3.0/40, 9.0/40},
      {44.0/45, -56.0/15, 32.0/9},
      {19372.0/6561, -25360.0/2187, 64448.0/6561, -212.0/729},
      {9017.0/3168, -355.0/33, 46732.0/5247, 49.0/176, -5103.0/18656},
      {35.0/384, 0, 500.0/1113, 125.0/192, -2187.0/6784, 11.0/84}},
     {35.0/384, 0, 500.0/1113, 125.0/192, -2187.0/6784, 11.0/84, 0}},
    // Implicit, stage by stage.
    {"implicit_euler", {{1}}, {1}},
    {"implicit_midpoint", {{1.0/2}}, {1}},
    {"trapezoidal", {{}, {1.0/2, 1.0/2}}, {1.0/2, 1.0/2}},
    // Alexander's L-stable method.
    {"sdirk2", {{1 - root2/2}, {root2/2, 1 - root2/2}}, {root2/2, 1 - root2/2}},
    // Fully implicit: Gauss and Radau collocation.
    {"gauss2", {{1.0/4, 1.0/4 - root3/6}, {1.0/4 + root3/6, 1.0/4}}, {1.0/2, 1.0/2}},
    {"gauss3",
     {{5.0/36, 2.0/9 - root15/15, 5.0/36 - root15/30},
      {5.0/36 + root15/24, 2.0/9, 5.0/36 - root15/24},
      {5.0/36 + root15/30, 2.0/9 + root15/15, 5.0/36}},
     {5.0/18, 4.0/9, 5.0/18}},
    {"radau_iia2", {{5.0/12, -1.0/12}, {3.0/4, 1.0/4}}, {3.0/4, 1.0/4}},
  };
  return rows;
}
// clang-format on

Tableau tableau_of(const Row& row) {
  const auto stages = static_cast<Index>(row.b.size());
  Matrix A = Matrix::Zero(stages, stages);
  for (std::size_t i = 0; i < row.A.size(); ++i) {
    std::copy(row.A[i].begin(), row.A[i].end(), A.row(static_cast<Index>(i)).begin());
  }
  return Tableau(std::move(A), Eigen::Map<const Vector>(row.b.data(), stages), std::nullopt, row.name);
}

const std::vector<Tableau>& library() {
  static const std::vector<Tableau> tableaux = [] {
    std::vector<Tableau> built;
    for (const Row& row : table()) built.push_back(tableau_of(row));
    return built;
  }();
  return tableaux;
}

}  // namespace

const Tableau& named(std::string_view name) {
  for (const Tableau& tableau : library()) {
    if (tableau.name() == name) return tableau;
  }
  std::string known;
  for (const std::string& candidate : names()) known += (known.empty() ? "" : ", ") + candidate;
  throw std::invalid_argument("unknown tableau '" + std::string(name) + "'; known names are " + known);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Tableau& tableau : library()) all.push_back(tableau.name());
  return all;
}

}  // namespace ocdl
