#pragma once

#include <concepts>

#include "ocdl/field/dense.hpp"
#include "ocdl/kernel/transpose.hpp"

/// The dense field on states of a few dimensions, fused with what an explicit method does before and behind
/// it. Such a state is so narrow that a pass over a plane costs as much as what it computes: here a stage
/// takes two passes forward and one or two backward. The bits of a forward sweep are those of `Dense`.
namespace ocdl {

inline constexpr Index max_narrow_dim = 8;

/// Whether there are kernels for it. Scalars that are not numbers of the machine take the general way.
template <class T>
constexpr bool is_narrow(Index dim) {
  return std::floating_point<T> && dim <= max_narrow_dim;
}

template <class T>
struct NarrowDense {
  Index dim;
  Activation activation;

  /// k = sigma(K y + b) with y = `state`, and the sum that k completes. `power` is a plane of scratch memory.
  void evaluate(const StageControls<const T>& u, const LinearCombination<T>& state, const StagePlanes<T>& at,
                const Plane<T>& power, const Epilogue<T>& epilogue) const;

  /// Sums over the samples of a block: delta y^T in rows, delta, and <g, k> as the last one.
  class Sums {
   public:
    explicit Sums(Index dim) : dim_(static_cast<int>(dim)) { clear(count() + lanes<T> - 1); }
    /// All but <g, k> begin anew.
    void clear_gradient() { clear(count() - 1); }
    /// Adds up the lanes, which a kernel leaves apart.
    void add_lanes() { sum_lanes_of_each<T>(lanes_, count(), totals_); }

    Pack<T>* outer() { return lanes_; }
    Pack<T>* delta() { return lanes_ + dim_ * dim_; }
    Pack<T>& dot() { return lanes_[count() - 1]; }
    const T* outer_total() const { return totals_; }
    const T* delta_total() const { return totals_ + dim_ * dim_; }
    T dot_total() const { return totals_[count() - 1]; }

   private:
    static constexpr Index capacity = max_narrow_dim * (max_narrow_dim + 1) + 1;
    int dim_;
    Pack<T> lanes_[capacity + lanes<T>];
    T totals_[capacity + lanes<T>];

    int count() const { return dim_ * (dim_ + 1) + 1; }
    void clear(int first_few) {
      for (int n = 0; n < first_few; ++n) lanes_[n] = Pack<T>{};
    }
  };

  /// With delta = sigma' g: eta = h K^T delta, unless null; costate = costate_before + eta; the sums grow by
  /// delta y^T, delta and, where it is wanted, <g, k>. `work` is a plane.
  void vjp(const StageControls<const T>& u, T h, LinearCombination<T>& state, const StagePlanes<T>& at,
           const LinearCombination<T>& g, const Plane<const T>& costate_before, const Plane<T>& costate,
           const Plane<T>& eta, bool wants_dot, Sums& sums, const Plane<T>& work) const;
};

extern template struct NarrowDense<double>;
extern template struct NarrowDense<float>;

}  // namespace ocdl
