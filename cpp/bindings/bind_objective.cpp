#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/computation.hpp"
#include "bindings/enumeration.hpp"
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
    if (loss.facts.name != name) return;
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
    table.append(py::make_tuple(text(loss.facts.name),
                                text(target_kind_names[static_cast<std::size_t>(loss.facts.targets)]),
                                text(loss.facts.formula), loss.facts.least_target, parameters));
  });
  return table;
}

using PenaltySettings = std::tuple<std::string, double, std::optional<std::vector<std::string>>>;

Penalty make_penalty(const PenaltySettings& settings) {
  const auto& [name, weight, parts] = settings;
  std::optional<Penalty> made;
  for_each_penalty([&, &name = name, &weight = weight, &parts = parts](auto penalty) {
    if (penalty.name != name) return;
    penalty.weight = weight;
    penalty.parts = {parts};
    made = penalty;
  });
  if (!made) throw std::invalid_argument("unknown penalty: " + name);
  return *made;
}

/// name -> whether it has a kink where a control is 0.
py::dict bound_penalties() {
  py::dict table;
  for_each_penalty([&](const auto& penalty) { table[text(penalty.name)] = penalty.kinked; });
  return table;
}

Objective make_objective(std::string_view loss, const std::map<std::string, double>& parameters, bool mean,
                         const std::vector<PenaltySettings>& penalties) {
  Objective objective{make_loss(loss, parameters), mean, {}};
  for (const PenaltySettings& settings : penalties)
    objective.regulariser.penalties.push_back(make_penalty(settings));
  return objective;
}

Index first_outside(const Array<std::int64_t>& labels, std::int64_t lowest, std::int64_t highest) {
  const auto outside = [&](std::int64_t label) { return label < lowest || label > highest; };
  const auto *begin = labels.data(), *end = begin + labels.size(), *found = std::find_if(begin, end, outside);
  return found == end ? -1 : found - begin;
}

/// Whether labels or numbers fit so many samples and the loss.
template <class T>
bool targets_fit(const Network& net, const Loss& loss, py::handle y, Index samples) {
  const LossFacts& facts = facts_of(loss);
  if (facts.targets == TargetKind::classes) {
    if (!is_plain<std::int64_t>(y)) return false;
    const auto labels = py::reinterpret_borrow<Array<std::int64_t>>(y);
    return labels.ndim() == 1 && labels.shape(0) == samples &&
           first_outside(labels, 0, std::max<Index>(net.outputs - 1, 1)) < 0;
  }
  if (!is_plain<T>(y)) return false;
  const auto numbers = py::reinterpret_borrow<Array<T>>(y);
  const bool is_table = numbers.ndim() == 2 && numbers.shape(1) == net.outputs;
  if (!is_table && !(numbers.ndim() == 1 && net.outputs == 1)) return false;
  return numbers.shape(0) == samples && first_non_finite(numbers.data(), numbers.size()) < 0 &&
         std::all_of(
             numbers.data(), numbers.data() + numbers.size(),
             [&](T number) { return static_cast<double>(number) >= facts.least_target; });
}

/// Whether the arrays can be evaluated as they are: plain arrays in C order, of the controls' number type,
/// finite, with shapes and targets that fit. Whatever is refused here is converted, or explained, by the
/// Python layer.
template <class T>
bool fits_as(const Network& net, const Objective& objective, const Array<T>& u, py::handle X, py::handle y) {
  if (!is_plain<T>(X)) return false;
  const auto rows = py::reinterpret_borrow<Array<T>>(X);
  const bool shapes_fit = rows.ndim() == 2 && rows.shape(1) == net.features && rows.shape(0) > 0 &&
                          u.size() == net.control_size();
  if (!shapes_fit || !targets_fit<T>(net, objective.loss, y, rows.shape(0))) return false;
  const py::gil_scoped_release release;
  return first_non_finite(u.data(), u.size()) < 0 && first_non_finite(rows.data(), rows.size()) < 0;
}

bool fits(const Objective& objective, const Network& net, py::handle u, py::handle X, py::handle y) {
  if (is_plain<double>(u))
    return fits_as<double>(net, objective, py::reinterpret_borrow<Array<double>>(u), X, y);
  if (is_plain<float>(u))
    return fits_as<float>(net, objective, py::reinterpret_borrow<Array<float>>(u), X, y);
  return false;
}

template <class T>
double bound_value(const Objective& objective, const Network& net, const Array<T>& u, const Array<T>& X,
                   py::handle y, const OptionalArray<T>& weights) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  double result = 0;
  compute<T>([&](Workspace<T>& workspace) { result = value<T>(net, controls, data, objective, workspace); });
  return result;
}

