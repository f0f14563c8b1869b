#pragma once

#include "ocdl/sweep/stage_system.hpp"

namespace ocdl {

/// Follows the solutions of the equations of a group of stages along the time step s h, from s = 0, where the
/// k_i are known, to s = 1, in every active lane of a pack. Where the field is bounded, such a path leads to
/// a solution for almost every y (Chow, Mallet-Paret and Yorke 1978): it may turn back for a while, where M
/// is singular, but det (M, d_s) with the direction of travel as last row stays positive. So it is followed
/// by its arc length: a predictor of length `step` along the tangent, then Newton's method in k and s,
/// orthogonal to the tangent, or with s = 1 where the path is about to arrive.
///
/// Nothing in a lane depends on another one.
template <class T, int Dim, int Group>
class StagePath {
 public:
  static constexpr int max_evaluations = 2000;

  StagePath(const StageSystem<T, Dim, Group>& system, const StageTile<T>& tile, PackPosition at,
            LaneMask<T> active)
      : system_(system), tile_(tile), at_(at), active_(active) {
    Values<T> size{};
    system_.for_entries([&](Index i, Index r, Index) {
      const Pack<T> value = load(system_.entry(tile_.scratch.values[i], r, at_));
      size += value_size<T>(value);
      store<T>(system_.entry(tile_.scratch.base[i], r, at_), value);
      T* k = system_.stage_value(tile_.stages, i, r, at_);
      store<T>(k, select(active_, value, load(k)));
    });
    weight_ = one() / size;
    write_tangent(active_);
    predict(active_);
  }

  Pack<T> h() const { return system_.h() * to_pack<T>(s_); }
  LaneMask<T> active() const { return active_; }

  LaneMask<T> advance() {
    const StageSystemScratch<T>& scratch = tile_.scratch;
    system_.write_residual(tile_.stages, scratch, at_);
    store<T>(scratch.x + system_.size() * lanes<T>, Pack<T>{});
    const LaneMask<T> is_determinant_negative = solve_bordered();
    const Values<T> correction = norm(scratch.x);
    const auto [moved, scale] = system_.measure_step(tile_.y, h(), scratch, at_);
    const Values<T> s = select(is_last_, s_, s_ + values<T>(load(scratch.x + system_.size() * lanes<T>)));

    corrected_ += correction;
    const LaneMask<T> is_close = (is_last_ & (moved <= scale * system_.tolerance)) |
                                 exclude<LaneMask<T>>(correction <= one() * path_tolerance, is_last_);
    const LaneMask<T> converging =
        active_ & (corrected_ * 2 <= step_) & ((correction * 2 <= last_correction_) | is_close);
    const LaneMask<T> is_within = is_last_ | ((s >= Values<T>{}) & (s < one()));
    const LaneMask<T> solved =
        exclude<LaneMask<T>>(converging & is_close & is_within, is_determinant_negative);
    const LaneMask<T> correcting = exclude(converging, is_close);
    const LaneMask<T> failed = exclude<LaneMask<T>>(active_, solved | correcting);
    const LaneMask<T> arrived = solved & is_last_;

    last_correction_ = correction;
    s_ = select(active_, s, s_);
    base_s_ = select(solved, s, base_s_);
    system_.for_entries([&](Index i, Index r, Index n) {
      T *k = system_.stage_value(tile_.stages, i, r, at_), *base = system_.entry(scratch.base[i], r, at_);
      const Pack<T> next = select(active_, load(k) + load(scratch.x + n), load(k));
      store<T>(k, next);
      store<T>(base, select(solved, next, load(base)));
    });
    step_ = select(solved, step_ * 2, select(failed, step_ / 2, step_));
    const LaneMask<T> is_lost = (step_ < one() * min_step) | (step_ > one() * max_step);
    active_ = exclude<LaneMask<T>>(active_, arrived | is_lost);
    const LaneMask<T> advancing = active_ & solved;
    if (any_lane(advancing)) write_tangent(advancing);
    predict(active_ & (solved | failed));
    return arrived;
  }

 private:
  using Real = typename StageSystem<T, Dim, Group>::Real;

  /// Of the corrections to a point of the path that is only passed: the root of System::tolerance.
  static constexpr Real path_tolerance = std::same_as<Real, float> ? Real(5e-3) : Real(6e-6);
  /// A path that needs shorter steps has a kink, of relu say; one with longer steps leads to infinity.
  static constexpr Real min_step = Real(1e-9), max_step = Real(1e6);

