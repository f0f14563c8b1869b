#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/any_evaluator.hpp"
#include "bindings/source_rows.hpp"
#include "ocdl/evaluator/initial_states.hpp"
#include "ocdl/evaluator/shards.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

template <class T>
AnyEvaluator samples_evaluator(const Network& net, const Given<T>& X, const py::object& y,
                               const OptionalGiven<T>& weights, const Objective& objective) {
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  return AnyEvaluator(std::unique_ptr<Evaluator<T>>(new SamplesEvaluator<T>(net, data, objective)),
                      py::make_tuple(X, y, weights));
}

/// X may hold NaN.
template <class T>
AnyEvaluator initial_states_evaluator(const Network& net, const Given<T>& X, const py::object& y,
                                      const OptionalGiven<T>& weights, const Objective& objective,
                                      double observed, double continuity, std::vector<Index> next_window) {
  const Data<T> data = view_data(net, objective.loss, X, y, weights);
  return AnyEvaluator(std::unique_ptr<Evaluator<T>>(new InitialStatesEvaluator<T>(
                          net, data, objective, {observed, continuity, std::move(next_window)})),
                      py::make_tuple(X, y, weights));
}

/// Numbers of rows; None: all of them.
py::object bound_rows(std::span<const Index> rows) {
  if (rows.empty()) return py::none();
  return Array<std::int64_t>(static_cast<Index>(rows.size()), rows.data());
}

/// value(outputs, rows or None, with_gradient) -> (J without regulariser, gradient or None), score(outputs)
/// -> float. They are called with the GIL; what they raise arrives unchanged. `observed`: observations, of
/// which the times count, or None.
template <class T>
AnyEvaluator callback_loss_evaluator(const Network& net, const Given<T>& X, const Objective& penalties,
                                     py::function value, py::function score, const py::object& observed) {
  const Index samples = X.shape(0);
  const Targets<T> targets = view_observations<T>(observed, samples).value_or(Targets<T>{});
  const Index q = targets.grid.row_size(net.outputs);
  const auto table = [q](const T* outputs, Index count) { return Array<T>({count, q}, outputs); };
  CallbackLoss<T> loss;
  loss.value = [=](const T* outputs, Index count, std::span<const Index> rows, T* gradient) {
    const py::gil_scoped_acquire hold;
    const auto result =
        value(table(outputs, count), bound_rows(rows), gradient != nullptr).template cast<py::tuple>();
    if (gradient) {
      const auto given = result[1].template cast<Array<T>>();
      std::copy_n(view(given, count * q, "gradient"), count * q, gradient);
    }
    return result[0].template cast<double>();
  };
  loss.score = [=](const T* outputs, Index count) {
    const py::gil_scoped_acquire hold;
    return score(table(outputs, count)).template cast<double>();
  };
  const Data<T> data{{view(X, samples * net.row_size(), "X"), net.row_size()}, targets, nullptr, samples};
  return AnyEvaluator(std::unique_ptr<Evaluator<T>>(
                          new CallbackLossEvaluator<T>(net, data, penalties.regulariser, std::move(loss))),
                      py::make_tuple(X, observed));
}

/// A node as Python has it: level, index, and its sums in double and in single precision.
using BoundNode = std::tuple<int, Index, Array<double>, Array<float>>;

template <class T>
Array<T> array_of(const std::vector<T>& numbers) {
  return Array<T>(static_cast<Index>(numbers.size()), numbers.data());
}
template <class T>
std::vector<T> vector_of(const Array<T>& numbers) {
  return {numbers.data(), numbers.data() + numbers.size()};
}

