#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/any_evaluator.hpp"
#include "bindings/array.hpp"
#include "bindings/enumeration.hpp"
#include "bindings/interruptible.hpp"
#include "ocdl/objective/objective.hpp"
#include "ocdl/optimiser/training.hpp"
#include "ocdl/sweep/network.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

/// Puts a training's state into a dictionary.
template <class T>
class Exporter : public StateVisitor<T> {
 public:
  py::dict state;

  void number(std::string_view name, double& value) override { state[key(name)] = value; }
  void count(std::string_view name, std::int64_t& value) override { state[key(name)] = value; }
  void rows(std::string_view name, T* first, Index count, Index length, Index stride) override {
    Array<T> stored(count * length);
    T* numbers = stored.mutable_data();
    for (Index row = 0; row < count; ++row) std::copy_n(first + row * stride, length, numbers + row * length);
    state[key(name)] = std::move(stored);
  }

 private:
  static py::str key(std::string_view name) { return py::str(name.data(), name.size()); }
};

/// Reads a training's state from a dictionary; a missing entry, or one of another size, is a
/// std::invalid_argument.
template <class T>
class Importer : public StateVisitor<T> {
 public:
  explicit Importer(const py::dict& state) : state_(state) {}

  void number(std::string_view name, double& value) override { value = entry(name).template cast<double>(); }
  void count(std::string_view name, std::int64_t& value) override {
    value = entry(name).template cast<std::int64_t>();
    if (value < 0) throw std::invalid_argument("'" + std::string(name) + "' is negative");
  }
  void rows(std::string_view name, T* first, Index count, Index length, Index stride) override {
    const auto stored = entry(name).template cast<Array<T>>();
    const T* numbers = view(stored, count * length, std::string(name).c_str());
    for (Index row = 0; row < count; ++row) std::copy_n(numbers + row * length, length, first + row * stride);
  }

 private:
  py::dict state_;

  py::object entry(std::string_view name) const {
    const py::str key(name.data(), name.size());
    if (!state_.contains(key))
      throw std::invalid_argument("the state has no entry '" + std::string(name) + "'");
    return state_[key];
  }
};

using Records = py::array_t<double, py::array::c_style>;

/// A training in either precision.
class AnyTraining {
 public:
  virtual ~AnyTraining() = default;
  virtual void start() = 0;
  virtual void run(Records& records, double seconds) = 0;
  virtual TrainingRecord record() const = 0;
  virtual std::string_view status() const = 0;
  virtual std::int64_t iterations() const = 0;
  virtual std::int64_t evaluations() const = 0;
  virtual py::object controls() const = 0;
  virtual py::object nonfinite_trial() const = 0;
  virtual py::dict state() = 0;
  virtual void restore(const py::dict& state) = 0;
  virtual py::tuple assess(AnyEvaluator& evaluator, bool with_value) = 0;
};

template <class T>
class BoundTraining : public AnyTraining {
 public:
  BoundTraining(const std::shared_ptr<AnyEvaluator>& evaluator, const Given<T>& u,
                const MethodOptions& method, Constraints constraints, double tolerance,
                double relative_decrease, double seconds, NonsmoothPenalty penalty)
      : evaluator_(evaluator),
        training_(evaluator->as<T>(), view(u, evaluator->as<T>().size(), "u"), method, std::move(constraints),
                  tolerance, relative_decrease, seconds, std::move(penalty)) {}

  void start() override {
    interruptible([&](StopSource& stop_source) { training_.start(stop_source); });
  }
  void run(Records& records, double seconds) override {
    static_assert(sizeof(TrainingRecord) == 5 * sizeof(double));
    if (records.ndim() != 2 || records.shape(1) != 5) throw std::invalid_argument("records must be (n, 5)");
    auto* out = reinterpret_cast<TrainingRecord*>(records.mutable_data());
    const Index most = records.shape(0);
    interruptible([&](StopSource& stop_source) { training_.run(most, seconds, out, stop_source); });
  }
  TrainingRecord record() const override { return training_.record(); }
  std::string_view status() const override {
    return status_names[static_cast<std::size_t>(training_.status())];
  }
  std::int64_t iterations() const override { return training_.iterations(); }
  std::int64_t evaluations() const override { return training_.evaluations(); }
  py::object controls() const override {
    const ControlVector<T>& u = training_.iterate().controls;
    return Array<T>(static_cast<Index>(u.size()), u.data());
  }
  /// The controls of the last trial, where it has failed because J is not finite there; else None.
  py::object nonfinite_trial() const override {
    const Iterate<T>* trial = training_.nonfinite_trial();
    if (!trial) return py::none();
    return Array<T>(static_cast<Index>(trial->controls.size()), trial->controls.data());
  }
  py::dict state() override {
    Exporter<T> exporter;
    training_.visit(exporter);
    return exporter.state;
  }
  void restore(const py::dict& state) override {
    Importer<T> importer(state);
    training_.visit(importer);
    training_.restored();
  }
  /// (J, score) of the controls on the evaluator's samples; J is NaN unless `with_value`.
  py::tuple assess(AnyEvaluator& evaluator, bool with_value) override {
    double value = Training<T>::not_known, score = value;
    interruptible([&](StopSource& stop_source) {
      Evaluator<T>& samples = evaluator.as<T>();
      samples.set_stop_source(&stop_source);
      const T* u = training_.iterate().controls.data();
      if (with_value) value = samples.evaluate(u, nullptr, Evaluator<T>::all_samples);
      score = samples.score(u);
    });
    return py::make_tuple(value, score);
  }

