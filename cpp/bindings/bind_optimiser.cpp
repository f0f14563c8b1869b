#include <pybind11/pybind11.h>

#include "bindings/array.hpp"
#include "ocdl/optimiser/projection.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

template <class T>
Array<T> bound_project_simplex(const Array<T>& v, double total) {
  Array<T> projected(v.size());
  std::vector<double> sorted;
  project_simplex<T>({v.data(), v.size()}, total, {projected.mutable_data(), v.size()}, sorted);
  return projected;
}

}  // namespace

void bind_optimiser(py::module_& m) {
  m.def("project_simplex", &bound_project_simplex<double>, py::arg("v").noconvert(), py::arg("total"));
  m.def("project_simplex", &bound_project_simplex<float>, py::arg("v").noconvert(), py::arg("total"));
}

}  // namespace ocdl
