#include <cstdlib>

#include "wasm/experiment.hpp"
#include "wasm/exported.hpp"

using namespace ocdl;

namespace {

/// Where a name stands in a table of facts; the page offers those of the core only.
template <class Kind, class Table>
Kind kind_of(const Table& table, std::string_view name) {
  for (std::size_t n = 0; n < table.size(); ++n)
    if (table[n].name == name) return static_cast<Kind>(n);
  throw std::invalid_argument("unknown name");
}

}  // namespace

OCDL_EXPORTED(allocate) void* allocate(std::size_t bytes) { return std::malloc(bytes); }
OCDL_EXPORTED(release) void release(void* memory) { std::free(memory); }

OCDL_EXPORTED(make_experiment)
Experiment* make_experiment(Index features, Index dim, Index layers, Index outputs, const Tableau* tableau,
                            const char* activation, int residual, int learns_steps, int simplex,
                            double horizon, const char* field) {
  auto* made = new Experiment(Network({.features = features,
                                       .dim = dim,
                                       .layers = layers,
                                       .outputs = outputs,
                                       .tableau = *tableau,
                                       .activation = kind_of<Activation>(activations, activation),
                                       .field_kind = kind_of<FieldKind>(fields, field),
                                       .residual = residual != 0,
                                       .learns_steps = learns_steps != 0,
                                       .horizon = horizon}));
  made->simplex = simplex;
  return made;
}

OCDL_EXPORTED(free_experiment) void free_experiment(Experiment* experiment) { delete experiment; }

OCDL_EXPORTED(control_size) Index control_size(const Experiment* experiment) {
  return experiment->net.control_size();
}

OCDL_EXPORTED(set_loss) void set_loss(Experiment* experiment, const char* name, int mean) {
  for_each_loss([&](const auto& loss) {
    if (loss.traits.name == name) experiment->objective.loss = loss;
  });
  experiment->objective.mean = mean;
}

OCDL_EXPORTED(add_penalty) void add_penalty(Experiment* experiment, const char* name, double weight) {
  for_each_penalty([&](auto penalty) {
    if (penalty.name != name) return;
    penalty.weight = weight;
    experiment->objective.regulariser.penalties.push_back(penalty);
  });
}

OCDL_EXPORTED(set_samples)
void set_samples(Experiment* experiment, const double* X, const double* targets, Index count) {
  experiment->take(X, targets, count);
}

/// States (N+1, count, dim) and outputs (count, outputs); null pointers are not asked for.
OCDL_EXPORTED(forward)
void run_forward(Experiment* experiment, const double* u, const double* X, Index count, double* states,
                 double* outputs) {
  forward<double>(experiment->net, u, X, count, {.states = states, .outputs = outputs},
                  experiment->workspace);
}

/// How many numbers a row of outputs stands for, see `means`.
OCDL_EXPORTED(mean_size) Index row_of_means(const Experiment* experiment) {
  return mean_size(experiment->objective.loss, experiment->net.outputs);
}

/// Probabilities or predicted numbers (count, mean_size) of outputs (count, outputs).
OCDL_EXPORTED(means)
void means(const Experiment* experiment, const double* outputs, Index count, double* out) {
  const Index given = experiment->net.outputs, size = row_of_means(experiment);
  for (Index i = 0; i < count; ++i) {
    std::copy_n(outputs + i * given, given, out + i * size);
    mean_of(experiment->objective.loss, given, out + i * size);
  }
}

/// J of the samples, at inputs of its own unless null, and what derivatives are asked for.
OCDL_EXPORTED(value_and_derivatives)
double run_value_and_derivatives(Experiment* experiment, const double* u, const double* X, int penalised,
                                 double* gradient, double* input_gradient, double* costates) {
  Data<double> data = experiment->data();
  if (X) data.X.data = X;
  Objective objective = experiment->objective;
  if (!penalised) objective.regulariser = {};
  return value_and_derivatives<double>(experiment->net, u, data, objective,
                                       {gradient, input_gradient, costates}, experiment->workspace);
}

/// The variational trajectory (N+1, samples, dim).
OCDL_EXPORTED(tangent)
void run_tangent(Experiment* experiment, const double* u, const double* du, const double* dX, double* out) {
  tangent<double>(experiment->net, u, experiment->X.data(), experiment->samples(), du, dX, out,
                  experiment->workspace);
}

/// J and the score of other samples.
OCDL_EXPORTED(assess)
double assess(Experiment* experiment, const double* u, const double* X, const double* targets, Index count,
              double* value) {
  Experiment other(experiment->net);
  other.objective = experiment->objective;
  other.take(X, targets, count);
  SamplesEvaluator<double> evaluator(other.net, other.data(), other.objective);
  *value = evaluator.evaluate(u, nullptr, Evaluator<double>::all_samples);
  return evaluator.score(u);
}
