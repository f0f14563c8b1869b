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
void curvature_product(const Network& net, const double* controls, const Data<double>& data,
                       const Objective& objective, Curvature curvature, const double* direction,
                       double* product, SecondOrderWorkspace& workspace);

/// The steps of a product over some of the samples at a time. The workspace's tree takes the gradient of the
/// losses in dual numbers; `product_of` is what an entry of it gives to the product. `finish_product` makes
/// the product of their sum over all samples, in its place.
void start_product(const Network& net, const double* controls, const double* direction, const Shards& shards,
                   Index samples, SecondOrderWorkspace& workspace);
void differentiate_losses(const Network& net, const Data<double>& data, const Objective& objective,
                          Curvature curvature, SecondOrderWorkspace& workspace, const BlockPlan& plan);
inline double product_of(Curvature curvature, const Dual<double>& entry) {
  return curvature == Curvature::gauss_newton ? entry.value : entry.derivative;
}
void finish_product(const Network& net, const Regulariser& regulariser, double* product,
                    SecondOrderWorkspace& workspace);

/// sigma, sigma' and sigma'' at so many numbers.
struct ActivationDerivatives {
  std::vector<double> value, slope, second;
};
ActivationDerivatives activation_derivatives(Activation activation, const double* z, Index size);

}  // namespace ocdl
