#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/array.hpp"
#include "bindings/computation.hpp"
#include "bindings/enumeration.hpp"
#include "bindings/result_pool.hpp"
#include "ocdl/objective/second_order.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

/// (name, role, names of the axes, shape) of every part of the controls, in their order.
std::vector<std::tuple<std::string, std::string, std::vector<std::string>, py::tuple>> bound_parts(
    const Network& net) {
  std::vector<std::tuple<std::string, std::string, std::vector<std::string>, py::tuple>> found;
  for (const Part& part : net.parts)
    found.emplace_back(part.name, role_names[static_cast<std::size_t>(part.role)], part.axes,
                       py::cast(part.shape));
  return found;
}

template <class T>
py::tuple bound_forward(const Network& net, const Array<T>& u, const Array<T>& X, bool with_states) {
  const Index samples = X.shape(0);
  const T *controls = view(u, net.control_size(), "u"), *inputs = view(X, samples * net.features, "X");
  Array<T> outputs({samples, net.outputs});
  std::optional<Array<T>> states;
  if (with_states) states = Array<T>({net.layers + 1, samples, net.dim});
  const ForwardResults<T> out{.states = states ? states->mutable_data() : nullptr,
                              .outputs = outputs.mutable_data()};
  compute<T>([&](Workspace<T>& workspace) { forward<T>(net, controls, inputs, samples, out, workspace); });
  return py::make_tuple(states, outputs);
}

template <class T>
Array<T> bound_final_state(const Network& net, const Array<T>& u, const Array<T>& X) {
  const Index samples = X.shape(0);
  const T *controls = view(u, net.control_size(), "u"), *inputs = view(X, samples * net.features, "X");
  Array<T> state({samples, net.dim});
  const ForwardResults<T> out{.final_state = state.mutable_data()};
  compute<T>([&](Workspace<T>& workspace) { forward<T>(net, controls, inputs, samples, out, workspace); });
  return state;
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
    forward<T>(net, u.data(), rows.data(), samples, {.outputs = out}, workspace);
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

/// (gradient, input gradient, costates or None, whether all of them are finite).
template <class T>
py::tuple bound_pull_back(const Network& net, const Array<T>& u, const Array<T>& X,
                          const OptionalArray<T>& output_slopes, const OptionalArray<T>& state_slopes,
                          bool with_costates) {
  const Index samples = X.shape(0), size = net.control_size();
  const T *controls = view(u, size, "u"), *inputs = view(X, samples * net.features, "X");
  const GivenSlopes<T> seed(view(output_slopes, samples * net.outputs, "output_slopes"), net.outputs);
  const bool every_layer = state_slopes && state_slopes->ndim() == 3;
  const Index states = every_layer ? net.layers + 1 : 1;
  const StateSlopes<T> slopes{view(state_slopes, states * samples * net.dim, "state_slopes"), every_layer};
  Array<T> gradient = result_vector<T>(size), input_gradient({samples, net.features});
  std::optional<Array<T>> costates;
  if (with_costates) costates = Array<T>({net.layers + 1, samples, net.dim});
  const Derivatives<T> out{gradient.mutable_data(), input_gradient.mutable_data(),
                           with_costates ? costates->mutable_data() : nullptr};
  bool finite = true;
  compute<T>([&](Workspace<T>& workspace) {
    PullBack<T>(net, controls, inputs, samples, output_slopes ? &seed : nullptr, slopes, out, workspace)
        .run();
    finite = first_non_finite(out.controls, size) < 0 &&
             first_non_finite(out.inputs, samples * net.features) < 0 &&
             (!with_costates || first_non_finite(out.costates, (net.layers + 1) * samples * net.dim) < 0);
  });
  return py::make_tuple(gradient, input_gradient, costates, finite);
}

template <class T>
Index bound_first_non_finite(const Array<T>& values) {
  return first_non_finite(values.data(), values.size());
}

/// (sigma, sigma', sigma'') at these numbers.
py::tuple bound_activation_derivatives(std::string_view activation, const Array<double>& z) {
  const ActivationDerivatives found =
      activation_derivatives(enum_from<Activation>(names_of(activations), activation), z.data(), z.size());
  const auto shaped = [&](const std::vector<double>& values) {
    Array<double> array(std::vector<py::ssize_t>(z.shape(), z.shape() + z.ndim()));
    std::copy(values.begin(), values.end(), array.mutable_data());
    return array;
  };
  return py::make_tuple(shaped(found.value), shaped(found.slope), shaped(found.second));
}

/// name -> (largest slope, whether it has a kink at 0, from which |z| on it is flat).
py::dict bound_activations() {
  py::dict table;
  for (const ActivationFacts& facts : activations)
    table[py::str(facts.name.data(), facts.name.size())] =
        py::make_tuple(facts.steepest, facts.kinked, facts.flat_beyond);
  return table;
}

/// name -> (the field that it is after a linear map of its controls, or itself; whether the state's dimension
/// has to be even).
py::dict bound_fields() {
  py::dict table;
  for (const FieldFacts& facts : fields)
    table[py::str(facts.name.data(), facts.name.size())] =
        py::make_tuple(facts_of(facts.swept_as).name, facts.needs_even_dim);
  return table;
}

/// The controls as the sweeps take them: those of the field that the network's field is swept as.
Array<double> bound_field_controls(const Network& net, const Array<double>& u) {
  Workspace<double> workspace;
  const double* swept = field_controls(net, view(u, net.control_size(), "u"), 0, workspace);
  return Array<double>(net.control_size(), swept);
}

template <class T>
void bind_sweeps(py::class_<Network>& cls) {
  const auto u = py::arg("u").noconvert(), X = py::arg("X").noconvert();
  cls.def("forward", &bound_forward<T>, u, X, py::arg("with_states"));
  cls.def("final_state", &bound_final_state<T>, u, X);
  cls.def("tangent", &bound_tangent<T>, u, X, py::arg("du").noconvert(), py::arg("dX").noconvert());
  cls.def("pull_back", &bound_pull_back<T>, u, X, py::arg("output_slopes").noconvert(),
          py::arg("state_slopes").noconvert(), py::arg("with_costates"));
}

}  // namespace

