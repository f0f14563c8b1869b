#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/enumeration.hpp"
#include "bindings/result_pool.hpp"
#include "bindings/sweeps.hpp"
#include "ocdl/objective/second_order.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

/// (name, role, names of the axes, shape) of every part of the controls, in their order.
std::vector<std::tuple<std::string, std::string, std::vector<std::string>, py::tuple>> bound_parts(
    const Network& net) {
  std::vector<std::tuple<std::string, std::string, std::vector<std::string>, py::tuple>> result;
  for (const Part& part : net.parts)
    result.emplace_back(part.name, role_names[static_cast<std::size_t>(part.role)], part.axes,
                        py::cast(part.shape));
  return result;
}

/// Part of the field -> (distribution, size, scaled size), see `Start`.
py::dict bound_starts(const Network& net) {
  py::dict starts;
  for (const FieldPart& part : net.field<double>().parts())
    starts[py::str(part.name.data(), part.name.size())] =
        py::make_tuple(part.start.distribution, part.start.size, part.start.scaled_size);
  return starts;
}

template <class T>
py::tuple bound_forward(const Network& net, const Given<T>& u, const Given<T>& X) {
  const Index samples = X.shape(0);
  const T *controls = view(u, net.control_size(), "u"), *inputs = view(X, samples * net.row_size(), "X");
  Array<T> states({net.layers + 1, samples, net.dim}), outputs({samples, net.outputs});
  const ForwardResults<T> out{.states = states.mutable_data(), .outputs = outputs.mutable_data()};
  compute<T>([&](Workspace<T>& workspace) { forward<T>(net, controls, inputs, samples, out, workspace); });
  return py::make_tuple(states, outputs);
}

/// y[N] or W y[N] + mu; None where an argument has to be converted or explained first, or not all are finite.
template <EndOfFlow wanted>
py::object bound_end(const Network& net, py::handle u, py::handle X) {
  return with_controls(net, u, [&]<class T>(const Given<T>& controls) -> py::object {
    const PlainSamples<T> rows(net, X);
    if (!rows.X) return py::none();
    Array<T> result = result_array<T>({rows.samples, end_size(net, wanted)});
    if (!compute_end<T>(net, wanted, controls.data(), rows.X, rows.samples, result.mutable_data()))
      return py::none();
    return result;
  });
}

template <class T>
Array<T> bound_tangent(const Network& net, const Given<T>& u, const Given<T>& X, const OptionalGiven<T>& du,
                       const OptionalGiven<T>& dX) {
  const Index samples = X.shape(0);
  const T *controls = view(u, net.control_size(), "u"), *inputs = view(X, samples * net.row_size(), "X");
  const T *direction = view(du, net.control_size(), "du"), *input_direction = view(dX, X.size(), "dX");
  Array<T> tangents({net.layers + 1, samples, net.dim});
  T* out = tangents.mutable_data();
  compute<T>([&](Workspace<T>& workspace) {
    tangent<T>(net, controls, inputs, samples, direction, input_direction, out, workspace);
  });
  return tangents;
}

/// (gradient, input gradient, costates or None); None where an argument has to be converted or explained
/// first, or `require_finite` and not all of them are finite.
py::object bound_vjp(const Network& net, py::handle u, py::handle X, py::handle output_cotangents,
                     py::handle state_cotangents, bool with_costates, bool require_finite) {
  return with_controls(net, u, [&]<class T>(const Given<T>& controls) -> py::object {
    const PlainSamples<T> rows(net, X);
    const Index samples = rows.samples, states = net.layers + 1;
    const T *of_outputs = numbers_of<T>(output_cotangents, {samples, net.outputs}),
            *of_last = numbers_of<T>(state_cotangents, {samples, net.dim}),
            *of_states = numbers_of<T>(state_cotangents, {states, samples, net.dim});
    if (!rows.X || (!of_outputs && !output_cotangents.is_none()) ||
        (!of_last && !of_states && !state_cotangents.is_none()))
      return py::none();
    Array<T> gradient = result_vector<T>(net.control_size()), input_gradient({samples, net.row_size()});
    std::optional<Array<T>> costates;
    if (with_costates) costates = Array<T>({states, samples, net.dim});
    const Derivatives<T> out{gradient.mutable_data(), input_gradient.mutable_data(),
                             with_costates ? costates->mutable_data() : nullptr};
    const Cotangents<T> cotangents{of_outputs, of_last, of_states};
    if (!compute_vjp<T>(net, controls.data(), rows.X, samples, cotangents, out, require_finite))
      return py::none();
    return py::make_tuple(gradient, input_gradient, costates);
  });
}

template <class T>
Index bound_first_non_finite(const Given<T>& values) {
  return first_non_finite(values.data(), values.size());
}

/// (sigma, sigma', sigma'') at these numbers.
py::tuple bound_activation_derivatives(std::string_view activation, const Array<double>& z) {
  const ActivationDerivatives result =
      activation_derivatives(enum_from<Activation>(names_of(activations), activation), z.data(), z.size());
  const auto shaped = [&](const std::vector<double>& values) {
    Array<double> array(std::vector<py::ssize_t>(z.shape(), z.shape() + z.ndim()));
    std::copy(values.begin(), values.end(), array.mutable_data());
    return array;
  };
  return py::make_tuple(shaped(result.value), shaped(result.slope), shaped(result.second));
}

