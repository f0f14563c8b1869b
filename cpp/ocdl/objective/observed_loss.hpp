#pragma once

#include "ocdl/objective/curvature.hpp"
#include "ocdl/objective/loss.hpp"
#include "ocdl/sweep/observations.hpp"

namespace ocdl {

/// What was observed of samples: rows of (times, outputs) numbers, NaN where nothing was.
template <class S>
struct Observed {
  ObservationTimes<S> times;
  const S* values = nullptr;  ///< of the first sample; the others follow `stride` numbers apart
  Index stride = 0;
  const S* weights = nullptr;  ///< of the samples; null: all 1
};

/// The losses of samples that are observed at several times: the sum over what was observed, output by
/// output. Losses of numbers alone.
template <class T, class S>
class ObservedLossCost : public ObservationCost<T, S> {
  using Base = ObservationCost<T, S>;

 public:
  /// As `LossCost`.
  ObservedLossCost(const Network& net, const T* controls, const Observed<S>& observed, const Loss& loss,
                   double scale, bool gauss_newton = false)
      : Base(net, controls, observed.times),
        observed_(observed),
        loss_(loss),
        scale_(scale),
        gauss_newton_(gauss_newton) {}

  void evaluate(const CostBlock<T>& at) const override {
    this->start(at);
    const Range tiles = at.thread.range();
    for (Index t = tiles.begin; t < tiles.end; ++t) evaluate_tile(at, t);
  }

 private:
  Observed<S> observed_;
  const Loss& loss_;
  double scale_;
  bool gauss_newton_;

  void evaluate_tile(const CostBlock<T>& at, Index t) const;

  /// Targets c and weights of tile t at time number n. What was not observed has weight 0; target and output
  /// z become 0 there, so that nothing that is not finite reaches the sums.
  void fill(const CostBlock<T>& at, Index t, Index n, T* z, T* c, T* weights) const {
    constexpr Index width = tile_width<T>;
    const Index q = this->net().outputs, first = at.block.first + t * width, count = at.samples_in(t);
    for (Index s = 0; s < width; ++s) {
      const S* values = observed_.values + (first + std::min(s, count - 1)) * observed_.stride + n * q;
      const T weight = s >= count ? T(0) : observed_.weights ? T(observed_.weights[first + s]) : T(1);
      for (Index o = 0; o < q; ++o) {
        const bool is_observed = s < count && value_of(values[o]) == value_of(values[o]);
        c[o * width + s] = is_observed ? T(values[o]) : T(0);
        weights[o * width + s] = is_observed ? weight : T(0);
        if (!is_observed) z[o * width + s] = T(0);
      }
    }
  }
};

/// Out of line as that of `LossCost`.
template <class T, class S>
[[gnu::noinline]] void ObservedLossCost<T, S>::evaluate_tile(const CostBlock<T>& at, Index t) const {
  constexpr Index width = tile_width<T>;
  const Index q = this->net().outputs;
  T *z = this->row_plane(at, t, 0), *c = this->row_plane(at, t, 1), *weights = this->row_plane(at, t, 2),
    *dz = this->row_plane(at, t, 3);
  std::visit(
      [&](const auto& loss) {
        for (Index n = 0; n < this->times(); ++n) {
          const typename Base::Stencils stencils = this->stencils(at, t, n);
          this->interpolate(at, t, stencils, z);
          fill(at, t, n, z, c, weights);
          for (Index o = 0; o < q; ++o) {
            const OutputTile<T> output{1, z + o * width, c + o * width, weights + o * width};
            at.values[t] += tile_loss(loss, output, dz + o * width);
            if constexpr (is_dual<T>)
              if (gauss_newton_) keep_curvature(loss, output, dz + o * width);
          }
          for (Index i = 0; i < q * width; ++i) dz[i] *= T(scale_);
          this->add_cotangents(at, t, stencils, dz);
        }
      },
      loss_);
}

}  // namespace ocdl
