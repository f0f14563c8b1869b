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
template <class T>
using OptionalArray = std::optional<Array<T>>;

/// Whether an object is a plain NumPy array (of no subclass) that can be viewed as it is.
template <class T>
bool is_plain(pybind11::handle object) {
  return Py_TYPE(object.ptr()) == pybind11::detail::npy_api::get().PyArray_Type_ &&
         Array<T>::check_(object) &&
         pybind11::detail::check_flags(object.ptr(), pybind11::detail::npy_api::NPY_ARRAY_ALIGNED_);
}

/// The numbers of an array that must hold exactly `size` of them.
template <class T>
const T* view(const Array<T>& array, Index size, const char* name) {
  if (array.size() != size)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) +
                                " numbers where the core takes " + std::to_string(size));
  return array.data();
}

template <class T>
const T* view(const OptionalArray<T>& array, Index size, const char* name) {
  return array ? view(*array, size, name) : nullptr;
}

}  // namespace ocdl
