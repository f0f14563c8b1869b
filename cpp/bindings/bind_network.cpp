#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/array.hpp"
#include "bindings/enumeration.hpp"
#include "bindings/interruptible.hpp"
#include "bindings/result_pool.hpp"
#include "ocdl/objective/second_order.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

/// Runs body(workspace) without the GIL, with scratch memory that the calling thread keeps from call to call.
template <class T, class Scratch = Workspace<T>, class Body>
void compute(const Body& body) {
  static thread_local Scratch kept;
  // Taken, not shared: a signal handler may compute something else in between.
  Scratch workspace = std::exchange(kept, {});
  const auto run = [&](Watch& watch) {
    workspace.watch = &watch;
    body(workspace);
    workspace.watch = nullptr;
    workspace.trim();
    kept = std::move(workspace);
  };
  interruptible(run, [] { return false; });
}

Index first_outside(const Array<std::int64_t>& labels, std::int64_t lowest, std::int64_t highest) {
  const auto outside = [&](std::int64_t label) { return label < lowest || label > highest; };
  const auto *begin = labels.data(), *end = begin + labels.size(), *found = std::find_if(begin, end, outside);
  return found == end ? -1 : found - begin;
}

template <class T>
Data<T> view_data(const Network& net, const Array<T>& X, const Array<std::int64_t>& y,
                  const OptionalArray<T>& weights) {
  const Index samples = y.size();
  return {view(X, samples * net.features, "X"), y.data(), view(weights, samples, "sample_weight"), samples};
}

/// Whether the arrays can be evaluated as they are: plain arrays in C order, of the controls' number type,
/// finite, with shapes and labels that fit. Whatever is refused here is converted, or explained, by the
/// Python layer.
template <class T>
bool fits_as(const Network& net, const Array<T>& u, py::handle X, py::handle y) {
  if (!is_plain<T>(X) || !is_plain<std::int64_t>(y)) return false;
  const auto rows = py::reinterpret_borrow<Array<T>>(X);
  const auto labels = py::reinterpret_borrow<Array<std::int64_t>>(y);
  const bool shapes_fit = rows.ndim() == 2 && rows.shape(1) == net.features && rows.shape(0) > 0 &&
                          labels.ndim() == 1 && labels.shape(0) == rows.shape(0) &&
                          u.size() == net.control_size();
  const py::gil_scoped_release release;
  return shapes_fit && first_outside(labels, 0, std::max<Index>(net.outputs - 1, 1)) < 0 &&
         first_non_finite(u.data(), u.size()) < 0 && first_non_finite(rows.data(), rows.size()) < 0;
}

bool fits(const Network& net, py::handle u, py::handle X, py::handle y) {
  if (is_plain<double>(u)) return fits_as<double>(net, py::reinterpret_borrow<Array<double>>(u), X, y);
  if (is_plain<float>(u)) return fits_as<float>(net, py::reinterpret_borrow<Array<float>>(u), X, y);
  return false;
}

template <class T>
py::tuple bound_forward(const Network& net, const Array<T>& u, const Array<T>& X, bool with_states) {
  const Index samples = X.shape(0);
  const T *controls = view(u, net.control_size(), "u"), *inputs = view(X, samples * net.features, "X");
  Array<T> outputs({samples, net.outputs});
  std::optional<Array<T>> states;
  if (with_states) states = Array<T>({net.layers + 1, samples, net.dim});
  T *states_out = states ? states->mutable_data() : nullptr, *outputs_out = outputs.mutable_data();
  compute<T>([&](Workspace<T>& workspace) {
    forward<T>(net, controls, inputs, samples, states_out, outputs_out, workspace);
  });
  return py::make_tuple(states, outputs);
}