void bind_network(py::module_& m) {
  py::class_<Network> network(m, "Network");
  network.def(py::init([](Index features, Index dim, Index layers, Index outputs, const Tableau& tableau,
                          std::string_view activation, bool residual, bool stage_controls, bool learns_steps,
                          double horizon, std::string_view field) {
                return Network(features, dim, layers, outputs, tableau,
                               enum_from<Activation>(names_of(activations), activation), residual,
                               stage_controls, learns_steps, horizon,
                               enum_from<FieldKind>(names_of(fields), field));
              }),
              py::arg("features"), py::arg("dim"), py::arg("layers"), py::arg("outputs"), py::arg("tableau"),
              py::arg("activation"), py::arg("residual"), py::arg("stage_controls"), py::arg("learns_steps"),
              py::arg("horizon"), py::arg("field"));
  network.def_property_readonly("parts", &bound_parts);
  network.def_property_readonly("is_implicit", [](const Network& net) { return net.largest_group > 0; });
  network.def("predict", &bound_predict, py::arg("u"), py::arg("X"));
  network.def("field_controls", &bound_field_controls, py::arg("u").noconvert());
  bind_sweeps<double>(network);
  bind_sweeps<float>(network);

  m.def("activations", &bound_activations);
  m.def("activation_derivatives", &bound_activation_derivatives, py::arg("activation"),
        py::arg("z").noconvert());
  m.def("fields", &bound_fields);
  m.def("first_non_finite", &bound_first_non_finite<double>, py::arg("values").noconvert(),
        py::call_guard<py::gil_scoped_release>());
  m.def("first_non_finite", &bound_first_non_finite<float>, py::arg("values").noconvert(),
        py::call_guard<py::gil_scoped_release>());
}

}  // namespace ocdl
