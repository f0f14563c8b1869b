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

/// The steps of a product, for whoever adds losses up by himself: the workspace takes the controls in their
/// direction; its gradient becomes that of the losses, whose derivative is their part of the product; the
/// regulariser's part is added, and the product taken from it.
void prepare(const Network& net, const double* controls, const double* direction,
             SecondOrderWorkspace& workspace);
void differentiate_losses(const Network& net, const double* controls, const Data<Dual<double>>& data,
                          const Objective& objective, Curvature curvature, const double* direction,
                          SecondOrderWorkspace& workspace);
void add_regulariser(const Network& net, const Regulariser& regulariser, double* product,
                     SecondOrderWorkspace& workspace);

/// sigma, sigma' and sigma'' at so many numbers.
struct ActivationDerivatives {
  std::vector<double> value, slope, second;
};
ActivationDerivatives activation_derivatives(Activation activation, const double* z, Index size);

}  // namespace ocdl