/// The outputs, where u and X need no conversion and all is finite; else nothing, and the Python layer finds
/// out why. An input that is not finite stays in the state of a residual network, y + h k, and W y + mu shows
/// it: only feed-forward networks have to be asked before.
template <class T>
std::optional<Array<T>> predict_as(const Network& net, const Array<T>& u, py::handle X) {
  if (!is_plain<T>(X)) return std::nullopt;
  const auto rows = py::reinterpret_borrow<Array<T>>(X);
  if (rows.ndim() != 2 || rows.shape(1) != net.features || rows.shape(0) == 0 ||
      u.size() != net.control_size() || first_non_finite(u.data(), u.size()) >= 0)
    return std::nullopt;
  const Index samples = rows.shape(0);
  Array<T> outputs({samples, net.outputs});
  T* out = outputs.mutable_data();
  bool is_finite = false;
  compute<T>([&](Workspace<T>& workspace) {
    if (!net.residual && first_non_finite(rows.data(), rows.size()) >= 0) return;
    forward<T>(net, u.data(), rows.data(), samples, nullptr, out, workspace);
    is_finite = first_non_finite(out, outputs.size()) < 0;
  });
  if (!is_finite) return std::nullopt;
  return outputs;
}

py::object bound_predict(const Network& net, py::handle u, py::handle X) {
  if (is_plain<double>(u)) return py::cast(predict_as(net, py::reinterpret_borrow<Array<double>>(u), X));
  if (is_plain<float>(u)) return py::cast(predict_as(net, py::reinterpret_borrow<Array<float>>(u), X));
  return py::none();
}

template <class T>
Array<T> bound_tangent(const Network& net, const Array<T>& u, const Array<T>& X, const OptionalArray<T>& du,
                       const OptionalArray<T>& dX) {
  const Index samples = X.shape(0);
  const T *controls = view(u, net.control_size(), "u"), *inputs = view(X, samples * net.features, "X");
  const T *direction = view(du, net.control_size(), "du"), *input_direction = view(dX, X.size(), "dX");
  Array<T> tangents({net.layers + 1, samples, net.dim});
  T* out = tangents.mutable_data();
  compute<T>([&](Workspace<T>& workspace) {
    tangent<T>(net, controls, inputs, samples, direction, input_direction, out, workspace);
  });
  return tangents;
}

template <class T>
double bound_value(const Network& net, const Array<T>& u, const Array<T>& X, const Array<std::int64_t>& y,
                   const OptionalArray<T>& weights, const Objective& objective) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_data(net, X, y, weights);
  double result = 0;
  compute<T>([&](Workspace<T>& workspace) { result = value<T>(net, controls, data, objective, workspace); });
  return result;
}

/// (value, gradient, input gradient or None, whether all of them are finite).
template <class T>
py::tuple bound_value_and_grad(const Network& net, const Array<T>& u, const Array<T>& X,
                               const Array<std::int64_t>& y, const OptionalArray<T>& weights,
                               const Objective& objective, bool with_inputs) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_data(net, X, y, weights);
  Array<T> gradient = result_vector<T>(net.control_size());
  std::optional<Array<T>> input_gradient;
  if (with_inputs) input_gradient = Array<T>({data.samples, net.features});
  const Derivatives<T> out{gradient.mutable_data(), with_inputs ? input_gradient->mutable_data() : nullptr,
                           nullptr};
  double result = 0;
  bool finite = true;
  compute<T>([&](Workspace<T>& workspace) {
    result = value_and_derivatives<T>(net, controls, data, objective, out, workspace);
    finite = std::isfinite(result) && first_non_finite(out.controls, net.control_size()) < 0 &&
             (!with_inputs || first_non_finite(out.inputs, data.samples * net.features) < 0);
  });
  return py::make_tuple(result, gradient, input_gradient, finite);
}

template <class T>
Array<T> bound_adjoint(const Network& net, const Array<T>& u, const Array<T>& X, const Array<std::int64_t>& y,
                       const OptionalArray<T>& weights, const Objective& objective) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_data(net, X, y, weights);
  Array<T> costates({net.layers + 1, data.samples, net.dim});
  const Derivatives<T> out{nullptr, nullptr, costates.mutable_data()};
  compute<T>([&](Workspace<T>& workspace) {
    value_and_derivatives<T>(net, controls, data, objective, out, workspace);
  });
  return costates;
}

template <class T>
Index bound_first_non_finite(const Array<T>& values) {
  return first_non_finite(values.data(), values.size());
}