/// add_up(nodes) -> (sums in double precision, in single precision), called with the GIL; None where the part
/// is all there is.
AddUp bound_add_up(const std::optional<py::function>& add_up, Index all_rows) {
  if (!add_up)
    return [count = Shards::of(all_rows).all](std::vector<TreeNode> nodes) {
      return root_of(std::move(nodes), count);
    };
  return [add_up = *add_up](std::vector<TreeNode> nodes) {
    const py::gil_scoped_acquire hold;
    std::vector<BoundNode> bound;
    for (const TreeNode& node : nodes)
      bound.emplace_back(node.level, node.index, array_of(node.sums.wide), array_of(node.sums.single));
    const auto [wide, single] = add_up(std::move(bound)).cast<std::pair<Array<double>, Array<float>>>();
    return Sums{vector_of(wide), vector_of(single)};
  };
}

/// loss_of_rows(outputs, positions or None, scale, with_gradient) -> (weighted losses, gradient or None).
template <class T>
CallbackRowLoss<T> bound_loss_of_rows(const std::optional<py::function>& loss_of_rows, Index q) {
  if (!loss_of_rows) return nullptr;
  return [loss_of_rows = *loss_of_rows, q](const T* outputs, Index count, std::span<const Index> positions,
                                           double scale, double* losses, T* gradient) {
    const py::gil_scoped_acquire hold;
    const auto result =
        loss_of_rows(Array<T>({count, q}, outputs), bound_rows(positions), scale, gradient != nullptr)
            .template cast<py::tuple>();
    const auto values = result[0].template cast<Array<double>>();
    std::copy_n(view(values, count, "losses"), count, losses);
    if (gradient) {
      const auto given = result[1].template cast<Array<T>>();
      std::copy_n(view(given, count * q, "gradient"), count * q, gradient);
    }
  };
}

template <class T>
AnyEvaluator shards_evaluator(const Network& net, const Given<T>& X, const py::object& y,
                              const OptionalGiven<T>& weights, const Objective& objective, Index first_row,
                              Index all_rows, const std::optional<py::function>& add_up,
                              const std::optional<py::function>& loss_of_rows) {
  const Index samples = X.shape(0);
  const Data<T> data{{view(X, samples * net.row_size(), "X"), net.row_size()},
                     loss_of_rows ? view_observations<T>(y, samples).value_or(Targets<T>{})
                                  : view_targets<T>(objective.loss, net.outputs, y, samples),
                     view(weights, samples, "sample_weight"),
                     samples};
  std::unique_ptr<Evaluator<T>> evaluator(
      new ShardsEvaluator<T>(net, std::make_unique<RowsInMemory<T>>(data), objective, first_row, all_rows,
                             bound_add_up(add_up, all_rows),
                             bound_loss_of_rows<T>(loss_of_rows, data.targets.grid.row_size(net.outputs))));
  return AnyEvaluator(std::move(evaluator), py::make_tuple(X, y, weights));
}

/// `rows`: those of this part, which read(runs, next runs) -> (X, y, weights) returns, or None where they are
/// not there yet. `times`: (their number, those that all samples share or None) of observations, or None.
template <class T>
AnyEvaluator source_evaluator(const Network& net, py::function read, Index rows, bool weighted, Index at_once,
                              Index window, const Objective& objective, Index first_row, Index all_rows,
                              const std::optional<py::function>& add_up,
                              const std::optional<py::function>& loss_of_rows,
                              const std::optional<std::pair<Index, py::object>>& times) {
  const ObservationGrid grid = times ? view_grid(times->first, times->second) : ObservationGrid{};
  std::unique_ptr<Rows<T>> source(new SourceRows<T>(net, objective.loss, std::move(read), rows, weighted,
                                                    at_once, window, !loss_of_rows, grid));
  std::unique_ptr<Evaluator<T>> evaluator(new ShardsEvaluator<T>(
      net, std::move(source), objective, first_row, all_rows, bound_add_up(add_up, all_rows),
      bound_loss_of_rows<T>(loss_of_rows, grid.row_size(net.outputs))));
  return AnyEvaluator(std::move(evaluator), py::make_tuple(times));
}

py::tuple bound_root_of(const std::vector<BoundNode>& nodes, Index count) {
  std::vector<TreeNode> tree;
  for (const auto& [level, index, wide, single] : nodes)
    tree.push_back({level, index, {vector_of(wide), vector_of(single)}});
  const Sums root = root_of(std::move(tree), count);
  return py::make_tuple(array_of(root.wide), array_of(root.single));
}

