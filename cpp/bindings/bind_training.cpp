#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/array.hpp"
#include "bindings/enumeration.hpp"
#include "bindings/interruptible.hpp"
#include "ocdl/optimiser/training.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

/// Asks a training to stop, from any thread.
class StopFlag {
 public:
  void request() { requested_.store(true); }
  bool requested() const { return requested_.load(); }

 private:
  std::atomic<bool> requested_{false};
};

/// Puts a training's state into a dictionary.
template <class T>
class Exporter : public StateVisitor<T> {
 public:
  py::dict state;

  void number(std::string_view name, double& value) override { state[key(name)] = value; }
  void count(std::string_view name, std::int64_t& value) override { state[key(name)] = value; }
  void vector(std::string_view name, std::vector<T>& values) override {
    state[key(name)] = Array<T>(static_cast<Index>(values.size()), values.data());
  }

 private:
  static py::str key(std::string_view name) { return py::str(name.data(), name.size()); }
};

/// Takes it from there. What is missing or of another size is a std::invalid_argument.
template <class T>
class Importer : public StateVisitor<T> {
 public:
  explicit Importer(const py::dict& state) : state_(state) {}

  void number(std::string_view name, double& value) override { value = entry(name).template cast<double>(); }
  void count(std::string_view name, std::int64_t& value) override {
    value = entry(name).template cast<std::int64_t>();
    if (value < 0) throw std::invalid_argument("'" + std::string(name) + "' is negative");
  }
  void vector(std::string_view name, std::vector<T>& values) override {
    const auto stored = entry(name).template cast<Array<T>>();
    const T* numbers = view(stored, static_cast<Index>(values.size()), std::string(name).c_str());
    std::copy_n(numbers, values.size(), values.begin());
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
  virtual bool start(const StopFlag& stop) = 0;
  virtual bool run(Records& records, double seconds, const StopFlag& stop) = 0;
  virtual TrainingRecord record() const = 0;
  virtual std::string_view status() const = 0;
  virtual std::int64_t iterations() const = 0;
  virtual std::int64_t evaluations() const = 0;
  virtual py::object controls() const = 0;
  virtual py::dict state() = 0;
  virtual void restore(const py::dict& state) = 0;
  virtual py::object assess(const py::object& X, const Array<std::int64_t>& y, const py::object& weights,
                            const Objective* objective, const StopFlag& stop) = 0;
};

template <class T>
class BoundTraining : public AnyTraining {
 public:
  BoundTraining(const Network& net, const Array<T>& u, const Array<T>& X, const Array<std::int64_t>& y,
                const OptionalArray<T>& weights, const Objective& objective, const MethodOptions& method,
                std::vector<Range> frozen, bool simplex, double tolerance, double first_value, double seconds)
      : features_(net.features),
        X_(X),
        y_(y),
        weights_(weights),
        training_(net, view(u, net.control_size(), "u"),
                  {view(X_, y.size() * net.features, "X"), y_.data(),
                   view(weights_, y.size(), "sample_weight"), y.size()},
                  objective, method, std::move(frozen), simplex, tolerance, first_value, seconds) {}

