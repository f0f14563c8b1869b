#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/computation.hpp"
#include "bindings/enumeration.hpp"
#include "bindings/fitting.hpp"
#include "bindings/result_pool.hpp"
#include "bindings/targets.hpp"
#include "ocdl/evaluator/score.hpp"
#include "ocdl/objective/second_order.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

py::str text(std::string_view view) { return py::str(view.data(), view.size()); }

/// The loss of this name with these parameters.
Loss make_loss(std::string_view name, const std::map<std::string, double>& parameters) {
  std::optional<Loss> made;
  for_each_loss([&](auto loss) {
    if (loss.traits.name != name) return;
    for (const auto& parameter : loss.parameters)
      loss.*parameter.member = parameters.at(std::string(parameter.name));
    made = loss;
  });
  if (!made) throw std::invalid_argument("unknown loss: " + std::string(name));
  return *made;
}

/// What is known of every loss.
py::list bound_losses() {
  py::list table;
  for_each_loss([&](const auto& loss) {
    py::list parameters;
    for (const auto& parameter : loss.parameters)
      parameters.append(py::make_tuple(text(parameter.name), loss.*parameter.member, parameter.above,
                                       parameter.below, text(parameter.meaning)));
    table.append(py::make_tuple(text(loss.traits.name),
                                text(target_kind_names[static_cast<std::size_t>(loss.traits.targets)]),
                                text(loss.traits.formula), loss.traits.minimum_target, parameters));
  });
  return table;
}

/// Name, weight, parts, and of `GroupL1` the axis.
using PenaltySettings = std::tuple<std::string, double, std::optional<std::vector<std::string>>, std::string>;

Penalty make_penalty(const PenaltySettings& settings) {
  const auto& [name, weight, parts, axis] = settings;
  std::optional<Penalty> made;
  for_each_penalty([&, &name = name, &weight = weight, &parts = parts, &axis = axis](auto penalty) {
    if (penalty.name != name) return;
    penalty.weight = weight;
    penalty.parts = {parts};
    if constexpr (std::is_same_v<decltype(penalty), GroupL1>) penalty.axis = axis;
    made = penalty;
  });
  if (!made) throw std::invalid_argument("unknown penalty: " + name);
  return *made;
}

/// The penalty of the trajectories, which is a cost of the samples.
constexpr const char* kinetic_name = "kinetic";

/// name -> whether it is nonsmooth where a control is 0.
py::dict bound_penalties() {
  py::dict table;
  for_each_penalty([&](const auto& penalty) { table[text(penalty.name)] = penalty.nonsmooth; });
  table[kinetic_name] = false;
  return table;
}

Objective make_objective(std::string_view loss, const std::map<std::string, double>& parameters, bool mean,
                         const std::vector<PenaltySettings>& penalties) {
  Objective objective{make_loss(loss, parameters), mean, {}};
  for (const PenaltySettings& settings : penalties)
    if (std::get<0>(settings) == kinetic_name)
      objective.kinetic += std::get<1>(settings);
    else
      objective.regulariser.penalties.push_back(make_penalty(settings));
  return objective;
}

Index first_outside(const Given<std::int64_t>& labels, std::int64_t lowest, std::int64_t highest) {
  const auto outside = [&](std::int64_t label) { return label < lowest || label > highest; };
  const auto *begin = labels.data(), *end = begin + labels.size(), *match = std::find_if(begin, end, outside);
  return match == end ? -1 : match - begin;
}

/// J; None where an argument has to be converted or explained first, or J is not finite.
py::object bound_value(const Objective& objective, const Network& net, py::handle u, py::handle X,
                       py::handle y, py::handle weights) {
  return with_controls(net, u, [&]<class T>(const Given<T>& controls) -> py::object {
    const std::optional<Data<T>> data = fitting_data<T>(net, objective, X, y, weights);
    if (!data) return py::none();
    double result = std::numeric_limits<double>::quiet_NaN();
    compute<T>([&](Workspace<T>& workspace) {
      if (are_usable(net, objective, *data) && all_finite(controls.data(), controls.size()))
        result = value<T>(net, controls.data(), *data, objective, workspace);
    });
    if (!std::isfinite(result)) return py::none();
    return py::float_(result);
  });
}

