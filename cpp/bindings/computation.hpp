#pragma once

#include "bindings/interruptible.hpp"
#include "ocdl/sweep/workspace.hpp"

namespace ocdl {

/// Runs body(workspace) without the GIL, with scratch memory that the calling thread keeps from call to call.
template <class T, class Scratch = Workspace<T>, class Body>
void compute(const Body& body) {
  static thread_local Scratch kept;
  // Taken, not shared: a signal handler may compute something else in between.
  Scratch workspace = std::exchange(kept, {});
  const auto run = [&](StopSource& stop_source) {
    workspace.stop_source = &stop_source;
    body(workspace);
    workspace.stop_source = nullptr;
    workspace.trim();
    kept = std::move(workspace);
  };
  interruptible(run);
}

}  // namespace ocdl
