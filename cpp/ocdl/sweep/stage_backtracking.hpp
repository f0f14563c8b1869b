#pragma once

#include "ocdl/sweep/stage_system.hpp"

namespace ocdl {

/// Newton's method with backtracking for the equations of a group of stages, in every active lane of a pack:
///     k <- k + t M^-1 (f - k),
/// with t halved until |f - k|, the sum of the sizes, falls. It starts where shorter steps in time would, at
/// f(y), and gives up where det M < 0, so that it does not leave their solution for another one. Where M is
/// never singular, it converges: for fields that contract, as y' = tanh(K y) with K = -10, and for
/// antisymmetric ones whose stages are solved for one after the other.
///
/// Nothing in a lane depends on another one.
template <class T, int Dim, int Group>
class StageBacktracking {
 public:
  static constexpr int max_evaluations = 120;

  StageBacktracking(const StageSystem<T, Dim, Group>& system, const StageTile<T>& tile, PackPosition at,
                    LaneMask<T> active)
      : system_(system), tile_(tile), at_(at), active_(active) {
    system_.for_entries([&](Index i, Index r, Index) {
      T* k = system_.stage_value(tile_.stages, i, r, at_);
      const Pack<T> value = load(system_.entry(tile_.scratch.values[i], r, at_));
      store<T>(k, select(active_, value, load(k)));
    });
  }

  Pack<T> h() const { return system_.h(); }
  LaneMask<T> active() const { return active_; }

  LaneMask<T> advance() {
    const StageSystemScratch<T>& scratch = tile_.scratch;
    const Values<T> residual = system_.write_residual(tile_.stages, scratch, at_);
    system_.assemble(false, h(), scratch, at_, system_.size());
    const LaneMask<T> is_determinant_negative = system_.solve(scratch);
    const auto [moved, scale] = system_.measure_step(tile_.y, h(), scratch, at_);
    const Values<T> smallest = scale * system_.tolerance;

    const LaneMask<T> accepted =
        active_ & (residual <= fnma(one() * sufficient_decrease, t_, one()) * residual_);
    const LaneMask<T> on_path = exclude(accepted, is_determinant_negative);
    const LaneMask<T> arrived = on_path & (moved <= smallest);
    const LaneMask<T> stepping = on_path & (moved > smallest) & (moved - moved == Values<T>{});
    const LaneMask<T> halving = exclude(active_, accepted) & (t_ > one() * min_t);
    // The next step begins with a t that is not much longer than the last one, which a kink made short.
    const Values<T> longer = select(t_ < one() / 4, t_ * 4, one());
    t_ = select(stepping, longer, t_ / 2);
    residual_ = select(stepping, residual, residual_);

    system_.for_entries([&](Index i, Index r, Index n) {
      T* k = system_.stage_value(tile_.stages, i, r, at_);
      T *base = system_.entry(scratch.base[i], r, at_),
        *direction = system_.entry(scratch.direction[i], r, at_);
      store<T>(base, select(stepping, load(k), load(base)));
      store<T>(direction, select(stepping, load(scratch.x + n), load(direction)));
      const Pack<T> next = fma(to_pack<T>(t_), load(direction), load(base));
      const Pack<T> last = select(arrived, load(k) + load(scratch.x + n), load(k));
      store<T>(k, select<LaneMask<T>>(stepping | halving, next, last));
    });
    active_ = stepping | halving;
    return arrived;
  }

 private:
  using Real = typename StageSystem<T, Dim, Group>::Real;

  static constexpr Real sufficient_decrease = Real(1e-4);  ///< the share of what |f - k| loses to first order
  static constexpr Real min_t = Real(1) / (1 << 20);

  static Values<T> one() { return Values<T>{} + Real(1); }

  const StageSystem<T, Dim, Group>& system_;
  const StageTile<T>& tile_;
  PackPosition at_;
  LaneMask<T> active_;
  Values<T> t_ = one();
  Values<T> residual_ = one() * std::numeric_limits<Real>::infinity();  ///< |f - k| before the step
};

}  // namespace ocdl