/// (value, gradient, input gradient or None); None where an argument has to be converted or explained first,
/// or not all of them are finite.
py::object bound_value_and_grad(const Objective& objective, const Network& net, py::handle u, py::handle X,
                                py::handle y, py::handle weights, py::handle input_grad) {
  return with_controls(net, u, [&]<class T>(const Given<T>& controls) -> py::object {
    const std::optional<Data<T>> data = fitting_data<T>(net, objective, X, y, weights);
    const bool with_inputs = input_grad.ptr() == Py_True;
    if (!data || !(with_inputs || input_grad.ptr() == Py_False)) return py::none();
    Array<T> gradient = result_vector<T>(net.control_size());
    std::optional<Array<T>> input_gradient;
    if (with_inputs) input_gradient = Array<T>({data->samples, net.row_size()});
    // Where sweeps can check the controls they are not read before.
    const bool checked_inline =
        objective.regulariser.none() && !data->targets.grid &&
        can_check_finite_inline(net, plan_blocks<T>(net, data->samples), data->samples);
    bool known_finite = false, finite = false;
    const Derivatives<T> out{.controls = gradient.mutable_data(),
                             .rows = with_inputs ? input_gradient->mutable_data() : nullptr,
                             .known_finite = &known_finite};
    double result = 0;
    compute<T>([&](Workspace<T>& workspace) {
      const auto controls_are_finite = [&] { return all_finite(controls.data(), controls.size()); };
      if (!are_usable(net, objective, *data) || (!checked_inline && !controls_are_finite())) return;
      result = value_and_derivatives<T>(net, controls.data(), *data, objective, out, workspace);
      finite = std::isfinite(result) &&
               (known_finite ||
                ((!checked_inline || controls_are_finite()) && all_finite(out.controls, controls.size()))) &&
               (!with_inputs || all_finite(out.rows, data->samples * net.row_size()));
    });
    if (!finite) return py::none();
    return py::make_tuple(result, gradient, input_gradient);
  });
}

template <class T>
Array<T> bound_adjoint(const Objective& objective, const Network& net, const Given<T>& u, const Given<T>& X,
                       py::handle y, const OptionalGiven<T>& weights) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  Array<T> costates({net.layers + 1, data.samples, net.dim});
  const Derivatives<T> out{.costates = costates.mutable_data()};
  compute<T>([&](Workspace<T>& workspace) {
    value_and_derivatives<T>(net, controls, data, objective, out, workspace);
  });
  return costates;
}

/// R(u) and its gradient.
template <class T>
py::tuple bound_penalty(const Objective& objective, const Network& net, const Given<T>& u) {
  const T* controls = view(u, net.control_size(), "u");
  Array<T> gradient(net.control_size());
  std::fill_n(gradient.mutable_data(), gradient.size(), T(0));
  const double value = objective.regulariser.add(net, controls, gradient.mutable_data());
  return py::make_tuple(value, gradient);
}

/// Second order runs in double precision only.
Array<double> bound_curvature_product(const Objective& objective, const Network& net, const Given<double>& u,
                                      const Given<double>& X, py::handle y,
                                      const OptionalGiven<double>& weights, std::string_view curvature,
                                      const Given<double>& du) {
  const double* controls = view(u, net.control_size(), "u");
  const double* direction = view(du, net.control_size(), "du");
  const Data<double> data = view_data(net, objective.loss, X, y, weights);
  const auto kind = enum_from<Curvature>(curvature_names, curvature);
  Array<double> product = result_vector<double>(net.control_size());
  double* out = product.mutable_data();
  compute<double, SecondOrderWorkspace>([&](SecondOrderWorkspace& workspace) {
    curvature_product(net, controls, data, objective, kind, direction, out, workspace);
  });
  return product;
}

