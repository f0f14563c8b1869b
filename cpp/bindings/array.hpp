#pragma once

#include <pybind11/numpy.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "ocdl/types.hpp"

/// The one rule between NumPy and the core: an array comes in C order and in the network's own number type,
/// is viewed and never copied (the Python layer converts what is different, once); results are new arrays
/// that NumPy owns.
namespace ocdl {

template <class T>
using Array = pybind11::array_t<T, pybind11::array::c_style>;

/// Whether an object is a plain NumPy array (of no subclass) that can be viewed as it is.
template <class T>
bool is_plain(pybind11::handle object) {
  namespace np = pybind11::detail;
  const np::npy_api& api = np::npy_api::get();
  constexpr int flags = np::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | np::npy_api::NPY_ARRAY_ALIGNED_;
  if (Py_TYPE(object.ptr()) != api.PyArray_Type_ || !np::check_flags(object.ptr(), flags)) return false;
  // A dtype is usually the one that NumPy has of its kind; to find that another one means the same takes
  // longer.
  const PyObject* given = np::array_proxy(object.ptr())->descr;
  const auto wanted = pybind11::dtype::of<T>();
  return given == wanted.ptr() || api.PyArray_EquivTypes_(np::array_proxy(object.ptr())->descr, wanted.ptr());
}

/// An argument that has to be plain. pybind11 takes it as it is; an `Array` it would ask NumPy to convert,
/// which takes longer than a small evaluation even where there is nothing to do.
template <class T>
class Given : public Array<T> {
 public:
  using Array<T>::Array;
  static bool check_(pybind11::handle object) { return is_plain<T>(object); }
};
template <class T>
using OptionalGiven = std::optional<Given<T>>;

/// The numbers of an array that must hold exactly `size` of them.
template <class T>
const T* view(const Array<T>& array, Index size, const char* name) {
  if (array.size() != size)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) +
                                " numbers where the core takes " + std::to_string(size));
  return array.data();
}

template <class T>
const T* view(const OptionalGiven<T>& array, Index size, const char* name) {
  return array ? view(*array, size, name) : nullptr;
}

}  // namespace ocdl

namespace pybind11::detail {

template <class T>
struct handle_type_name<ocdl::Given<T>> : handle_type_name<ocdl::Array<T>> {};

}  // namespace pybind11::detail
