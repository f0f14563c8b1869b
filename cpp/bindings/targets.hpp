#pragma once

#include "bindings/array.hpp"
#include "ocdl/objective/objective.hpp"

namespace ocdl {

/// The targets of so many samples: int64 labels where the loss takes classes, else numbers of the network's
/// type.
template <class T>
Targets<T> view_targets(const Loss& loss, Index outputs, pybind11::handle y, Index samples) {
  if (facts_of(loss).targets == TargetKind::classes) {
    if (!is_plain<std::int64_t>(y)) throw std::invalid_argument("y must be plain labels of int64");
    return {view(pybind11::reinterpret_borrow<Array<std::int64_t>>(y), samples, "y")};
  }
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
