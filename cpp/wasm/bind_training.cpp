#include "wasm/experiment.hpp"
#include "wasm/exported.hpp"

using namespace ocdl;

namespace {

/// Takes the settings of a method in the order in which it names them.
class SettingsReader {
 public:
  explicit SettingsReader(const double* settings) : next_(settings) {}

  template <class V>
  void operator()(std::string_view, V& value) {
    if constexpr (std::is_enum_v<V>)
      value = static_cast<V>(static_cast<int>(*next_++));
    else
      value = static_cast<V>(*next_++);
  }

 private:
  const double* next_;
};

template <std::size_t Row = 0>
MethodOptions method_of(std::string_view name, const double* settings) {
  if constexpr (Row == std::variant_size_v<MethodOptions>) {
    throw std::invalid_argument("unknown method");
  } else {
    std::variant_alternative_t<Row, MethodOptions> options{};
    if (options.name != name) return method_of<Row + 1>(name, settings);
    options.visit(SettingsReader(settings));
    return options;
  }
}

}  // namespace

/// Evaluates the first controls; `run` goes on from there.
OCDL_EXPORTED(start_training)
void start_training(Experiment* experiment, const double* u, const char* method, const double* settings,
                    double tolerance) {
  Experiment& e = *experiment;
  e.training.reset();
  const MethodOptions options = method_of(method, settings);
  Objective objective = e.objective;
  NonsmoothPenalty penalty;
  if (is_proximal(options)) {
    penalty = nonsmooth_penalty(e.net, e.objective.regulariser, {});
    objective.regulariser = objective.regulariser.smooth_part();
  }
  e.evaluator = std::make_unique<SamplesEvaluator<double>>(e.net, e.data(), objective);
  const Constraints constraints{
      .frozen = {}, .simplex = e.simplex ? e.net.steps() : Range{0, 0}, .total = e.net.horizon};
  e.training.emplace(*e.evaluator, u, options, constraints, tolerance, 0, 0, std::move(penalty));
  e.training->start(e.stop_source);
}

/// At most so many iterations in at most so many seconds; their records, five numbers each.
OCDL_EXPORTED(run_training)
Index run_training(Experiment* experiment, Index most, double seconds, TrainingRecord* records) {
  Training<double>& training = *experiment->training;
  const auto before = training.iterations();
  training.run(most, seconds, records, experiment->stop_source);
  return static_cast<Index>(training.iterations() - before);
}

OCDL_EXPORTED(training_status) int training_status(const Experiment* experiment) {
  return static_cast<int>(experiment->training->status());
}
OCDL_EXPORTED(training_record) void training_record(const Experiment* experiment, TrainingRecord* record) {
  *record = experiment->training->record();
}
OCDL_EXPORTED(trained_controls) const double* trained_controls(const Experiment* experiment) {
  return experiment->training->iterate().controls.data();
}
OCDL_EXPORTED(training_score) double training_score(Experiment* experiment) {
  return experiment->evaluator->score(trained_controls(experiment));
}
