#pragma once

#include "ocdl/field/field_part.hpp"
#include "ocdl/field/narrow_dense.hpp"

/// The field `Mlp` on states of a few dimensions: each tile of samples passes all hidden units once forward
/// and once backward. A stage keeps the units alone, and the control gradient is added up lane by lane, over
/// all stages and layers that share controls; the lanes are added at the end.
namespace ocdl {

template <class T>
struct NarrowMlp {
  Index dim, rows;  ///< of f, and of z = (y, x): the kernels are those of `rows` dimensions
  Index width;
  Activation activation;

  /// k = V s + A y + c with s = sigma(K y + b), in the lanes that hold samples; the padding becomes 0.
  void evaluate(const StageControls<const T>& u, const Plane<const T>& y, const StagePlanes<T>& at,
                Index samples) const;

  /// Numbers of the sums: a pack for each number of the controls.
  Index sums_size() const { return (width * (2 * rows + 1) + rows * (rows + 1)) * lanes<T>; }
  /// eta = h (d_y f)^T g, and sums += h (d_u f)^T g, lane by lane; y is the stage's state. All are a thread's
  /// slice with so many samples.
  void vjp(const StageControls<const T>& u, T h, const LinearCombination<T>& y, const StagePlanes<T>& at,
           const LinearCombination<T>& g, const Plane<T>& eta, Index samples, T* sums) const;
  /// du = [du +] the sums over all lanes, which overwrites `sums`.
  void add_lanes(T* sums, bool accumulate, const StageControls<T>& du) const;
};

extern template struct NarrowMlp<double>;
extern template struct NarrowMlp<float>;

}  // namespace ocdl
