#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <iostream>
#include <map>

#include "ocdl/evaluator/samples.hpp"
#include "ocdl/optimiser/training.hpp"
#include "tests/frozen_bits.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

/// The bits of gradients, products with second derivatives and trainings are frozen for each instruction set:
/// they change neither with the compiler nor with a change of the source that means to keep them.
///
/// OCDL_PRINT_BITS=1 prints the table of frozen_bits.hpp.
namespace {

/// FNV-1a over the bytes of numbers; every NaN counts as the same one.
class Hash {
 public:
  template <class T>
  void add(const T* numbers, std::size_t size) {
    for (std::size_t n = 0; n < size; ++n) {
      const T number = std::isnan(numbers[n]) ? std::numeric_limits<T>::quiet_NaN() : numbers[n];
      unsigned char bytes[sizeof(T)];
      std::memcpy(bytes, &number, sizeof number);
      for (const unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 1099511628211u;
    }
  }
  template <class Numbers>
  void add(const Numbers& numbers) {
    add(numbers.data(), numbers.size());
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 14695981039346656037u;
};

using Table = std::map<std::string, std::uint64_t>;

/// Numbers that no compiler rounds: multiples of 2^-20 in [-1, 1).
class ExactDraw {
 public:
  double number() {
    return static_cast<double>(static_cast<std::int64_t>(engine_() >> 43) - (1 << 20)) / (1 << 20);
  }
  std::vector<double> numbers(Index size) {
    std::vector<double> v(static_cast<std::size_t>(size));
    for (double& x : v) x = number();
    return v;
  }

  Problem<double> problem(Network net, Index samples, const Loss& loss) {
    Problem<double> p{std::move(net), {loss, true, {}}, {}, {}, {}, {}, {}};
    p.controls = numbers(p.net.control_size());
    p.X = numbers(samples * p.net.features);
    p.weights = numbers(samples);
    p.numbers = numbers(samples * p.net.outputs);
    for (auto* positive : {&p.weights, &p.numbers})
      for (double& x : *positive) x = std::abs(x);
    for (Index i = 0; i < samples; ++i) p.labels.push_back(i * i % p.net.outputs);
    return p;
  }

 private:
  std::mt19937_64 engine_{17};
};

template <class T>
void add_gradient(const Problem<double>& p, Hash& hash) {
  const Problem<T> q = p.as<T>();
  for (const Storage storage : {Storage::all_stages, Storage::states_only}) {
    BlockPlan plan = plan_blocks<T>(q.net, q.samples());
    plan.storage = storage;
    const Result<T> r = gradient_of(q, plan);
    hash.add(&r.value, 1);
    hash.add(r.controls);
    hash.add(r.rows);
  }
}

std::uint64_t gradients(const Problem<double>& p) {
  Hash hash;
  add_gradient<double>(p, hash);
  add_gradient<float>(p, hash);
  return hash.value();
}

std::uint64_t products(const Problem<double>& p, ExactDraw& draw) {
  Hash hash;
  const std::vector<double> direction = draw.numbers(p.net.control_size());
  for (const Curvature curvature : {Curvature::hessian, Curvature::gauss_newton}) {
    SecondOrderWorkspace workspace;
    std::vector<double> product(direction.size());
    curvature_product(p.net, p.controls.data(), p.data(), p.objective, curvature, direction.data(),
                      product.data(), workspace);
    hash.add(product);
  }
  return hash.value();
}

std::uint64_t training(const Problem<double>& p, const MethodOptions& method, bool simplex, bool penalised) {
  SamplesEvaluator<double> evaluator(p.net, p.data(), p.objective);
  const Constraints constraints{
      .frozen = {}, .simplex = simplex ? p.net.steps() : Range{0, 0}, .total = p.net.horizon};
  NonsmoothPenalty penalty;
  if (penalised) penalty = nonsmooth_penalty(p.net, {{L1{0.01, {}}}}, {});
  Training<double> run(evaluator, p.controls.data(), method, constraints, 0, 0, 0, penalty);
  StopSource stop_source([] { return false; });
  std::vector<TrainingRecord> records(30);
  run.start(stop_source);
  run.run(30, 1e9, records.data(), stop_source);
  Hash hash;
  hash.add(run.iterate().controls);
  hash.add(&run.iterate().value, 1);
  return hash.value();
}

Network network(Index dim, const std::string& tableau, Activation activation, FieldKind field, bool shared,
                std::vector<Index> layer_sets = {}) {
  const std::string_view option = traits_of(field).requires_option ? traits_of(field).option : "";
  return Network({.features = dim,
                  .dim = dim,
                  .layers = 5,
                  .outputs = 2,
                  .tableau = named(tableau),
                  .activation = activation,
                  .field_kind = field,
                  .width = option == "width" ? 7 : 0,
                  .degree = option == "degree" ? 2 : 0,
                  .stage_controls = !shared,
                  .learns_steps = true,
                  .layer_sets = std::move(layer_sets)});
}

Table computed_bits() {
  Table table;
  ExactDraw draw;
  const auto problem = [&](Network net, Index samples, const Loss& loss) {
    return draw.problem(std::move(net), samples, loss);
  };
  for (const Index dim : {Index(1), Index(2), Index(3), Index(8), Index(16), Index(100)})
    for (const char* tableau : {"euler", "kutta4"})
      table["dense " + std::to_string(dim) + " " + tableau] = gradients(
          problem(network(dim, tableau, Activation::tanh, FieldKind::dense, true), 300, CrossEntropy{}));
  for (const FieldKind kind : {FieldKind::dense, FieldKind::antisymmetric, FieldKind::hamiltonian})
    for (const char* tableau : {"midpoint", "gauss2"})
      table["field " + std::to_string(static_cast<int>(kind)) + " " + tableau] =
          gradients(problem(network(4, tableau, Activation::tanh, kind, false), 70, Squared{}));
  for (std::size_t kind = 0; kind < activations.size(); ++kind) {
    const Problem<double> p =
        problem(network(3, "kutta3", static_cast<Activation>(kind), FieldKind::dense, true), 50, Squared{});
    table["activation " + std::to_string(kind)] = gradients(p);
    table["second order, activation " + std::to_string(kind)] = products(p, draw);
  }
  for_each_loss([&](const auto& loss) {
    const Problem<double> p =
        problem(network(4, "improved_euler", Activation::tanh, FieldKind::hamiltonian, true), 90, Loss{loss});
    table["loss " + std::string(loss.traits.name)] = gradients(p);
    table["second order, loss " + std::string(loss.traits.name)] = products(p, draw);
  });
  for (const FieldKind kind : {FieldKind::mlp, FieldKind::polynomial}) {
    ExactDraw own_draw;
    const std::string name(traits_of(kind).name);
    for (const char* tableau : {"euler", "kutta4", "gauss2"})
      for (const Index dim : {Index(2), Index(7)})
        for (const bool is_autonomous : {false, true})
          table[name + " " + std::to_string(dim) + " " + tableau + (is_autonomous ? " autonomous" : "")] =
              gradients(own_draw.problem(network(dim, tableau, Activation::tanh, kind, true,
                                                 std::vector<Index>(is_autonomous ? 5 : 0)),
                                         90, Squared{}));
    table[name + " 20 kutta4"] =
        gradients(own_draw.problem(network(20, "kutta4", Activation::sin, kind, false), 90, CrossEntropy{}));
    table["second order, " + name] = products(
        own_draw.problem(network(3, "kutta3", Activation::tanh, kind, true), 50, Squared{}), own_draw);
  }
  Problem<double> p = problem(network(2, "euler", Activation::tanh, FieldKind::dense, true), 200, Squared{});
  std::fill_n(p.controls.begin() + p.net.steps().begin, p.net.step_count(), 0.25);
  p.objective.regulariser.penalties = {Tikhonov{0x1p-10, {}}, TimeSmoothness{0x1p-10, {}},
                                       EvenSteps{0x1p-10, {}}};
  const MethodOptions methods[] = {GradientDescentOptions{0.1},
                                   BacktrackingOptions{0.1, 1.5, 0.99, 200},
                                   ArmijoOptions{0.4, 0.5, 2.0, 0.1, 10.0, 100},
                                   AdamOptions{0.01, 0.9, 0.999, 1e-8, 32, 1},
                                   LBFGSOptions{5, 25},
                                   NewtonCGOptions{Curvature::hessian, 1.0, 0.5, 20, 25}};
  for (const MethodOptions& method : methods)
    for (const bool simplex : {false, true}) {
      const auto name = std::visit([](const auto& options) { return std::string(options.name); }, method);
      table["training " + name + (simplex ? " simplex" : "")] = training(p, method, simplex, false);
      if (is_proximal(method))
        table["training " + name + (simplex ? " simplex" : "") + " L1"] = training(p, method, simplex, true);
    }
  return table;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bits)

BOOST_AUTO_TEST_CASE(are_those_of_their_instruction_set) {
  const std::string variant = frozen_architecture + OCDL_VARIANT;
  const Table computed = computed_bits();
  if (std::getenv("OCDL_PRINT_BITS"))
    for (const auto& [name, hash] : computed)
      std::cout << "    {\"" << variant << "\", \"" << name << "\", " << hash << "u},\n";
  Table frozen;
  for (const FrozenBits& row : frozen_bits)
    if (variant == row.variant) frozen[row.name] = row.hash;
  if (frozen.empty()) {
    BOOST_TEST_MESSAGE("no bits are frozen for " << variant);
    return;
  }
  BOOST_TEST(frozen.size() == computed.size());
  for (const auto& [name, hash] : computed)
    BOOST_TEST((frozen.count(name) && frozen[name] == hash), name << " has other bits");
}

BOOST_AUTO_TEST_SUITE_END()