/// Second order runs in double precision only.
Array<double> bound_curvature_product(const Network& net, const Array<double>& u, const Array<double>& X,
                                      const Array<std::int64_t>& y, const OptionalArray<double>& weights,
                                      const Objective& objective, std::string_view curvature,
                                      const Array<double>& du) {
  const double* controls = view(u, net.control_size(), "u");
  const double* direction = view(du, net.control_size(), "du");
  const Data<double> seen = view_data(net, X, y, weights);
  const Data<Dual<double>> data{seen.X, seen.labels, seen.weights, seen.samples};
  const auto kind = enum_from<Curvature>(curvature_names, curvature);
  Array<double> product = result_vector<double>(net.control_size());
  double* out = product.mutable_data();
  compute<double, SecondOrderWorkspace>([&](SecondOrderWorkspace& workspace) {
    curvature_product(net, controls, data, objective, kind, direction, out, workspace);
  });
  return product;
}

template <class T>
void bind_evaluations(py::class_<Network>& cls) {
  const auto u = py::arg("u").noconvert(), X = py::arg("X").noconvert(), y = py::arg("y").noconvert();
  const auto weights = py::arg("sample_weight").noconvert();
  cls.def("forward", &bound_forward<T>, u, X, py::arg("with_states"));
  cls.def("tangent", &bound_tangent<T>, u, X, py::arg("du").noconvert(), py::arg("dX").noconvert());
  cls.def("value", &bound_value<T>, u, X, y, weights, py::arg("objective"));
  cls.def("value_and_grad", &bound_value_and_grad<T>, u, X, y, weights, py::arg("objective"),
          py::arg("with_inputs"));
  cls.def("adjoint", &bound_adjoint<T>, u, X, y, weights, py::arg("objective"));
}

}  // namespace

void bind_network(py::module_& m) {
  py::class_<Objective>(m, "Objective")
      .def(py::init([](std::string_view loss, bool mean, double tikhonov, double l1, double time_smoothness) {
             return Objective{enum_from<Loss>(loss_names, loss), mean, {tikhonov, l1, time_smoothness}};
           }),
           py::arg("loss"), py::arg("mean"), py::arg("tikhonov"), py::arg("l1"), py::arg("time_smoothness"));

  py::class_<Network> network(m, "Network");
  network.def(py::init([](Index features, Index dim, Index layers, Index outputs, const Tableau& tableau,
                          std::string_view activation, bool residual, bool stage_controls, bool learns_steps,
                          double horizon, std::string_view field) {
                return Network(features, dim, layers, outputs, tableau,
                               enum_from<Activation>(activation_names, activation), residual, stage_controls,
                               learns_steps, horizon, enum_from<FieldKind>(field_names, field));
              }),
              py::arg("features"), py::arg("dim"), py::arg("layers"), py::arg("outputs"), py::arg("tableau"),
              py::arg("activation"), py::arg("residual"), py::arg("stage_controls"), py::arg("learns_steps"),
              py::arg("horizon"), py::arg("field"));
  network.def("fits", &fits, py::arg("u"), py::arg("X"), py::arg("y"));
  network.def("predict", &bound_predict, py::arg("u"), py::arg("X"));
  network.def_property_readonly("control_size", &Network::control_size);
  network.def_property_readonly("is_implicit", [](const Network& net) { return net.largest_group > 0; });
  bind_evaluations<double>(network);
  bind_evaluations<float>(network);
  network.def("curvature_product", &bound_curvature_product, py::arg("u").noconvert(),
              py::arg("X").noconvert(), py::arg("y").noconvert(), py::arg("sample_weight").noconvert(),
              py::arg("objective"), py::arg("curvature"), py::arg("du").noconvert());

  m.def("activation_names", [] { return listed(activation_names); });
  m.def("field_names", [] { return listed(field_names); });
  m.def("loss_names", [] { return listed(loss_names); });
  m.def("curvature_names", [] { return listed(curvature_names); });
  m.def("first_non_finite", &bound_first_non_finite<double>, py::arg("values").noconvert(),
        py::call_guard<py::gil_scoped_release>());
  m.def("first_non_finite", &bound_first_non_finite<float>, py::arg("values").noconvert(),
        py::call_guard<py::gil_scoped_release>());
  m.def("first_outside", &first_outside, py::arg("labels").noconvert(), py::arg("lowest"),
        py::arg("highest"));
}

}  // namespace ocdl