 private:
  std::shared_ptr<AnyEvaluator> evaluator_;
  Training<T> training_;
};

/// Reads the settings of a method by their names.
class SettingsReader {
 public:
  explicit SettingsReader(const py::dict& settings) : settings_(settings) {}

  template <class V>
  void operator()(std::string_view name, V& value) {
    const py::str key(name.data(), name.size());
    if (!settings_.contains(key))
      throw std::invalid_argument("the method has a setting " + std::string(name));
    if constexpr (std::is_same_v<V, Curvature>)
      value = enum_from<Curvature>(curvature_names, settings_[key].template cast<std::string>());
    else
      value = settings_[key].template cast<V>();
    ++read_;
  }
  std::size_t read() const { return read_; }

 private:
  py::dict settings_;
  std::size_t read_ = 0;
};

/// The method of this name; each setting has to be there, and no other.
template <std::size_t Row = 0>
MethodOptions make_method_options(std::string_view name, const py::dict& settings) {
  if constexpr (Row == std::variant_size_v<MethodOptions>) {
    throw std::invalid_argument("unknown method: " + std::string(name));
  } else {
    std::variant_alternative_t<Row, MethodOptions> options{};
    if (options.name != name) return make_method_options<Row + 1>(name, settings);
    SettingsReader reader(settings);
    options.visit(reader);
    if (reader.read() != settings.size())
      throw std::invalid_argument(std::string(name) + " was given settings that it does not have");
    return options;
  }
}

/// Python's view of MethodOptions: pybind11 would take the variant itself apart.
struct BoundMethod {
  MethodOptions options;
};

template <class T>
std::unique_ptr<AnyTraining> make_training(const Network& net, const std::shared_ptr<AnyEvaluator>& evaluator,
                                           const Given<T>& u, const BoundMethod& method,
                                           const std::vector<std::string>& frozen, bool simplex,
                                           const std::vector<double>& singular_value_bounds, double tolerance,
                                           double relative_decrease, double seconds,
                                           const Objective& objective) {
  Constraints constraints{.frozen = {}, .simplex = simplex ? net.steps() : Range{0, 0}, .total = net.horizon};
  for (const Part& part : net.parts)
    if (std::find(frozen.begin(), frozen.end(), part.name) != frozen.end())
      constraints.frozen.push_back(part.range);
  const std::vector<Index>& shape = net.parts[0].shape;  // of K
  const Index rows = shape[shape.size() - 2], cols = shape.back();
  for (std::size_t set = 0; set < singular_value_bounds.size(); ++set)
    for (Index i = 0; i < net.control_stages; ++i)
      constraints.matrices.push_back(
          {(Index(set) * net.control_stages + i) * rows * cols, rows, cols, singular_value_bounds[set]});
  NonsmoothPenalty penalty;
  if (is_proximal(method.options))
    penalty = nonsmooth_penalty(net, objective.regulariser, constraints.frozen);
  return std::make_unique<BoundTraining<T>>(evaluator, u, method.options, std::move(constraints), tolerance,
                                            relative_decrease, seconds, std::move(penalty));
}

template <class T>
void bind_start(py::module_& m) {
  m.def("make_training", &make_training<T>, py::arg("net"), py::arg("evaluator"), py::arg("u"),
        py::arg("method"), py::arg("frozen"), py::arg("simplex"), py::arg("singular_value_bounds"),
        py::arg("tolerance"), py::arg("relative_decrease"), py::arg("seconds"), py::arg("objective"));
}

}  // namespace

void bind_training(py::module_& m) {
  py::class_<BoundMethod>(m, "Method")
      .def(py::init([](std::string_view name, const py::dict& settings) {
             return BoundMethod{make_method_options(name, settings)};
           }),
           py::arg("name"), py::arg("settings"))
      .def_property_readonly("is_proximal",
                             [](const BoundMethod& method) { return is_proximal(method.options); });
  py::class_<AnyTraining>(m, "Training")
      .def("start", &AnyTraining::start)
      .def("run", &AnyTraining::run, py::arg("records").noconvert(), py::arg("seconds"))
      .def_property_readonly("record",
                             [](const AnyTraining& training) {
                               const TrainingRecord r = training.record();
                               return py::make_tuple(r.loss, r.gradient_norm, r.lipschitz, r.trials,
                                                     r.seconds);
                             })
      .def_property_readonly("status", &AnyTraining::status)
      .def_property_readonly("iterations", &AnyTraining::iterations)
      .def_property_readonly("evaluations", &AnyTraining::evaluations)
      .def("controls", &AnyTraining::controls)
      .def("nonfinite_trial", &AnyTraining::nonfinite_trial)
      .def("state", &AnyTraining::state)
      .def("restore", &AnyTraining::restore, py::arg("state"))
      .def("assess", &AnyTraining::assess, py::arg("evaluator"), py::arg("with_value"));
  bind_start<double>(m);
  bind_start<float>(m);
}

}  // namespace ocdl