  bool start(const StopFlag& stop) override {
    return interruptible([&](Watch& watch) { training_.start(watch); }, [&] { return stop.requested(); });
  }
  bool run(Records& records, double seconds, const StopFlag& stop) override {
    static_assert(sizeof(TrainingRecord) == 5 * sizeof(double));
    if (records.ndim() != 2 || records.shape(1) != 5) throw std::invalid_argument("records must be (n, 5)");
    auto* out = reinterpret_cast<TrainingRecord*>(records.mutable_data());
    const Index most = records.shape(0);
    return interruptible([&](Watch& watch) { training_.run(most, seconds, out, watch); },
                         [&] { return stop.requested(); });
  }
  TrainingRecord record() const override { return training_.record(); }
  std::string_view status() const override {
    return status_names[static_cast<std::size_t>(training_.status())];
  }
  std::int64_t iterations() const override { return training_.iterations(); }
  std::int64_t evaluations() const override { return training_.evaluations(); }
  py::object controls() const override {
    const std::vector<T>& u = training_.iterate().controls;
    return Array<T>(static_cast<Index>(u.size()), u.data());
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
  /// (J, accuracy) on these samples, or None if it was stopped.
  py::object assess(const py::object& X, const Array<std::int64_t>& y, const py::object& weights,
                    const Objective* objective, const StopFlag& stop) override {
    const auto rows = X.cast<Array<T>>();
    const auto row_weights = weights.cast<OptionalArray<T>>();
    const Data<T> data{view(rows, y.size() * features_, "X"), y.data(),
                       view(row_weights, y.size(), "sample_weight"), y.size()};
    std::pair<double, double> found;
    const bool complete =
        interruptible([&](Watch& watch) { found = training_.assess(data, objective, watch); },
                      [&] { return stop.requested(); });
    return complete ? py::object(py::make_tuple(found.first, found.second)) : py::none();
  }

 private:
  Index features_;
  Array<T> X_;
  Array<std::int64_t> y_;
  OptionalArray<T> weights_;
  Training<T> training_;
};

template <class T>
std::unique_ptr<AnyTraining> make_training(const Network& net, const Array<T>& u, const Array<T>& X,
                                           const Array<std::int64_t>& y, const OptionalArray<T>& weights,
                                           const Objective& objective, const MethodOptions& method,
                                           const std::vector<std::string>& frozen, bool simplex,
                                           double tolerance, double first_value, double seconds) {
  const Index sizes[] = {net.K_size(), net.b_size(), net.h_size(), net.W_size(), net.outputs};
  std::vector<Range> ranges;
  Index begin = 0;
  for (int part = 0; const char* name : {"K", "b", "h", "W", "mu"}) {
    const Index end = begin + sizes[part++];
    if (std::find(frozen.begin(), frozen.end(), name) != frozen.end()) ranges.push_back({begin, end});
    begin = end;
  }
  return std::make_unique<BoundTraining<T>>(net, u, X, y, weights, objective, method, std::move(ranges),
                                            simplex, tolerance, first_value, seconds);
}

template <class T>
void bind_start(py::module_& m) {
  m.def("make_training", &make_training<T>, py::arg("net"), py::arg("u").noconvert(),
        py::arg("X").noconvert(), py::arg("y").noconvert(), py::arg("sample_weight").noconvert(),
        py::arg("objective"), py::arg("method"), py::arg("frozen"), py::arg("simplex"), py::arg("tolerance"),
        py::arg("first_value"), py::arg("seconds"));
}

void bind_methods(py::module_& m) {
  py::class_<GradientDescentOptions>(m, "GradientDescent")
      .def(py::init([](double step) { return GradientDescentOptions{step}; }), py::arg("step"));
  py::class_<BacktrackingOptions>(m, "Backtracking")
      .def(py::init([](double L0, double rho_up, double rho_down, int max_trials) {
             return BacktrackingOptions{L0, rho_up, rho_down, max_trials};
           }),
           py::arg("L0"), py::arg("rho_up"), py::arg("rho_down"), py::arg("max_trials"));
  py::class_<ArmijoOptions>(m, "Armijo")
      .def(py::init(
               [](double c, double shrink, double grow, double first_step, double max_step, int max_trials) {
                 return ArmijoOptions{c, shrink, grow, first_step, max_step, max_trials};
               }),
           py::arg("c"), py::arg("shrink"), py::arg("grow"), py::arg("first_step"), py::arg("max_step"),
           py::arg("max_trials"));
  py::class_<AdamOptions>(m, "Adam").def(
      py::init([](double lr, double beta1, double beta2, double epsilon, Index batch_size,
                  std::uint64_t seed) { return AdamOptions{lr, beta1, beta2, epsilon, batch_size, seed}; }),
      py::arg("lr"), py::arg("beta1"), py::arg("beta2"), py::arg("epsilon"), py::arg("batch_size"),
      py::arg("seed"));
  py::class_<LBFGSOptions>(m, "LBFGS")
      .def(py::init([](Index memory, int max_trials) { return LBFGSOptions{memory, max_trials}; }),
           py::arg("memory"), py::arg("max_trials"));
  py::class_<NewtonCGOptions>(m, "NewtonCG")
      .def(py::init([](std::string_view curvature, double radius, double forcing, int max_products,
                       int max_trials) {
             const auto kind = enum_from<Curvature>(curvature_names, curvature);
             return NewtonCGOptions{kind, radius, forcing, max_products, max_trials};
           }),
           py::arg("curvature"), py::arg("radius"), py::arg("forcing"), py::arg("max_products"),
           py::arg("max_trials"));
}

}  // namespace

void bind_training(py::module_& m) {
  bind_methods(m);
  py::class_<StopFlag>(m, "StopFlag")
      .def(py::init<>())
      .def("request", &StopFlag::request)
      .def_property_readonly("requested", &StopFlag::requested);
  py::class_<AnyTraining>(m, "Training")
      .def("start", &AnyTraining::start, py::arg("stop"))
      .def("run", &AnyTraining::run, py::arg("records").noconvert(), py::arg("seconds"), py::arg("stop"))
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
      .def("state", &AnyTraining::state)
      .def("restore", &AnyTraining::restore, py::arg("state"))
      .def("assess", &AnyTraining::assess, py::arg("X"), py::arg("y").noconvert(), py::arg("sample_weight"),
           py::arg("objective"), py::arg("stop"));
  bind_start<double>(m);
  bind_start<float>(m);
}

}  // namespace ocdl
