#include "ocdl/objective/second_order.hpp"

namespace ocdl {

template class AdjointSweep<Dual<double>>;

void start_product(const Network& net, const double* controls, const double* direction, const Shards& shards,
                   Index samples, SecondOrderWorkspace& workspace) {
  const Range steps = net.steps();
  workspace.controls.resize(static_cast<std::size_t>(net.control_size()));
  workspace.gradient.resize(static_cast<std::size_t>(net.control_size()));
  for (Index n = 0; n < net.control_size(); ++n) {
    const bool is_variable = net.learns_steps || n < steps.begin || n >= steps.end;
    workspace.controls[static_cast<std::size_t>(n)] = {controls[n], is_variable ? direction[n] : 0.0};
  }
  start_sum<Dual<double>>(net, shards, samples, workspace.gradient.data(), workspace);
}

void differentiate_losses(const Network& net, const Data<double>& data, const Objective& objective,
                          Curvature curvature, SecondOrderWorkspace& workspace, const BlockPlan& plan) {
  add_up_losses<Dual<double>>(net, workspace.controls.data(), data, objective,
                              {.controls = workspace.gradient.data()}, workspace, plan,
                              curvature == Curvature::gauss_newton);
}

void finish_product(const Network& net, const Regulariser& regulariser, double* product,
                    SecondOrderWorkspace& workspace) {
  for (Index n = 0; n < net.control_size(); ++n) workspace.gradient[std::size_t(n)] = {0, product[n]};
  transpose_field_map(net, workspace.gradient.data());
  regulariser.add(net, workspace.controls.data(), workspace.gradient.data());
  for (const Dual<double>& g : workspace.gradient) *product++ = g.derivative;
}

void curvature_product(const Network& net, const double* controls, const Data<double>& data,
                       const Objective& objective, Curvature curvature, const double* direction,
                       double* product, SecondOrderWorkspace& workspace) {
  const BlockPlan plan = plan_blocks<Dual<double>>(net, data.samples, data.targets.grid.kept_per_sample(net));
  start_product(net, controls, direction, plan.shards, data.samples, workspace);
  differentiate_losses(net, data, objective, curvature, workspace, plan);
  for (Index n = 0; n < net.control_size(); ++n)
    product[n] = product_of(curvature, workspace.gradient[std::size_t(n)]);
  finish_product(net, objective.regulariser, product, workspace);
}

ActivationDerivatives activation_derivatives(Activation activation, const double* z, Index size) {
  constexpr Index width = tile_width<Dual<double>>;
  const auto count = static_cast<std::size_t>(size);
  ActivationDerivatives result{std::vector<double>(count), std::vector<double>(count),
                               std::vector<double>(count)};
  Dual<double> k[width] = {}, stored[width] = {}, slope[width] = {};
  for (Index n = 0; n < size; n += width) {
    const Index in_tile = std::min(width, size - n);
    for (Index i = 0; i < width; ++i) k[i] = {i < in_tile ? z[n + i] : 0.0, 1.0};
    activate<Dual<double>>(activation, k, stored, width);
    write_slope<Dual<double>>(activation, k, stored, slope, width);
    for (Index i = 0; i < in_tile; ++i) {
      const auto at = static_cast<std::size_t>(n + i);
      result.value[at] = k[i].value;
      result.slope[at] = slope[i].value;
      result.second[at] = slope[i].derivative;
    }
  }
  return result;
}

}  // namespace ocdl
