#pragma once

#include <span>

#include "bindings/targets.hpp"

/// What can be computed with as it is: plain arrays in C order, of the controls' number type, finite, with
/// shapes, targets and weights that fit. Whatever does not fit is converted, or explained, by the Python
/// layer; here nothing is the whole answer.
namespace ocdl {

/// f(u) with the controls in their own precision; None where they are no plain vector of the network's
/// length.
template <class F>
pybind11::object with_controls(const Network& net, pybind11::handle u, const F& f) {
  namespace py = pybind11;
  const auto fits = [&](const py::array& vector) { return vector.size() == net.control_size(); };
  if (is_plain<double>(u)) {
    const auto vector = py::reinterpret_borrow<Given<double>>(u);
    if (fits(vector)) return f(vector);
  } else if (is_plain<float>(u)) {
    const auto vector = py::reinterpret_borrow<Given<float>>(u);
    if (fits(vector)) return f(vector);
  }
  return py::none();
}

/// The numbers of a plain array of this shape, or null.
template <class T>
const T* numbers_of(pybind11::handle object, std::span<const Index> shape) {
  if (!is_plain<T>(object)) return nullptr;
  const auto array = pybind11::reinterpret_borrow<Array<T>>(object);
  const bool fits = std::equal(shape.begin(), shape.end(), array.shape(), array.shape() + array.ndim());
  return fits ? array.data() : nullptr;
}

template <class T>
const T* numbers_of(pybind11::handle object, std::initializer_list<Index> shape) {
  return numbers_of<T>(object, std::span(shape.begin(), shape.size()));
}

/// Samples in rows of the network's features and inputs.
template <class T>
struct PlainSamples {
  const T* X = nullptr;  ///< null where an object holds no such rows, or none at all
  Index samples = 0;

  PlainSamples(const Network& net, pybind11::handle object) {
    if (!is_plain<T>(object)) return;
    const auto array = pybind11::reinterpret_borrow<Array<T>>(object);
    if (array.ndim() != 2 || array.shape(1) != net.row_size() || array.shape(0) == 0) return;
    X = array.data();
    samples = array.shape(0);
  }
};

/// Whether the network has the parts that penalties name.
inline bool parts_are_known(const Network& net, const Regulariser& regulariser) {
  const auto is_known = [&](const std::string& name) {
    return std::any_of(net.parts.begin(), net.parts.end(),
                       [&](const Part& part) { return part.name == name; });
  };
  return std::all_of(regulariser.penalties.begin(), regulariser.penalties.end(), [&](const Penalty& penalty) {
    const auto& names =
        std::visit([](const auto& record) -> const auto& { return record.parts.names; }, penalty);
    return !names || std::all_of(names->begin(), names->end(), is_known);
  });
}

/// The samples with targets and weights of the right shapes, for an objective that fits the network.
template <class T>
std::optional<Data<T>> fitting_data(const Network& net, const Objective& objective, pybind11::handle X,
                                    pybind11::handle y, pybind11::handle weights) {
  const PlainSamples<T> rows(net, X);
  if (!rows.X || !parts_are_known(net, objective.regulariser)) return std::nullopt;
  Data<T> data{{rows.X, net.row_size()}, {}, nullptr, rows.samples};
  if (traits_of(objective.loss).targets == TargetKind::classes)
    data.targets.labels = numbers_of<std::int64_t>(y, {rows.samples});
  else if (const T* table = numbers_of<T>(y, {rows.samples, net.outputs}); table || net.outputs > 1)
    data.targets.numbers = {table, net.outputs};
  else
    data.targets.numbers = {numbers_of<T>(y, {rows.samples}), 1};
  if (!data.targets.labels && !data.targets.numbers) {
    const auto observed = view_observations<T>(y, rows.samples);
    if (!observed) return std::nullopt;
    data.targets = *observed;
  }
  if (!weights.is_none() && !(data.weights = numbers_of<T>(weights, {rows.samples}))) return std::nullopt;
  return data;
}

/// Whether every number is within [lowest, highest]; none that is NaN is. It looks at all of them, so that
/// the loop has no way out and becomes a vector loop.
template <class T>
bool all_within(const T* numbers, Index size, T lowest, T highest) {
  Index within = 0;
  for (Index n = 0; n < size; ++n) within += Index(numbers[n] >= lowest) & Index(numbers[n] <= highest);
  return within == size;
}

template <class T>
bool all_finite(const T* numbers, Index size) {
  return first_non_finite(numbers, size) < 0;
}

/// Whether the samples are such that J can be computed. Needs no GIL.
template <class T>
bool are_usable(const Network& net, const Objective& objective, const Data<T>& data) {
  constexpr T highest = std::numeric_limits<T>::max();
  if (!all_finite(data.X.data, data.samples * data.X.width)) return false;
  if (objective.kinetic > 0 && !(net.residual && net.tableau.b().minCoeff() >= 0)) return false;
  if (data.targets.labels) {
    const std::int64_t last = std::max<Index>(net.outputs - 1, 1);
    if (!all_within<std::int64_t>(data.targets.labels, data.samples, 0, last)) return false;
  } else if (!data.targets.grid) {  // observations are validated when they are made
    const T lowest = std::max(-highest, T(traits_of(objective.loss).minimum_target));
    if (!all_within(data.targets.numbers.data, data.samples * data.targets.numbers.width, lowest, highest))
      return false;
  }
  if (!data.weights) return true;
  if (!all_within(data.weights, data.samples, T(0), highest)) return false;
  const double total = data.sum_of_weights({0, data.samples});
  const bool is_divisor = !objective.mean || 1 / total <= static_cast<double>(highest);
  return total > 0 && std::isfinite(total) && is_divisor;
}

}  // namespace ocdl