/// The nodes of some rows of numbers, (rows, numbers), of which the first is number `first_row` of
/// `all_rows`: what a part of a sum hands in.
py::list sum_nodes(const Array<double>& table, Index first_row, Index all_rows) {
  const Index width = table.shape(1);
  const auto add_rows = [&](Range rows, double* sums) {
    for (Index i = rows.begin; i < rows.end; ++i)
      for (Index j = 0; j < width; ++j) sums[j] += table.data()[i * width + j];
  };
  py::list bound;
  for (const TreeNode& node :
       sum_over_shards(Shards::of(all_rows, first_row), table.shape(0), width, add_rows))
    bound.append(BoundNode(node.level, node.index, array_of(node.sums.wide), array_of(node.sums.single)));
  return bound;
}

/// `root_of` with the nodes in tables: level and index, and the sums, a row for each.
py::tuple root_of_table(const Array<std::int64_t>& places, const Array<double>& wide,
                        const Array<float>& single, Index count) {
  const auto row = [](const auto& table, Index n) {
    const Index width = table.shape(1);
    return std::vector(table.data() + n * width, table.data() + (n + 1) * width);
  };
  std::vector<TreeNode> tree;
  for (Index n = 0; n < places.shape(0); ++n)
    tree.push_back({static_cast<int>(places.at(n, 0)), places.at(n, 1), {row(wide, n), row(single, n)}});
  const Sums root = root_of(std::move(tree), count);
  return py::make_tuple(array_of(root.wide), array_of(root.single));
}

template <class T>
void bind_kinds(py::module_& m) {
  const auto net = py::arg("net"), X = py::arg("X"), y = py::arg("y"), weights = py::arg("sample_weight"),
             objective = py::arg("objective");
  m.def("samples_evaluator", &samples_evaluator<T>, net, X, y, weights, objective);
  m.def("initial_states_evaluator", &initial_states_evaluator<T>, net, X, y, weights, objective,
        py::arg("observed"), py::arg("continuity"), py::arg("next_window"));
  m.def("callback_loss_evaluator", &callback_loss_evaluator<T>, net, X, py::arg("penalties"),
        py::arg("value"), py::arg("score"), py::arg("observed") = py::none());
  const auto first_row = py::arg("first_row"), all_rows = py::arg("all_rows"), add_up = py::arg("add_up");
  const auto loss_of_rows = py::arg("loss_of_rows") = py::none();
  m.def("shards_evaluator", &shards_evaluator<T>, net, X, y, weights, objective, first_row, all_rows, add_up,
        loss_of_rows);
  m.def(std::is_same_v<T, double> ? "source_evaluator" : "source_evaluator_single", &source_evaluator<T>, net,
        py::arg("read"), py::arg("rows"), py::arg("weighted"), py::arg("at_once"), py::arg("window"),
        objective, first_row, all_rows, add_up, loss_of_rows, py::arg("times") = py::none());
}

}  // namespace

void bind_evaluator(py::module_& m) {
  py::class_<AnyEvaluator, std::shared_ptr<AnyEvaluator>>(m, "Evaluator");
  bind_kinds<double>(m);
  bind_kinds<float>(m);
  m.def("with_whole_states", &with_whole_states, py::arg("net"));
  m.def("shard_size", &shard_size, py::arg("all_rows"));
  m.def(
      "sum_in_order",
      [](const Given<double>& numbers) {
        return sum_in_order({numbers.data(), std::size_t(numbers.size())});
      },
      py::arg("numbers"));
  m.def("root_of", &bound_root_of, py::arg("nodes"), py::arg("count"));
  m.def("root_of_table", &root_of_table, py::arg("places"), py::arg("wide"), py::arg("single"),
        py::arg("count"));
  m.def("sum_nodes", &sum_nodes, py::arg("table"), py::arg("first_row"), py::arg("all_rows"));
}

}  // namespace ocdl
