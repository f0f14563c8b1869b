#pragma once

#include <vector>

#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// What products with second derivatives need beside the scratch memory of their sweeps.
struct SecondOrderWorkspace : Workspace<Dual<double>> {
  std::vector<Dual<double>> controls, gradient;
};

/// product = B direction, with B the Hessian of J at the controls or its Gauss-Newton approximation, which
/// keeps the regulariser's Hessian: one evaluation of J and its gradient in dual numbers. The second
/// derivative of |x| is 0. Steps that are not learned are no variables: their part of the direction is
/// ignored, that of the product is 0.
void curvature_product(const Network& net, const double* controls, const Data<Dual<double>>& data,
                       const Objective& objective, Curvature curvature, const double* direction,
                       double* product, SecondOrderWorkspace& workspace);

/// What a product takes in evaluations of J and its gradient.
inline constexpr int evaluations_per_product = 3;

}  // namespace ocdl
