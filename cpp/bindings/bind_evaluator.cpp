#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/any_evaluator.hpp"
#include "bindings/targets.hpp"
#include "ocdl/evaluator/outside_loss.hpp"
#include "ocdl/evaluator/shards.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

template <class T>
AnyEvaluator samples_evaluator(const Network& net, const Array<T>& X, const py::object& y,
                               const OptionalArray<T>& weights, const Objective& objective) {
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  return AnyEvaluator(std::unique_ptr<Evaluator<T>>(new SamplesEvaluator<T>(net, data, objective)),
                      py::make_tuple(X, y, weights));
}

/// value(outputs, rows or None, with_slopes) -> (J without regulariser, slopes or None), score(outputs) ->
/// float. They are called with the GIL; what they raise arrives unchanged.
template <class T>
AnyEvaluator outside_loss_evaluator(const Network& net, const Array<T>& X, const Objective& penalties,
                                    py::function value, py::function score) {
  const Index q = net.outputs, samples = X.shape(0);
  const auto table = [q](const T* outputs, Index count) { return Array<T>({count, q}, outputs); };
  OutsideLoss<T> loss;
  loss.value = [=](const T* outputs, Index count, std::span<const Index> rows, T* slopes) {
    const py::gil_scoped_acquire hold;
    const py::object chosen =
        rows.empty() ? py::object(py::none())
                     : py::object(Array<std::int64_t>(static_cast<Index>(rows.size()), rows.data()));
    const auto found = value(table(outputs, count), chosen, slopes != nullptr).template cast<py::tuple>();
    if (slopes) {
      const auto given = found[1].template cast<Array<T>>();
      std::copy_n(view(given, count * q, "slopes"), count * q, slopes);
    }
    return found[0].template cast<double>();
  };
  loss.score = [=](const T* outputs, Index count) {
    const py::gil_scoped_acquire hold;
    return score(table(outputs, count)).template cast<double>();
  };
  const T* inputs = view(X, samples * net.features, "X");
  return AnyEvaluator(std::unique_ptr<Evaluator<T>>(new OutsideLossEvaluator<T>(
                          net, inputs, samples, penalties.regulariser, std::move(loss))),
                      py::make_tuple(X));
}

/// add_up(list of (level, index, vector)) -> vector, called with the GIL.
template <class T>
AnyEvaluator shards_evaluator(const Network& net, const Array<T>& X, const py::object& y,
                              const OptionalArray<T>& weights, const Objective& objective, Index first_row,
                              Index all_rows, py::function add_up) {
  const AddUp add = [add_up](std::vector<TreeNode> nodes) {
    const py::gil_scoped_acquire hold;
    py::list listed;
    for (const TreeNode& node : nodes)
      listed.append(py::make_tuple(
          node.level, node.index, Array<double>(static_cast<Index>(node.vector.size()), node.vector.data())));
    const auto total = add_up(listed).template cast<Array<double>>();
    return std::vector<double>(total.data(), total.data() + total.size());
  };
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  std::unique_ptr<Evaluator<T>> evaluator(
      new ShardsEvaluator<T>(net, data, objective, first_row, all_rows, add));
  return AnyEvaluator(std::move(evaluator), py::make_tuple(X, y, weights));
}

Array<double> bound_root_of(const std::vector<std::tuple<int, Index, Array<double>>>& nodes, Index count) {
  std::vector<TreeNode> tree;
  for (const auto& [level, index, vector] : nodes)
    tree.push_back({level, index, std::vector<double>(vector.data(), vector.data() + vector.size())});
  const std::vector<double> root = root_of(std::move(tree), count);
  return Array<double>(static_cast<Index>(root.size()), root.data());
}

template <class T>
void bind_kinds(py::module_& m) {
  const auto net = py::arg("net"), X = py::arg("X").noconvert(), y = py::arg("y"),
             weights = py::arg("sample_weight").noconvert(), objective = py::arg("objective");
  m.def("samples_evaluator", &samples_evaluator<T>, net, X, y, weights, objective);
  m.def("outside_loss_evaluator", &outside_loss_evaluator<T>, net, X, py::arg("penalties"), py::arg("value"),
        py::arg("score"));
  m.def("shards_evaluator", &shards_evaluator<T>, net, X, y, weights, objective, py::arg("first_row"),
        py::arg("all_rows"), py::arg("add_up"));
}

}  // namespace

void bind_evaluator(py::module_& m) {
  py::class_<AnyEvaluator, std::shared_ptr<AnyEvaluator>>(m, "Evaluator");
  bind_kinds<double>(m);
  bind_kinds<float>(m);
  m.def("shard_size", &shard_size, py::arg("all_rows"));
  m.def("root_of", &bound_root_of, py::arg("nodes"), py::arg("count"));
}

}  // namespace ocdl
