#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/computation.hpp"
#include "bindings/targets.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

template <class T>
Data<T> view_observed(const Network& net, const Given<T>& X, py::handle observed) {
  const Index samples = X.shape(0);
  const std::optional<Targets<T>> targets = view_observations<T>(observed, samples);
  if (!targets) throw std::invalid_argument("observations must be such, of the network's type");
  return {{view(X, samples * net.row_size(), "X"), net.row_size()}, *targets, nullptr, samples};
}

/// The outputs at the times of observation, (samples, times, outputs).
template <class T>
Array<T> outputs_at(const Network& net, const Given<T>& u, const Given<T>& X, py::handle observed) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_observed<T>(net, X, observed);
  Array<T> outputs({data.samples, data.targets.grid.times, net.outputs});
  T* out = outputs.mutable_data();
  compute<T>([&](Workspace<T>& workspace) { predict<T>(net, controls, data, out, workspace); });
  return outputs;
}

/// (gradient, row gradient, costates) for cotangents of these outputs.
template <class T>
py::tuple observed_vjp(const Network& net, const Given<T>& u, const Given<T>& X, py::handle observed,
                       const Given<T>& cotangents) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_observed<T>(net, X, observed);
  const Index samples = data.samples;
  const T* given = view(cotangents, samples * data.targets.grid.row_size(net.outputs), "cotangents");
  Array<T> gradient(net.control_size()), rows({samples, net.row_size()}),
      costates({net.layers + 1, samples, net.dim});
  const Derivatives<T> out{gradient.mutable_data(), rows.mutable_data(), costates.mutable_data()};
  compute<T>([&](Workspace<T>& workspace) {
    with_given_cotangents(net, controls, data, given, [&](const Cost<T>& cost) {
      AdjointSweep<T>(net, controls, {net, data.X.data}, samples, {&cost}, out, workspace).run();
    });
  });
  return py::make_tuple(gradient, rows, costates);
}

template <class T>
void bind_outputs(py::module_& m) {
  const auto net = py::arg("net"), u = py::arg("u"), X = py::arg("X"), observed = py::arg("observed");
  m.def("outputs_at", &outputs_at<T>, net, u, X, observed);
  m.def("observed_vjp", &observed_vjp<T>, net, u, X, observed, py::arg("cotangents"));
}

}  // namespace

void bind_observations(py::module_& m) {
  bind_outputs<double>(m);
  bind_outputs<float>(m);
}

}  // namespace ocdl