/// (value, gradient, input gradient or None, whether all of them are finite).
template <class T>
py::tuple bound_value_and_grad(const Objective& objective, const Network& net, const Array<T>& u,
                               const Array<T>& X, py::handle y, const OptionalArray<T>& weights,
                               bool with_inputs) {
  const T* controls = view(u, net.control_size(), "u");
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  Array<T> gradient = result_vector<T>(net.control_size());
  std::optional<Array<T>> input_gradient;
  if (with_inputs) input_gradient = Array<T>({data.samples, net.features});
  const Derivatives<T> out{.controls = gradient.mutable_data(),
                           .inputs = with_inputs ? input_gradient->mutable_data() : nullptr};
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
Array<T> bound_adjoint(const Objective& objective, const Network& net, const Array<T>& u, const Array<T>& X,
                       py::handle y, const OptionalArray<T>& weights) {
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
py::tuple bound_penalty(const Objective& objective, const Network& net, const Array<T>& u) {
  const T* controls = view(u, net.control_size(), "u");
  Array<T> gradient(net.control_size());
  std::fill_n(gradient.mutable_data(), gradient.size(), T(0));
  const double value = objective.regulariser.add(net, controls, gradient.mutable_data());
  return py::make_tuple(value, gradient);
}

/// Second order runs in double precision only.
Array<double> bound_curvature_product(const Objective& objective, const Network& net, const Array<double>& u,
                                      const Array<double>& X, py::handle y,
                                      const OptionalArray<double>& weights, std::string_view curvature,
                                      const Array<double>& du) {
  const double* controls = view(u, net.control_size(), "u");
  const double* direction = view(du, net.control_size(), "du");
  const Data<double> seen = view_data(net, objective.loss, X, y, weights);
  const Data<Dual<double>> data{
      seen.X, {seen.targets.labels, seen.targets.numbers}, seen.weights, seen.samples};
  const auto kind = enum_from<Curvature>(curvature_names, curvature);
  Array<double> product = result_vector<double>(net.control_size());
  double* out = product.mutable_data();
  compute<double, SecondOrderWorkspace>([&](SecondOrderWorkspace& workspace) {
    curvature_product(net, controls, data, objective, kind, direction, out, workspace);
  });
  return product;
}

template <class T>
Array<T> bound_slopes(const Objective& objective, const Array<T>& outputs, py::handle y,
                      const OptionalArray<T>& weights) {
  const Index samples = outputs.shape(0), q = outputs.shape(1);
  const Data<T> data{nullptr, view_targets<T>(objective.loss, q, y, samples),
                     view(weights, samples, "sample_weight"), samples};
  Array<T> slopes({samples, q});
  const T* z = outputs.data();
  T* out = slopes.mutable_data();
  const py::gil_scoped_release release;
  output_slopes<T>(objective, data, q, z, out);
  return slopes;
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
  const auto net = py::arg("net"), u = py::arg("u").noconvert(), X = py::arg("X").noconvert(),
             y = py::arg("y");
  const auto weights = py::arg("sample_weight").noconvert(), outputs = py::arg("outputs").noconvert();
  cls.def("value", &bound_value<T>, net, u, X, y, weights);
  cls.def("value_and_grad", &bound_value_and_grad<T>, net, u, X, y, weights, py::arg("with_inputs"));
  cls.def("adjoint", &bound_adjoint<T>, net, u, X, y, weights);
  cls.def("penalty", &bound_penalty<T>, net, u);
  cls.def("slopes", &bound_slopes<T>, outputs, y, weights);
  cls.def("mean", &bound_mean<T>, outputs);
  m.def("decisions", &bound_decisions<T>, outputs);
}

}  // namespace

void bind_objective(py::module_& m) {
  py::class_<Objective> objective(m, "Objective");
  objective.def(py::init(&make_objective), py::arg("loss"), py::arg("parameters"), py::arg("mean"),
                py::arg("penalties"));
  objective.def("fits", &fits, py::arg("net"), py::arg("u"), py::arg("X"), py::arg("y"));
  objective.def("curvature_product", &bound_curvature_product, py::arg("net"), py::arg("u").noconvert(),
                py::arg("X").noconvert(), py::arg("y"), py::arg("sample_weight").noconvert(),
                py::arg("curvature"), py::arg("du").noconvert());
  bind_evaluations<double>(m, objective);
  bind_evaluations<float>(m, objective);

  m.def("losses", &bound_losses);
  m.def("penalties", &bound_penalties);
  m.def("curvature_names", [] { return listed(curvature_names); });
  m.def("first_outside", &first_outside, py::arg("labels").noconvert(), py::arg("lowest"),
        py::arg("highest"));
}

}  // namespace ocdl