/// z <- sigma(z) on whole packs, as a sweep does it: what the benchmarks take for the speed of an activation.
template <class T>
void bound_activate(std::string_view activation, Array<T>& z) {
  activate<T>(enum_from<Activation>(names_of(activations), activation), z.mutable_data(), nullptr,
              z.size() / lanes<T> * lanes<T>);
}

/// name -> (largest slope, whether it has a kink at 0, from which |z| on it is flat).
py::dict bound_activations() {
  py::dict table;
  for (const ActivationTraits& traits : activations)
    table[py::str(traits.name.data(), traits.name.size())] =
        py::make_tuple(traits.steepest, traits.kinked, traits.flat_beyond, traits.increasing);
  return table;
}

/// name -> ("dense" where its sweeps are those of the dense field, else itself; whether the state's dimension
/// has to be even; the option that it requires; whether it takes inputs).
py::dict bound_fields() {
  py::dict table;
  for (const FieldTraits& traits : fields)
    table[py::str(traits.name.data(), traits.name.size())] =
        py::make_tuple(traits.is_dense ? "dense" : traits.name, traits.needs_even_dim, traits.option,
                       traits.requires_option, traits.takes_inputs);
  return table;
}

/// The controls as the sweeps take them: those of the field that the network's field is swept as.
Array<double> bound_field_controls(const Network& net, const Given<double>& u) {
  Workspace<double> workspace;
  const double* swept = field_controls(net, view(u, net.control_size(), "u"), 0, workspace);
  return Array<double>(net.control_size(), swept);
}

template <class T>
void bind_sweeps(py::class_<Network>& cls) {
  const auto u = py::arg("u"), X = py::arg("X");
  cls.def("forward", &bound_forward<T>, u, X);
  cls.def("tangent", &bound_tangent<T>, u, X, py::arg("du"), py::arg("dX"));
}

}  // namespace

void bind_network(py::module_& m) {
  py::class_<Network> network(m, "Network");
  network.def(py::init([](Index features, Index dim, Index layers, Index outputs, const Tableau& tableau,
                          std::string_view activation, bool residual, bool stage_controls, bool learns_steps,
                          double horizon, std::string_view field, Index width, Index degree, Index inputs,
                          bool linear_inputs, std::vector<Index> layer_sets) {
                return Network({.features = features,
                                .dim = dim,
                                .layers = layers,
                                .outputs = outputs,
                                .tableau = tableau,
                                .activation = enum_from<Activation>(names_of(activations), activation),
                                .field_kind = enum_from<FieldKind>(names_of(fields), field),
                                .width = width,
                                .degree = degree,
                                .inputs = inputs,
                                .linear_inputs = linear_inputs,
                                .residual = residual,
                                .stage_controls = stage_controls,
                                .learns_steps = learns_steps,
                                .horizon = horizon,
                                .layer_sets = std::move(layer_sets)});
              }),
              py::arg("features"), py::arg("dim"), py::arg("layers"), py::arg("outputs"), py::arg("tableau"),
              py::arg("activation"), py::arg("residual"), py::arg("stage_controls"), py::arg("learns_steps"),
              py::arg("horizon"), py::arg("field"), py::arg("width"), py::arg("degree"), py::arg("inputs"),
              py::arg("linear_inputs"), py::arg("layer_sets"));
  network.def_property_readonly("parts", &bound_parts);
  network.def_property_readonly("starts", &bound_starts);
  network.def_readonly("inputs", &Network::inputs);
  network.def_property_readonly("row_size", &Network::row_size);
  network.def_property_readonly("is_implicit", [](const Network& net) { return net.largest_group > 0; });
  network.def("predict", &bound_end<EndOfFlow::outputs>, py::arg("u"), py::arg("X"));
  network.def("final_state", &bound_end<EndOfFlow::state>, py::arg("u"), py::arg("X"));
  network.def("vjp", &bound_vjp, py::arg("u"), py::arg("X"), py::arg("output_cotangents"),
              py::arg("state_cotangents"), py::arg("with_costates"), py::arg("require_finite") = true);
  network.def("field_controls", &bound_field_controls, py::arg("u"));
  network.def(
      "scratch_bytes",
      [](const Network& net, Index samples, bool single) {
        const int threads = ThreadLimit::sensible();
        return single ? scratch_bytes<float>(net, samples, threads)
                      : scratch_bytes<double>(net, samples, threads);
      },
      py::arg("samples"), py::arg("single"));
  bind_sweeps<double>(network);
  bind_sweeps<float>(network);

  m.def("activations", &bound_activations);
  m.def("activate", &bound_activate<double>, py::arg("activation"), py::arg("z").noconvert());
  m.def("activate", &bound_activate<float>, py::arg("activation"), py::arg("z").noconvert());
  m.def("activation_derivatives", &bound_activation_derivatives, py::arg("activation"),
        py::arg("z").noconvert());
  m.def("fields", &bound_fields);
  m.def("first_non_finite", &bound_first_non_finite<double>, py::arg("values"),
        py::call_guard<py::gil_scoped_release>());
  m.def("first_non_finite", &bound_first_non_finite<float>, py::arg("values"),
        py::call_guard<py::gil_scoped_release>());
}

}  // namespace ocdl