  static Values<T> one() { return Values<T>{} + Real(1); }
  static Values<T> infinity() { return one() * std::numeric_limits<Real>::infinity(); }

  const StageSystem<T, Dim, Group>& system_;
  const StageTile<T>& tile_;
  PackPosition at_;
  LaneMask<T> active_;
  LaneMask<T> is_last_ = Values<T>{} == Values<T>{};  ///< s stays as it is: at the start, and for s = 1
  Values<T> weight_;                                  ///< of k, to be compared with s: 1 / |f(y)|
  Values<T> s_{};                                     ///< where k is
  Values<T> base_s_{};                                ///< of the last point on the path, the `base`
  Values<T> tangent_s_{};                             ///< of the tangent there, the `direction`
  Values<T> step_ = one() / 2;
  Values<T> last_correction_ = infinity(), corrected_{};  ///< the last correction, and the sum of all

  /// The size of what the packs at x hold, k and s.
  Values<T> norm(const T* x) const {
    Values<T> sum{};
    for (Index n = 0; n < system_.size(); ++n) sum += value_size<T>(load(x + n * lanes<T>));
    return fma(sum, weight_, value_size<T>(load(x + system_.size() * lanes<T>)));
  }

  /// x <- the solution of the equations with matrix (M, d_s (k - f)) and, as last row, the tangent, or s
  /// alone. Returns the lanes in which the determinant is negative.
  LaneMask<T> solve_bordered() const {
    const StageSystemScratch<T>& scratch = tile_.scratch;
    const Index size = system_.size(), width = size + 1;
    system_.assemble(false, h(), scratch, at_, width);
    const auto entry = [&](Index row, Index column) {
      return scratch.matrix + (row * width + column) * lanes<T>;
    };
    for (Index i = 0; i < system_.count(); ++i) {
      const T* jacobian = system_.jacobian(i, scratch, at_);
      for (Index r = 0; r < system_.dim(); ++r) {
        Pack<T> derivative{};
        for (Index c = 0; c < system_.dim(); ++c)
          derivative = fnma(load(jacobian + (r * system_.dim() + c) * lanes<T>),
                            system_.sum_group(system_.h(), i, tile_.stages, c, at_), derivative);
        store<T>(entry(i * system_.dim() + r, size), derivative);
        const Pack<T> tangent = load(system_.entry(scratch.direction[i], r, at_));
        store<T>(entry(size, i * system_.dim() + r),
                 select(is_last_, Pack<T>{}, tangent * to_pack<T>(weight_ * weight_)));
      }
    }
    store<T>(entry(size, size), to_pack<T>(select(is_last_, one(), tangent_s_)));
    return solve_lanes(width, scratch.matrix, scratch.x);
  }

  /// The tangent at the base, at which k is, in the direction of the last one; at first in that of s.
  void write_tangent(LaneMask<T> moving) {
    T* x = tile_.scratch.x;
    const Index size = system_.size();
    std::fill_n(x, size * lanes<T>, T(0));
    store<T>(x + size * lanes<T>, broadcast<T>(T(1)));
    solve_bordered();
    const Values<T> inverse = one() / norm(x);
    system_.for_entries([&](Index i, Index r, Index n) {
      T* direction = system_.entry(tile_.scratch.direction[i], r, at_);
      store<T>(direction, select(moving, load(x + n) * to_pack<T>(inverse), load(direction)));
    });
    tangent_s_ = select(moving, values<T>(load(x + size * lanes<T>)) * inverse, tangent_s_);
  }

  /// Goes on from the base along the tangent; where s = 1 lies on the way, no further.
  void predict(LaneMask<T> moving) {
    const LaneMask<T> reaches_end = (tangent_s_ > Values<T>{}) & (fma(step_, tangent_s_, base_s_) >= one());
    is_last_ = select(moving, reaches_end, is_last_);
    step_ = select<LaneMask<T>>(moving & reaches_end, (one() - base_s_) / tangent_s_, step_);
    s_ = select(moving, select(reaches_end, one(), fma(step_, tangent_s_, base_s_)), s_);
    last_correction_ = select(moving, infinity(), last_correction_);
    corrected_ = select(moving, Values<T>{}, corrected_);
    system_.for_entries([&](Index i, Index r, Index) {
      T* k = system_.stage_value(tile_.stages, i, r, at_);
      const Pack<T> next = fma(to_pack<T>(step_), load(system_.entry(tile_.scratch.direction[i], r, at_)),
                               load(system_.entry(tile_.scratch.base[i], r, at_)));
      store<T>(k, select(moving, next, load(k)));
    });
  }
};

}  // namespace ocdl
