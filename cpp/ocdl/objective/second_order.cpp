#include "ocdl/objective/second_order.hpp"

namespace ocdl {

void curvature_product(const Network& net, const double* controls, const Data<Dual<double>>& data,
                       const Objective& objective, Curvature curvature, const double* direction,
                       double* product, SecondOrderWorkspace& workspace) {
  const Index size = net.control_size(), steps = net.K_size() + net.b_size(), after = steps + net.h_size();
  const bool gauss_newton = curvature == Curvature::gauss_newton;
  workspace.controls.resize(static_cast<std::size_t>(size));
  workspace.gradient.resize(static_cast<std::size_t>(size));
  Dual<double>*u = workspace.controls.data(), *g = workspace.gradient.data();
  for (Index n = 0; n < size; ++n) {
    const bool is_variable = net.learns_steps || n < steps || n >= after;
    u[n] = {controls[n], is_variable ? direction[n] : 0.0};
  }
  Objective losses = objective;
  losses.regulariser = {};
  Evaluation<Dual<double>>(net, u, data, losses, {.controls = g, .gauss_newton = gauss_newton}, workspace)
      .run();
  if (gauss_newton)
    for (Index n = 0; n < size; ++n) g[n] = {0, g[n].value};
  objective.regulariser.add(net, u, g);
  for (Index n = 0; n < size; ++n) product[n] = g[n].derivative;
}

}  // namespace ocdl
