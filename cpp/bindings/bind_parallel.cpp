#include <pybind11/pybind11.h>

#include "bindings/interruptible.hpp"
#include "ocdl/memory.hpp"
#include "ocdl/thread_policy.hpp"

namespace ocdl {

void bind_parallel(pybind11::module_& m) {
  ThreadLimit::watch_forks();
  MainThread::find();
  namespace py = pybind11;
  py::module_::import("atexit").attr("register")(py::cpp_function(&Shutdown::begin));
  py::module_::import("os").attr("register_at_fork")(py::arg("after_in_child") = py::cpp_function([] {
                                                       Shutdown::forget_others();
                                                       MainThread::set_to_current();
                                                     }));
  m.def("set_num_threads", &ThreadLimit::set, pybind11::arg("threads"));
  m.def("set_num_threads_here", &ThreadLimit::set_here, pybind11::arg("threads"));
  m.def("get_num_threads", &ThreadLimit::get);
  m.def("available_memory", &available_memory);
  m.def("insist_on_threads", &ThreadChoice::insist, pybind11::arg("always"));
}

}  // namespace ocdl
