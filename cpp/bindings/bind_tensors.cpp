#include "bindings/exchange.hpp"
#include "bindings/result_pool.hpp"
#include "bindings/sweeps.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

/// The numbers of a tensor of this shape, or null.
template <class T>
const T* tensor_numbers(py::handle object, std::span<const Index> shape) {
  const auto tensor = view_tensor<T>(object);
  if (!tensor || !std::equal(shape.begin(), shape.end(), tensor->shape, tensor->shape + tensor->ndim))
    return nullptr;
  return static_cast<const T*>(tensor->data);
}

/// A tensor of rows of the network's features.
template <class T>
std::pair<const T*, Index> tensor_rows(const Network& net, py::handle object) {
  const auto tensor = view_tensor<T>(object);
  if (!tensor || tensor->ndim != 2 || tensor->shape[1] != net.row_size() || tensor->shape[0] == 0)
    return {nullptr, 0};
  return {static_cast<const T*>(tensor->data), tensor->shape[0]};
}

/// Copies the parts into the vector of controls; those that are not given are 0. False where one does not
/// fit.
template <class T>
bool pack(const Network& net, const py::tuple& parts, T* vector) {
  for (std::size_t p = 0; p < net.parts.size(); ++p) {
    const auto& [begin, end] = net.parts[p].range;
    if (p >= parts.size()) {
      std::fill(vector + begin, vector + end, T(0));
      continue;
    }
    const T* numbers = tensor_numbers<T>(parts[p], net.parts[p].shape);
    if (!numbers) return false;
    std::copy(numbers, numbers + (end - begin), vector + begin);
  }
  return true;
}

/// (vector of controls, result) of tensors.
template <class T>
py::object forward_of(const Network& net, py::handle x, const py::tuple& parts, EndOfFlow wanted) {
  const auto [rows, samples] = tensor_rows<T>(net, x);
  if (!rows) return py::none();
  Array<T> vector = result_vector<T>(net.control_size());
  if (!pack<T>(net, parts, vector.mutable_data())) return py::none();
  const Index shape[] = {samples, end_size(net, wanted)};
  const auto result = result_memory<T>(shape[0] * shape[1]);
  if (!compute_end<T>(net, wanted, vector.data(), rows, samples, result.get())) return py::none();
  return py::make_tuple(vector, make_tensor<T>(*exchange_of(x), shape, result));
}

/// None where an argument is no plain tensor that fits, or something is not finite.
py::object bound_tensor_forward(const Network& net, py::handle x, const py::tuple& parts, bool of_outputs) {
  const EndOfFlow wanted = of_outputs ? EndOfFlow::outputs : EndOfFlow::state;
  return view_tensor<double>(x) ? forward_of<double>(net, x, parts, wanted)
                                : forward_of<float>(net, x, parts, wanted);
}

/// The gradients by x and by each of the parts, where they are needed, else None in their place.
template <class T>
py::object vjp_of(const Network& net, const Given<T>& vector, py::handle x, py::handle cotangent,
                  bool of_outputs, const py::tuple& needs) {
  const auto [rows, samples] = tensor_rows<T>(net, x);
  const Index outputs[] = {samples, net.outputs}, last[] = {samples, net.dim},
              all[] = {net.layers + 1, samples, net.dim};
  Cotangents<T> cotangents;
  if (of_outputs)
    cotangents.outputs = tensor_numbers<T>(cotangent, outputs);
  else if (!(cotangents.last_state = tensor_numbers<T>(cotangent, last)))
    cotangents.states = tensor_numbers<T>(cotangent, all);
  if (!rows || !(cotangents.outputs || cotangents.last_state || cotangents.states)) return py::none();
  const auto by_vector = result_memory<T>(net.control_size()),
             by_x = result_memory<T>(samples * net.row_size());
  const Derivatives<T> out{.controls = by_vector.get(), .rows = by_x.get()};
  if (!compute_vjp<T>(net, vector.data(), rows, samples, cotangents, out)) return py::none();
  const dlpack::Exchange& exchange = *exchange_of(x);
  py::tuple gradients(needs.size());
  for (std::size_t n = 0; n < needs.size(); ++n) {
    if (needs[n].ptr() != Py_True)
      gradients[n] = py::none();
    else if (n == 0) {
      const Index shape[] = {samples, net.row_size()};
      gradients[n] = make_tensor<T>(exchange, shape, by_x);
    } else {
      const Part& part = net.parts[n - 1];
      gradients[n] = make_tensor<T>(exchange, part.shape,
                                    std::shared_ptr<T>(by_vector, by_vector.get() + part.range.begin));
    }
  }
  return gradients;
}

/// None where an argument is no plain tensor that fits, or something is not finite.
py::object bound_tensor_vjp(const Network& net, py::handle vector, py::handle x, py::handle cotangent,
                            bool of_outputs, const py::tuple& needs) {
  return with_controls(net, vector, [&]<class T>(const Given<T>& controls) -> py::object {
    return vjp_of<T>(net, controls, x, cotangent, of_outputs, needs);
  });
}

}  // namespace

void bind_tensors(py::module_& m) {
  m.def("tensor_forward", &bound_tensor_forward, py::arg("net"), py::arg("x"), py::arg("parts"),
        py::arg("of_outputs"));
  m.def("tensor_vjp", &bound_tensor_vjp, py::arg("net"), py::arg("vector"), py::arg("x"),
        py::arg("cotangent"), py::arg("of_outputs"), py::arg("needs"));
}

}  // namespace ocdl
