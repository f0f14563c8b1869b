#pragma once

#include "ocdl/objective/second_order.hpp"
#include "ocdl/optimiser/face.hpp"

namespace ocdl {

/// The second derivative of J along directions that a training may take: frozen parts and, on the simplex,
/// steps that cannot move are left out. Always in double precision, on data of its own where the network's
/// are single.
template <class T>
class CurvatureModel {
 public:
  CurvatureModel(const TrainingProblem<T>& problem, Curvature curvature)
      : curvature_(curvature), controls_(static_cast<std::size_t>(problem.size())) {
    if constexpr (std::is_same_v<T, float>) {
      const Data<T>& data = problem.data();
      X_.assign(data.X, data.X + data.samples * problem.network().features);
      if (data.weights) weights_.assign(data.weights, data.weights + data.samples);
    }
  }

  /// product = B direction at the controls of `at`. Counts as `evaluations_per_product` evaluations.
  void multiply(TrainingProblem<T>& problem, const Iterate<T>& at, const double* direction, double* product) {
    std::copy(at.controls.begin(), at.controls.end(), controls_.begin());
    workspace_.watch = problem.workspace().watch;
    curvature_product(problem.network(), controls_.data(), data(problem.data()), problem.objective(),
                      curvature_, direction, product, workspace_);
    problem.clear_frozen(product);
    reduce_to_face(problem, at, product);
    problem.count_evaluations(evaluations_per_product);
  }

 private:
  Curvature curvature_;
  std::vector<double> controls_, X_, weights_;
  SecondOrderWorkspace workspace_;

  Data<Dual<double>> data(const Data<T>& seen) const {
    if constexpr (std::is_same_v<T, float>)
      return {X_.data(), seen.labels, seen.weights ? weights_.data() : nullptr, seen.samples};
    else
      return {seen.X, seen.labels, seen.weights, seen.samples};
  }
};

}  // namespace ocdl
