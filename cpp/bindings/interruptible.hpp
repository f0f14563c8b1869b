#pragma once

#include <pybind11/pybind11.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "ocdl/stop_source.hpp"

namespace ocdl {

/// The end of the interpreter. A thread that comes back to a Python that is gone would end the process: so
/// work is stopped, and waited for, before.
class Shutdown {
 public:
  /// Around work without the GIL; made and destroyed with it.
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

/// Python handles signals in its main thread, which is the process's; no other has to ask for the GIL.
inline bool in_main_thread() { return syscall(SYS_gettid) == getpid(); }

/// Asks Python whether a signal (Ctrl-C) has come; its exception is then set.
inline bool signal_has_come() {
  const pybind11::gil_scoped_acquire hold;
  return PyErr_CheckSignals() != 0;
}

/// Runs body(stop_source) without the GIL. A signal stops it in the middle and raises what Python made of the
/// signal; where `stop_requested` says so, it stops as well, and the result is false.
template <class Body, class StopRequested>
bool interruptible(const Body& body, const StopRequested& stop_requested) {
  const Shutdown::Guard guard;
  try {
    const pybind11::gil_scoped_release release;
    StopSource stop_source(
        [&] { return Shutdown::begun() || stop_requested() || (in_main_thread() && signal_has_come()); });
    body(stop_source);
    return true;
  } catch (const Interrupted&) {
    if (PyErr_Occurred()) throw pybind11::error_already_set();
    if (Shutdown::begun()) throw std::runtime_error("stopped, because the interpreter is ending");
    return false;
  }
}

}  // namespace ocdl
