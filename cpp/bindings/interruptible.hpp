#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "ocdl/stop_source.hpp"

namespace ocdl {

/// The end of the interpreter. A thread that returns to an interpreter that has ended crashes the process: so
/// `begin` stops all work and waits for it.
class Shutdown {
 public:
  /// Guards work without the GIL; constructed and destroyed with the GIL held.
  class Guard {
   public:
    Guard() {
      if (begun()) throw std::runtime_error("the interpreter is ending; nothing is computed any more");
      ++at_work();
    }
    ~Guard() { --at_work(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
  };

  static std::atomic<bool>& begun() {
    static std::atomic<bool> flag{false};
    return flag;
  }
  /// To be called at exit, with the GIL.
  static void begin() {
    begun().store(true);
    const pybind11::gil_scoped_release release;
    for (int milliseconds = 0; at_work() > 0 && milliseconds < 2000; ++milliseconds)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// To be called in a forked child, which has none of its parent's other threads.
  static void forget_others() { at_work().store(0); }

 private:
  static std::atomic<int>& at_work() {
    static std::atomic<int> count{0};
    return count;
  }
};

/// Python's main thread, the only one in which Python handles signals: no other needs the GIL to poll.
class MainThread {
 public:
  /// To be called when the module is imported.
  static void find() {
    id() = pybind11::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  }
  /// To be called in a forked child, whose only thread is its main thread.
  static void set_to_current() { id() = PyThread_get_thread_ident(); }
  /// Needs no GIL.
  static bool is_current() { return PyThread_get_thread_ident() == id(); }

 private:
  static std::atomic<unsigned long>& id() {
    static std::atomic<unsigned long> id{0};
    return id;
  }
};

/// Runs the handlers of signals (Ctrl-C) that have arrived; whether one has raised an exception, which is
/// then set.
inline bool has_raising_signal() {
  const pybind11::gil_scoped_acquire hold;
  return PyErr_CheckSignals() != 0;
}

/// Runs body(stop_source) without the GIL. A signal whose handler raises stops it in the middle and raises
/// that exception.
template <class Body>
void interruptible(const Body& body) {
  const Shutdown::Guard guard;
  try {
    const pybind11::gil_scoped_release release;
    StopSource stop_source(
        [&] { return Shutdown::begun() || (MainThread::is_current() && has_raising_signal()); });
    body(stop_source);
  } catch (const Interrupted&) {
    if (PyErr_Occurred()) throw pybind11::error_already_set();
    throw std::runtime_error("stopped, because the interpreter is ending");
  }
}

}  // namespace ocdl
