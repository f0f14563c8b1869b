#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ocdl/types.hpp"

/// Tensors of other libraries, viewed and made without a detour through Python's arrays, which takes longer
/// than a small flow: by the C functions that a type of tensors names as `__dlpack_c_exchange_api__`.
namespace ocdl {

/// The structures of DLPack 1, https://dmlc.github.io/dlpack/latest/c_api.html.
namespace dlpack {

constexpr std::uint32_t major_version = 1;
constexpr std::int32_t cpu = 1;
constexpr std::uint8_t real = 2;

struct Version {
  std::uint32_t major, minor;
};
struct Device {
  std::int32_t type, id;
};
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct ManagedTensor {
  Version version;
  void* owner;
  void (*release)(ManagedTensor*);
  std::uint64_t flags;
  Tensor tensor;
};
struct Exchange {
  Version version;
  const Exchange* older;
  void *allocate, *export_owned;
  /// Takes the tensor over; -1 where a Python error is set.
  int (*to_python)(ManagedTensor* tensor, void** object);
  /// Valid until control returns to Python; -1 where a Python error is set.
  int (*view)(void* object, Tensor* tensor);
  void* current_stream;
};

}  // namespace dlpack

/// The functions of an object's type, or null where it has none of this version.
inline const dlpack::Exchange* exchange_of(pybind11::handle object) {
  namespace py = pybind11;
  // Types that have them are kept for ever, so that no other type can be at their address later.
  static auto* known = new std::unordered_map<PyTypeObject*, const dlpack::Exchange*>;
  PyTypeObject* type = Py_TYPE(object.ptr());
  if (const auto match = known->find(type); match != known->end()) return match->second;
  const auto capsule = py::getattr(py::type::of(object), "__dlpack_c_exchange_api__", py::none());
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* exchange =
      static_cast<const dlpack::Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (exchange && exchange->version.major != dlpack::major_version) exchange = exchange->older;
  if (!exchange || !exchange->view) return nullptr;
  Py_INCREF(type);
  known->emplace(type, exchange);
  return exchange;
}

/// Whether a tensor stands for the negative of its numbers, of which a view says nothing.
inline bool is_lazy_negative(pybind11::handle tensor) {
  static PyObject* name = PyUnicode_InternFromString("is_neg");
  const auto match =
      pybind11::reinterpret_steal<pybind11::object>(PyObject_CallMethodNoArgs(tensor.ptr(), name));
  if (!match) PyErr_Clear();  // a library that has no such tensors
  return match.ptr() == Py_True;
}

/// A view of a tensor, or nothing where it is none of real numbers T in C order in the memory of the CPU.
template <class T>
std::optional<dlpack::Tensor> view_tensor(pybind11::handle object) {
  const dlpack::Exchange* exchange = exchange_of(object);
  dlpack::Tensor tensor;
  if (!exchange) return std::nullopt;
  if (exchange->view(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (tensor.device.type != dlpack::cpu || tensor.dtype.code != dlpack::real ||
      tensor.dtype.bits != 8 * sizeof(T) || tensor.dtype.lanes != 1)
    return std::nullopt;
  if (is_lazy_negative(object)) return std::nullopt;
  std::int64_t stride = 1;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.strides && tensor.shape[axis] > 1 && tensor.strides[axis] != stride) return std::nullopt;
    stride *= tensor.shape[axis];
  }
  if (!tensor.data && stride > 0) return std::nullopt;  // a wrapper around other tensors
  tensor.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return tensor;
}

/// A tensor of the library that `exchange` belongs to: these numbers, whose memory it shares.
template <class T>
pybind11::object make_tensor(const dlpack::Exchange& exchange, std::span<const Index> shape,
                             const std::shared_ptr<T>& numbers) {
  namespace py = pybind11;
  struct Owner {
    dlpack::ManagedTensor managed;
    std::shared_ptr<T> numbers;
    std::vector<std::int64_t> sizes;  ///< the shape, then the strides
  };
  const std::size_t ndim = shape.size();
  auto owner = std::make_unique<Owner>(Owner{{}, numbers, std::vector<std::int64_t>(2 * ndim, 1)});
  std::int64_t *sizes = owner->sizes.data(), *strides = sizes + ndim;
  std::copy(shape.begin(), shape.end(), sizes);
  for (std::size_t axis = ndim; axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
  owner->managed = {
      .version = {dlpack::major_version, 0},
      .owner = owner.get(),
      .release = [](dlpack::ManagedTensor* tensor) { delete static_cast<Owner*>(tensor->owner); },
      .flags = 0,
      .tensor = {.data = numbers.get(),
                 .device = {dlpack::cpu, 0},
                 .ndim = static_cast<std::int32_t>(ndim),
                 .dtype = {dlpack::real, 8 * sizeof(T), 1},
                 .shape = sizes,
                 .strides = strides,
                 .byte_offset = 0}};
  void* object = nullptr;
  if (exchange.to_python(&owner.release()->managed, &object) != 0) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(static_cast<PyObject*>(object));
}

}  // namespace ocdl
