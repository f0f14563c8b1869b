#pragma once

#include "bindings/computation.hpp"
#include "bindings/fitting.hpp"
#include "ocdl/sweep/adjoint_sweep.hpp"
#include "ocdl/sweep/flow.hpp"

/// Sweeps over all samples, without the GIL, that return whether everything is finite.
namespace ocdl {

enum class EndOfFlow { state, outputs };

inline Index end_size(const Network& net, EndOfFlow wanted) {
  return wanted == EndOfFlow::state ? net.dim : net.outputs;
}

/// Writes y[N] or W y[N] + mu, and returns whether it, the controls and X are finite. An input that is not
/// finite stays in the state of a residual network, y + h k, and W y + mu shows it: only feed-forward
/// networks need a check before.
template <class T>
bool compute_end(const Network& net, EndOfFlow wanted, const T* controls, const T* X, Index samples, T* out) {
  bool finite = false;
  compute<T>([&](Workspace<T>& workspace) {
    if (!all_finite(controls, net.control_size()) ||
        (!net.residual && !all_finite(X, samples * net.row_size())))
      return;
    const bool is_state = wanted == EndOfFlow::state;
    const ForwardResults<T> results{.final_state = is_state ? out : nullptr,
                                    .outputs = is_state ? nullptr : out};
    forward<T>(net, controls, X, samples, results, workspace);
    finite = all_finite(out, samples * end_size(net, wanted));
  });
  return finite;
}

/// Cotangents of the outputs and of the last or of all states; null pointers are zeros.
template <class T>
struct Cotangents {
  const T *outputs = nullptr, *last_state = nullptr, *states = nullptr;
};

/// Writes the derivatives, and returns whether they and all arguments are finite; where they need not be,
/// nothing is checked.
template <class T>
bool compute_vjp(const Network& net, const T* controls, const T* X, Index samples,
                 const Cotangents<T>& cotangents, const Derivatives<T>& out, bool require_finite = true) {
  const Index states = net.layers + 1;
  const GivenCotangents<T> output_cotangents(cotangents.outputs);
  const StateCotangents<T> state_cotangents(cotangents.states ? cotangents.states : cotangents.last_state,
                                            cotangents.states, samples);
  const CostList<T> costs{cotangents.outputs ? &output_cotangents : nullptr,
                          cotangents.states || cotangents.last_state ? &state_cotangents : nullptr};
  bool finite = false;
  compute<T>([&](Workspace<T>& workspace) {
    const auto are_finite = [&](const T* numbers, Index size) {
      return !require_finite || !numbers || all_finite(numbers, size);
    };
    const bool checked_inline =
        out.controls && can_check_finite_inline(net, plan_blocks<T>(net, samples), samples);
    if ((!checked_inline && !are_finite(controls, net.control_size())) ||
        !are_finite(X, samples * net.row_size()) || !are_finite(cotangents.outputs, samples * net.outputs) ||
        !are_finite(cotangents.last_state, samples * net.dim) ||
        !are_finite(cotangents.states, states * samples * net.dim))
      return;
    bool known_finite = false;
    Derivatives<T> derivatives = out;
    derivatives.known_finite = &known_finite;
    AdjointSweep<T>(net, controls, {net, X}, samples, costs, derivatives, workspace).run();
    finite = (known_finite || ((!checked_inline || are_finite(controls, net.control_size())) &&
                               are_finite(out.controls, net.control_size()))) &&
             are_finite(out.rows, samples * net.row_size()) &&
             are_finite(out.costates, states * samples * net.dim);
  });
  return finite;
}

}  // namespace ocdl