template <class T>
Array<T> bound_output_grad(const Objective& objective, const Given<T>& outputs, py::handle y,
                           const OptionalGiven<T>& weights) {
  const Index samples = outputs.shape(0), q = outputs.shape(1);
  const Data<T> data{
      {}, view_targets<T>(objective.loss, q, y, samples), view(weights, samples, "sample_weight"), samples};
  Array<T> gradient({samples, q});
  const T* z = outputs.data();
  T* out = gradient.mutable_data();
  const py::gil_scoped_release release;
  output_gradient<T>(objective, data, q, z, out);
  return gradient;
}

/// What the outputs stand for: probabilities of the classes, or numbers.
template <class T>
Array<T> bound_mean(const Objective& objective, const Array<T>& outputs) {
  const Index samples = outputs.shape(0), q = outputs.shape(1), columns = mean_size(objective.loss, q);
  Array<T> means({samples, columns});
  std::vector<double> row(static_cast<std::size_t>(columns));
  for (Index i = 0; i < samples; ++i) {
    std::copy_n(outputs.data() + i * q, q, row.begin());
    mean_of(objective.loss, q, row.data());
    std::transform(row.begin(), row.end(), means.mutable_data() + i * columns,
                   [](double number) { return static_cast<T>(number); });
  }
  return means;
}

/// The class that each row of outputs is decided for.
template <class T>
Array<std::int64_t> bound_decisions(const Array<T>& outputs) {
  const Index samples = outputs.shape(0), q = outputs.shape(1);
  Array<std::int64_t> classes(samples);
  for (Index i = 0; i < samples; ++i) classes.mutable_data()[i] = decision(outputs.data() + i * q, q);
  return classes;
}

template <class T>
void bind_evaluations(py::module_& m, py::class_<Objective>& cls) {
  const auto net = py::arg("net"), u = py::arg("u"), y = py::arg("y"), weights = py::arg("sample_weight"),
             outputs = py::arg("outputs");
  cls.def("adjoint", &bound_adjoint<T>, net, u, py::arg("X"), y, weights);
  cls.def("penalty", &bound_penalty<T>, net, u);
  cls.def("output_grad", &bound_output_grad<T>, outputs, y, weights);
  cls.def("mean", &bound_mean<T>, py::arg("outputs").noconvert());
  m.def("decisions", &bound_decisions<T>, py::arg("outputs").noconvert());
}

}  // namespace

void bind_objective(py::module_& m) {
  py::class_<Objective> objective(m, "Objective");
  objective.def(py::init(&make_objective), py::arg("loss"), py::arg("parameters"), py::arg("mean"),
                py::arg("penalties"));
  const auto net = py::arg("net"), u = py::arg("u"), X = py::arg("X"), y = py::arg("y"),
             weights = py::arg("sample_weight");
  objective.def("value", &bound_value, net, u, X, y, weights);
  objective.def("value_and_grad", &bound_value_and_grad, net, u, X, y, weights, py::arg("input_grad"));
  objective.def("curvature_product", &bound_curvature_product, net, u, X, y, weights, py::arg("curvature"),
                py::arg("du"));
  objective.def("smooth_part", [](Objective self) {
    self.regulariser = self.regulariser.smooth_part();
    return self;
  });
  bind_evaluations<double>(m, objective);
  bind_evaluations<float>(m, objective);

  m.def("losses", &bound_losses);
  m.def("penalties", &bound_penalties);
  m.def("curvature_names", [] { return listed(curvature_names); });
  m.def("first_outside", &first_outside, py::arg("labels"), py::arg("lowest"), py::arg("highest"));
}

}  // namespace ocdl
