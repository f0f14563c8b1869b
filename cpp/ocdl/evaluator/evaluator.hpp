#pragma once

#include <cstdint>

#include "ocdl/objective/curvature.hpp"
#include "ocdl/stop_source.hpp"
#include "ocdl/sweep/derivatives.hpp"

namespace ocdl {

/// The function that is minimised, as an optimiser sees it: of a vector of controls, over all samples or over
/// a batch of them. Where the samples are and how their sums are made is the evaluator's matter. One training
/// uses it at a time.
template <class T>
class Evaluator {
 public:
  /// Instead of the number of a batch.
  static constexpr std::int64_t all_samples = -1;

  virtual ~Evaluator() = default;

  /// The length of a vector of controls.
  virtual Index size() const = 0;

  /// J at the controls and its derivatives, but for the costates; over all samples, or over a batch, whose
  /// sum of losses is scaled so that its expectation is that of all samples. Derivatives by the inputs are
  /// rows of the samples that this evaluator holds, or of the batch. Throws Interrupted.
  virtual double differentiate(const T* controls, const Derivatives<T>& derivatives, std::int64_t batch) = 0;
  /// The same with the gradient by the controls alone, unless null.
  double evaluate(const T* controls, T* gradient, std::int64_t batch) {
    return differentiate(controls, {.controls = gradient}, batch);
  }

  /// Cuts the samples into batches of this size for `evaluate`; which samples batch number k holds follows
  /// from the seed and k alone. False where a batch would hold all of them.
  virtual bool cut_into_batches(Index batch_size, std::uint64_t seed) = 0;

  /// product = B direction, with B the Hessian of J or its Gauss-Newton approximation.
  virtual void multiply_curvature(const T* controls, Curvature curvature, const double* direction,
                                  double* product) = 0;

  /// The score of the loss; NaN where it has none.
  virtual double score(const T* controls) = 0;

  /// What can stop an evaluation; null for nothing.
  void set_stop_source(StopSource* stop_source) { stop_source_ = stop_source; }
  /// For what an optimiser computes itself: notes its work. Throws Interrupted when stopped.
  void check_stop(double work) const {
    if (!stop_source_) return;
    stop_source_->progress(work);
    stop_source_->throw_if_stopped();
  }

 protected:
  StopSource* stop_source_ = nullptr;
};

}  // namespace ocdl
