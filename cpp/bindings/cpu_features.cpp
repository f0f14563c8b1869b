#include "bindings/cpu_features.hpp"

#include <pybind11/pybind11.h>

namespace py = pybind11;

PYBIND11_MODULE(_cpu, m) {
  m.doc() = "What the CPU offers; compiled without instruction-set flags, so that it runs everywhere.";
  m.def("best_variant", &ocdl::best_variant);
  m.def("supports", &ocdl::supports, py::arg("variant"));
}
