#pragma once

#include "ocdl/optimiser/face.hpp"

namespace ocdl {

/// The second derivative of J along directions that a training may take: frozen parts and, on the simplex,
/// steps that cannot move are left out. Always in double precision.
template <class T>
class CurvatureModel {
 public:
  /// What a product takes in evaluations of J and its gradient.
  static constexpr int evaluations_per_product = 3;

  explicit CurvatureModel(Curvature curvature) : curvature_(curvature) {}

  /// product = B direction at the controls of `at`. Counts as `evaluations_per_product` evaluations.
  void multiply(TrainingProblem<T>& problem, const Iterate<T>& at, const double* direction, double* product) {
    problem.evaluator().multiply_curvature(at.controls.data(), curvature_, direction, product);
    problem.clear_frozen(product);
    reduce_to_face(problem, at, product);
    problem.count_evaluations(evaluations_per_product);
  }

 private:
  Curvature curvature_;
};

}  // namespace ocdl
