#pragma once

#include "bindings/array.hpp"
#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// The grid of validated observations: how many times, and those that all samples share or None.
inline ObservationGrid view_grid(Index times, const pybind11::object& shared) {
  if (shared.is_none()) return {times, nullptr};
  return {times, view(pybind11::reinterpret_borrow<Array<double>>(shared), times, "times")};
}

/// Validated observations of so many samples; nothing where y is something else. It must outlive the view.
template <class T>
std::optional<Targets<T>> view_observations(pybind11::handle y, Index samples) {
  if (!pybind11::hasattr(y, "observed_rows")) return std::nullopt;
  const pybind11::object rows = y.attr("observed_rows");
  if (!is_plain<T>(rows)) return std::nullopt;
  const auto table = pybind11::reinterpret_borrow<Array<T>>(rows);
  const Index width = table.shape(1);
  return Targets<T>{nullptr,
                    {view(table, samples * width, "y"), width},
                    view_grid(y.attr("count").cast<Index>(), y.attr("shared_times"))};
}

/// The targets of so many samples: int64 labels where the loss takes classes, else numbers of the network's
/// type.
template <class T>
Targets<T> view_targets(const Loss& loss, Index outputs, pybind11::handle y, Index samples) {
  if (traits_of(loss).targets == TargetKind::classes) {
    if (!is_plain<std::int64_t>(y)) throw std::invalid_argument("y must be plain labels of int64");
    return {view(pybind11::reinterpret_borrow<Array<std::int64_t>>(y), samples, "y")};
  }
  if (const auto observed = view_observations<T>(y, samples)) return *observed;
  if (!is_plain<T>(y)) throw std::invalid_argument("y must be plain numbers of the network's type");
  return {nullptr, {view(pybind11::reinterpret_borrow<Array<T>>(y), samples * outputs, "y"), outputs}};
}

template <class T>
Data<T> view_data(const Network& net, const Loss& loss, const Given<T>& X, pybind11::handle y,
                  const OptionalGiven<T>& weights) {
  const Index samples = X.shape(0);
  return {{view(X, samples * net.row_size(), "X"), net.row_size()},
          view_targets<T>(loss, net.outputs, y, samples),
          view(weights, samples, "sample_weight"),
          samples};
}

}  // namespace ocdl
