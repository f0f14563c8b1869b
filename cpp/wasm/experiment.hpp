#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "ocdl/evaluator/samples.hpp"
#include "ocdl/optimiser/training.hpp"

namespace ocdl {

/// A network with its objective, its samples and its training: what a page looks at.
struct Experiment {
  explicit Experiment(Network network) : net(std::move(network)) {}
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  Network net;
  bool simplex = false;
  Objective objective;
  std::vector<double> X, numbers;
  std::vector<std::int64_t> labels;
  std::unique_ptr<SamplesEvaluator<double>> evaluator;
  std::optional<Training<double>> training;
  Workspace<double> workspace;
  StopSource stop_source{[] { return false; }};

  /// The samples, or others in their place whose targets have the same form.
  Data<double> data() const { return {{X.data(), net.features}, targets(), nullptr, samples()}; }
  Targets<double> targets() const {
    return takes_classes() ? Targets<double>{labels.data()}
                           : Targets<double>{nullptr, {numbers.data(), net.outputs}};
  }
  Index samples() const { return static_cast<Index>(X.size()) / net.features; }
  bool takes_classes() const { return traits_of(objective.loss).targets == TargetKind::classes; }
  /// Targets come as numbers, whatever they are.
  void take(const double* inputs, const double* given, Index count) {
    X.assign(inputs, inputs + count * net.features);
    labels.clear();
    numbers.clear();
    if (takes_classes())
      for (Index i = 0; i < count; ++i) labels.push_back(static_cast<std::int64_t>(given[i]));
    else
      numbers.assign(given, given + count * net.outputs);
  }
};

}  // namespace ocdl
