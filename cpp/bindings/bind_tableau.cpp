#include <pybind11/eigen.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>

#include "ocdl/tableau/library.hpp"
#include "ocdl/tableau/tableau.hpp"

namespace py = pybind11;

namespace ocdl {

void bind_tableau(py::module_& m) {
  // Properties that return a const reference become read-only views which keep their tableau alive.
  py::class_<Tableau>(m, "Tableau")
      .def(py::init<Matrix, Vector, std::optional<Vector>, std::string>(), py::arg("A"), py::arg("b"),
           py::arg("c") = py::none(), py::arg("name") = "")
      .def_property_readonly("A", &Tableau::A)
      .def_property_readonly("b", &Tableau::b)
      .def_property_readonly("c", &Tableau::c)
      .def_property_readonly("name", &Tableau::name)
      .def_property_readonly("stages", &Tableau::stages)
      .def_property_readonly("order", &Tableau::order)
      .def_property_readonly("is_explicit", &Tableau::is_explicit)
      .def("adjoint", &Tableau::adjoint)
      .def_static("named", [](std::string_view name) { return Tableau(named(name)); }, py::arg("name"));

  m.def("tableau_names", &names);
}

}  // namespace ocdl
