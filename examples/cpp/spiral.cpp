// Trains a ResNet of 20 layers on two spirals, with the C++ library alone.
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>

#include "ocdl/evaluator/samples.hpp"
#include "ocdl/optimiser/training.hpp"
#include "ocdl/tableau/library.hpp"

int main() {
  using namespace ocdl;
  const Index samples = 400, layers = 20;
  std::mt19937_64 engine(0);
  std::normal_distribution<double> normal;

  std::vector<double> X;
  std::vector<std::int64_t> labels;
  for (Index i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i / 2) / (samples / 2 - 1.0), radius = 0.1 + 0.9 * t;
    const double angle = std::numbers::pi * (2 * t + static_cast<double>(i % 2));
    X.push_back(radius * std::cos(angle) + 0.02 * normal(engine));
    X.push_back(radius * std::sin(angle) + 0.02 * normal(engine));
    labels.push_back(i % 2);
  }

  const Network net({.features = 2, .dim = 2, .layers = layers, .outputs = 1, .tableau = named("euler")});
  std::vector<double> controls(static_cast<std::size_t>(net.control_size()));
  for (double& u : controls) u = normal(engine);
  std::fill_n(controls.begin() + net.steps().begin, layers, net.horizon / layers);

  const Data<double> data{{X.data(), 2}, {.labels = labels.data()}, /*weights=*/nullptr, samples};
  SamplesEvaluator<double> evaluator(net, data, {.loss = CrossEntropy{}});
  Training<double> training(evaluator, controls.data(), LBFGSOptions{.memory = 20, .max_trials = 25}, {},
                            /*tolerance=*/1e-6);
  StopSource never_stop([] { return false; });
  std::vector<TrainingRecord> records(1000);
  training.start(never_stop);
  const double first = training.record().loss;
  training.run(1000, /*seconds=*/60, records.data(), never_stop);

  const double accuracy = evaluator.score(training.iterate().controls.data());
  std::printf("loss %.4f -> %.2g after %lld iterations, accuracy %.3f\n", first, training.record().loss,
              static_cast<long long>(training.iterations()), accuracy);
  return accuracy > 0.95 ? 0 : 1;
}
