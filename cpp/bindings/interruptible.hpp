#pragma once

#include <pybind11/pybind11.h>

#include "ocdl/watch.hpp"

namespace ocdl {

/// Asks Python whether a signal (Ctrl-C) has come; its exception is then set.
inline bool signal_has_come() {
  const pybind11::gil_scoped_acquire hold;
  return PyErr_CheckSignals() != 0;
}

/// Runs body(watch) without the GIL. A signal stops it in the middle and raises what Python made of the
/// signal; where `stop_requested` says so, it stops as well, and the result is false.
template <class Body, class StopRequested>
bool interruptible(const Body& body, const StopRequested& stop_requested) {
  try {
    const pybind11::gil_scoped_release release;
    Watch watch([&] { return stop_requested() || signal_has_come(); });
    body(watch);
    return true;
  } catch (const Interrupted&) {
    if (PyErr_Occurred()) throw pybind11::error_already_set();
    return false;
  }
}

}  // namespace ocdl
