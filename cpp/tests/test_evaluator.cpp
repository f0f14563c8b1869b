#include <barrier>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <thread>

#include "ocdl/evaluator/callback_loss.hpp"
#include "ocdl/evaluator/shards.hpp"
#include "ocdl/optimiser/training.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

/// Parts in threads of one process: each hands in its nodes, the last one adds them up, and all have the sum.
class Exchange {
 public:
  Exchange(int parts, Index shards) : shards_(shards), everybody_(parts) {}

  Sums add_up(std::vector<TreeNode> nodes) {
    {
      const std::lock_guard hold(lock_);
      for (TreeNode& node : nodes) nodes_.push_back(std::move(node));
    }
    everybody_.arrive_and_wait();
    {
      const std::lock_guard hold(lock_);
      if (!nodes_.empty()) total_ = root_of(std::exchange(nodes_, {}), shards_);
    }
    everybody_.arrive_and_wait();
    return total_;
  }

 private:
  Index shards_;
  std::barrier<> everybody_;
  std::mutex lock_;
  std::vector<TreeNode> nodes_;
  Sums total_;
};

template <class T>
std::unique_ptr<Rows<T>> rows_in_memory(const Problem<T>& p, Range rows) {
  return std::make_unique<RowsInMemory<T>>(p.data().slice(rows));
}

/// BOOST_TEST for several threads, which it is not made for.
void check_in_thread(bool holds) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  BOOST_TEST(holds);
}

/// Rows that are copied when they are asked for; those before are gone then.
template <class T>
class CopiedRows : public Rows<T> {
 public:
  CopiedRows(const Problem<T>& p, Range part, Index at_once, Index window)
      : data_(p.data().slice(part)), at_once_(at_once), window_(window) {}

  Index count() const override { return data_.samples; }
  bool are_weighted() const override { return data_.weights; }
  ObservationGrid grid() const override { return data_.targets.grid; }
  Index at_once() const override { return at_once_; }
  Index window() const override { return window_; }

  Data<T> read(const RowRanges& ranges, const RowRanges&, StopSource*) override {
    std::vector<Index> rows;
    for (const Range& range : ranges)
      for (Index i = range.begin; i < range.end; ++i) rows.push_back(i);
    check_in_thread(static_cast<Index>(rows.size()) <=
                    std::max(at_once_, window_ + Batches::ranges_per_window));
    read_.emplace(static_cast<Index>(rows.size()), data_);
    return read_->take(data_, rows, 0);
  }

 private:
  Data<T> data_;
  Index at_once_, window_;
  std::optional<Gathered<T>> read_;
};

/// Shares of whole shards that follow each other, some of them possibly empty.
std::vector<Range> shares(Index rows, int parts, Draw& draw) {
  const Shards shards = Shards::of(rows);
  std::vector<Index> cuts = {0, shards.all};
  for (int n = 1; n < parts; ++n) cuts.push_back(draw.whole(0, shards.all));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Range> found;
  for (std::size_t n = 1; n < cuts.size(); ++n)
    found.push_back({std::min(cuts[n - 1] * shards.size, rows), std::min(cuts[n] * shards.size, rows)});
  return found;
}

/// What body(evaluator) returns in every part, each of them with so many threads.
template <class T, class MakeRows, class Body>
std::vector<std::vector<double>> in_parts(const Problem<T>& p, const std::vector<Range>& parts,
                                          int threads_each, const MakeRows& rows, const Body& body) {
  Exchange exchange(static_cast<int>(parts.size()), Shards::of(p.samples()).all);
  std::vector<std::vector<double>> results(parts.size());
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < parts.size(); ++n)
    threads.emplace_back([&, n] {
      ThreadLimit::set_here(threads_each);
      ShardsEvaluator<T> evaluator(
          p.net, rows(parts[n]), p.objective, parts[n].begin, p.samples(),
          [&](std::vector<TreeNode> nodes) { return exchange.add_up(std::move(nodes)); });
      results[n] = body(evaluator);
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

/// Six shards, of which the last one is short.
Problem<double> large_problem(Draw& draw, TargetKind kind, bool learns_steps = true) {
  const Network net({.features = 3,
                     .dim = 3,
                     .layers = 3,
                     .outputs = 2,
                     .tableau = named("euler"),
                     .field_kind = draw.coin() ? FieldKind::antisymmetric : FieldKind::dense,
                     .learns_steps = learns_steps});
  return draw.problem(net, 5 * shard_size(1) + 77, kind);
}

template <class T>
std::vector<double> everything(Evaluator<T>& evaluator, const Problem<T>& p) {
  std::vector<T> gradient(p.controls.size());
  std::vector<double> found, direction(p.controls.size(), 0.5), product(p.controls.size());
  found.push_back(evaluator.evaluate(p.controls.data(), gradient.data(), Evaluator<T>::all_samples));
  found.insert(found.end(), gradient.begin(), gradient.end());
  found.push_back(evaluator.evaluate(p.controls.data(), nullptr, Evaluator<T>::all_samples));
  for (const Curvature curvature : {Curvature::hessian, Curvature::gauss_newton}) {
    evaluator.multiply_curvature(p.controls.data(), curvature, direction.data(), product.data());
    found.insert(found.end(), product.begin(), product.end());
  }
  found.push_back(evaluator.score(p.controls.data()));
  check_in_thread(evaluator.cut_into_batches(100, 3));
  for (const std::int64_t batch : {0, 1, 70}) {
    found.push_back(evaluator.evaluate(p.controls.data(), gradient.data(), batch));
    found.insert(found.end(), gradient.begin(), gradient.end());
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(evaluator)

BOOST_AUTO_TEST_CASE(a_tree_of_sums_does_not_depend_on_who_adds) {
  Draw draw(1);
  for (const Index count : {1, 2, 3, 5, 8, 37, 100}) {
    std::vector<double> numbers = draw.normals(count), level = numbers;
    while (level.size() > 1) {  // as the tree is defined
      std::vector<double> above;
      for (std::size_t i = 0; i < level.size(); i += 2)
        above.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
      level = above;
    }
    const auto number = [&](Index k) { return numbers[static_cast<std::size_t>(k)]; };
    BOOST_TEST(tree_sum(0, count, number) == level[0]);
    for (int trial = 0; trial < 30; ++trial) {
      std::vector<TreeNode> nodes;
      for (Index begin = 0, end; begin < count; begin = end) {
        end = trial == 0 ? count : draw.whole(begin + 1, count);
        const std::vector<TreeNode> rank_nodes =
            sum_over_shards({1, begin, count}, end - begin, 2, [&](Range rows, double* sums) {
              sums[0] += number(begin + rows.begin);
              sums[1] += 1;
            });
        BOOST_TEST(double(rank_nodes.size()) <= 2 * std::log2(double(end - begin)) + 1);
        if (end - begin == count) BOOST_TEST(rank_nodes.size() == 1u);
        nodes.insert(draw.coin() ? nodes.begin() : nodes.end(), rank_nodes.begin(), rank_nodes.end());
      }
      const std::vector<double> expected = {level[0], double(count)};
      BOOST_TEST(root_of(nodes, count).wide == expected, boost::test_tools::per_element());
      nodes.pop_back();
      BOOST_CHECK_THROW(root_of(nodes, count), std::invalid_argument);
    }
  }
}

BOOST_AUTO_TEST_CASE(single_numbers_are_added_in_single_precision) {
  const std::vector<TreeNode> nodes = {{0, 0, {{1.0}, {1.0f}}}, {0, 1, {{1e-9}, {1e-9f}}}};
  const Sums root = root_of(nodes, 2);
  BOOST_TEST(root.wide[0] == 1.0 + 1e-9);
  BOOST_TEST(root.single[0] == 1.0f);
}

BOOST_AUTO_TEST_CASE(a_number_that_is_not_finite_arrives_as_such) {
  std::vector<TreeNode> nodes = {
      {0, 0, {{1.0}, {}}}, {0, 1, {{std::numeric_limits<double>::infinity()}, {}}}, {0, 2, {{-1.0}, {}}}};
  BOOST_TEST(std::isinf(root_of(nodes, 3).wide[0]));
  nodes[2].sums.wide[0] = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(std::isnan(root_of(nodes, 3).wide[0]));

  Draw draw(7);
  Problem<double> p = large_problem(draw, TargetKind::numbers);
  p.objective = {SquaredError(), true, {}};
  std::vector<double> gradient(p.controls.size());
  for (const Index row : {Index(0), 3 * shard_size(1), 5 * shard_size(1)}) {  // of shards 0, 3 and 5
    Problem<double> with_overflow = p;
    with_overflow.numbers[static_cast<std::size_t>(2 * row)] = 1e200;
    SamplesEvaluator<double> evaluator(p.net, with_overflow.data(), p.objective);
    BOOST_TEST(std::isinf(evaluator.evaluate(p.controls.data(), gradient.data(), -1)));
    with_overflow.X[static_cast<std::size_t>(3 * row)] = std::numeric_limits<double>::quiet_NaN();
    BOOST_TEST(std::isnan(evaluator.evaluate(p.controls.data(), gradient.data(), -1)));
    BOOST_TEST(std::isnan(gradient[0]));
  }
}

template <class T>
void check_parts(const Problem<T>& p, Draw& draw) {
  SamplesEvaluator<T> in_memory(p.net, p.data(), p.objective);
  const std::vector<double> whole = everything(in_memory, p);
  for (const int parts : {1, 2, 3, 4, 8})
    for (const std::vector<double>& part : in_parts<T>(
             p, shares(p.samples(), parts, draw), 1 + parts % 2,
             [&](Range rows) { return rows_in_memory(p, rows); },
             [&](auto& evaluator) { return everything(evaluator, p); }))
      BOOST_TEST((part == whole), parts << " parts");
}

/// Read a piece at a time: some shards, one, some blocks of one.
template <class T>
void check_reading(const Problem<T>& p, Draw& draw) {
  SamplesEvaluator<T> in_memory(p.net, p.data(), p.objective);
  const std::vector<double> whole = everything(in_memory, p);
  const Index shard = shard_size(p.samples());
  for (const Index at_once : {2 * p.samples(), 2 * shard + 5, shard, shard - 1, Index(2000), Index(1)})
    for (const int parts : {1, 3})
      for (const std::vector<double>& part : in_parts<T>(
               p, shares(p.samples(), parts, draw), 2,
               [&](Range rows) { return std::make_unique<CopiedRows<T>>(p, rows, at_once, p.samples()); },
               [&](auto& evaluator) { return everything(evaluator, p); }))
        BOOST_TEST((part == whole), at_once << " rows at once, " << parts << " parts");
}

BOOST_AUTO_TEST_CASE(sums_over_parts_have_the_bits_of_samples_in_memory_for_any_number_of_parts) {
  Draw draw(2);
  ThreadChoice::insist(true);
  for (const TargetKind kind : {TargetKind::classes, TargetKind::numbers})
    for (int trial = 0; trial < 3; ++trial) {
      const Problem<double> p = large_problem(draw, kind);
      check_parts(p, draw);
      check_parts(p.as<float>(), draw);
    }
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(rows_that_are_read_have_the_bits_of_samples_in_memory) {
  Draw draw(10);
  ThreadChoice::insist(true);
  for (const TargetKind kind : {TargetKind::classes, TargetKind::numbers}) {
    const Problem<double> p = large_problem(draw, kind);
    check_reading(p, draw);
    check_reading(p.as<float>(), draw);
  }
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(observations_have_the_same_bits_over_parts_and_where_they_are_read) {
  Draw draw(13);
  ThreadChoice::insist(true);
  for (const bool shared : {false, true}) {
    Problem<double> p = large_problem(draw, TargetKind::numbers, shared);
    draw.observe(p, 3, shared);
    check_parts(p, draw);
    check_parts(p.as<float>(), draw);
    check_reading(p, draw);
  }
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(batches_of_observations_add_up_to_all_of_them) {
  Draw draw(14);
  Problem<double> p = large_problem(draw, TargetKind::numbers, false);
  draw.observe(p, 3, false);
  p.objective.mean = draw.coin();
  p.objective.regulariser = {};
  SamplesEvaluator<double> evaluator(p.net, p.data(), p.objective);
  std::vector<double> all(p.controls.size()), gradient(p.controls.size());
  const double value = evaluator.evaluate(p.controls.data(), all.data(), -1);
  evaluator.cut_into_batches(1000, 3);
  double sum = 0;
  std::vector<double> sums(all.size());
  for (Index batch = 0, left = p.samples(); left > 0; ++batch, left -= 1000) {
    const double fraction = double(std::min<Index>(left, 1000)) / double(p.samples());
    sum += fraction * evaluator.evaluate(p.controls.data(), gradient.data(), batch);
    for (std::size_t n = 0; n < sums.size(); ++n) sums[n] += fraction * gradient[n];
  }
  BOOST_TEST(std::abs(sum - value) <= 1e-13 * value);
  double largest = 0, error = 0;
  for (std::size_t n = 0; n < sums.size(); ++n) {
    largest = std::max(largest, std::abs(all[n]));
    error = std::max(error, std::abs(sums[n] - all[n]));
  }
  BOOST_TEST(error <= 1e-12 * largest);
}

BOOST_AUTO_TEST_CASE(rows_that_are_read_have_the_bits_of_samples_in_memory_where_a_team_adds_them) {
  Draw draw(11);
  ThreadChoice::insist(true);
  const Network net(
      {.features = 7, .dim = 96, .layers = 1, .outputs = 1, .tableau = named("euler"), .learns_steps = true});
  check_reading(draw.problem(net, 2 * shard_size(1) + 9), draw);
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(batches_of_windows_do_not_depend_on_the_parts) {
  Draw draw(12);
  const Problem<double> p = large_problem(draw, TargetKind::classes);
  const auto batches = [&](auto& evaluator) {
    std::vector<double> found, gradient(p.controls.size());
    evaluator.cut_into_batches(100, 5);
    for (std::int64_t batch = 0; batch < 450; batch += 7) {
      found.push_back(evaluator.evaluate(p.controls.data(), gradient.data(), batch));
      found.push_back(gradient[1]);
    }
    return found;
  };
  const auto of_parts = [&](int parts) {
    return in_parts<double>(
        p, shares(p.samples(), parts, draw), 1,
        [&](Range rows) { return std::make_unique<CopiedRows<double>>(p, rows, 1000, 3000); }, batches);
  };
  const std::vector<double> alone = of_parts(1)[0];
  for (const int parts : {2, 5})
    for (const std::vector<double>& part : of_parts(parts)) BOOST_TEST((part == alone));
}

BOOST_AUTO_TEST_CASE(sums_over_parts_have_the_bits_of_samples_in_memory_where_a_team_adds_them) {
  Draw draw(8);
  ThreadChoice::insist(true);
  const Network net(
      {.features = 7, .dim = 96, .layers = 1, .outputs = 1, .tableau = named("euler"), .learns_steps = true});
  const Problem<double> p = draw.problem(net, 2 * shard_size(1) + 9);
  BOOST_TEST(plan_blocks<double>(net, p.samples()).by_team);
  check_parts(p, draw);
  check_parts(p.as<float>(), draw);
  ThreadChoice::insist(false);
}

BOOST_AUTO_TEST_CASE(sums_over_shards_are_the_sums_over_their_rows) {
  Draw draw(9);
  Problem<double> p = large_problem(draw, TargetKind::numbers);
  p.objective.mean = false;
  p.objective.regulariser = {};
  const Shards shards = Shards::of(p.samples());
  const std::size_t size = p.controls.size();
  std::vector<double> gradient(size);
  const auto evaluate = [&](Range rows) {
    SamplesEvaluator<double> evaluator(p.net, p.data().slice(rows), p.objective);
    return evaluator.evaluate(p.controls.data(), gradient.data(), -1);
  };
  long double value = 0;
  std::vector<long double> sums(size);
  for (Index begin = 0; begin < p.samples(); begin += shards.size) {
    value += evaluate({begin, std::min(begin + shards.size, p.samples())});
    for (std::size_t n = 0; n < size; ++n) sums[n] += gradient[n];
  }
  BOOST_TEST(std::abs(evaluate({0, p.samples()}) - value) <= 1e-15 * std::abs(value));
  long double largest = 0;
  for (const long double sum : sums) largest = std::max(largest, std::abs(sum));
  for (std::size_t n = 0; n < size; ++n) BOOST_TEST(std::abs(gradient[n] - sums[n]) <= 1e-14 * largest);
}

BOOST_AUTO_TEST_CASE(a_training_over_parts_has_the_bits_of_one_with_the_samples_in_memory) {
  Draw draw(3);
  Problem<double> p = large_problem(draw, TargetKind::classes);
  p.objective = {CrossEntropy(), true, {{Tikhonov{1e-3, {}}}}};
  const std::vector<MethodOptions> methods = {BacktrackingOptions{0.1, 1.5, 0.99, 200},
                                              AdamOptions{0.01, 0.9, 0.999, 1e-8, 64, 1}, LBFGSOptions{5, 25},
                                              NewtonCGOptions{Curvature::hessian, 1.0, 0.5, 5, 25}};
  for (const MethodOptions& method : methods) {
    const auto train = [&](auto& evaluator) {
      Training<double> training(evaluator, p.controls.data(), method, {}, 0.0);
      StopSource stop_source([] { return false; });
      std::vector<TrainingRecord> records(8);
      training.start(stop_source);
      training.run(8, 1e9, records.data(), stop_source);
      const auto& trained = training.iterate().controls;
      return std::vector<double>(trained.begin(), trained.end());
    };
    SamplesEvaluator<double> in_memory(p.net, p.data(), p.objective);
    const std::vector<double> alone = train(in_memory);
    BOOST_TEST((alone != p.controls));
    for (const int parts : {1, 2, 3})
      for (const std::vector<double>& part : in_parts<double>(
               p, shares(p.samples(), parts, draw), 1, [&](Range rows) { return rows_in_memory(p, rows); },
               train))
        BOOST_TEST((part == alone), "method " << method.index() << ", " << parts << " parts");
  }
}

BOOST_AUTO_TEST_CASE(a_part_holds_whole_shards) {
  Draw draw(4);
  const Problem<double> p = large_problem(draw, TargetKind::classes);
  const AddUp nobody = [](std::vector<TreeNode> nodes) { return nodes[0].sums; };
  const Index size = shard_size(p.samples());
  BOOST_CHECK_THROW(
      ShardsEvaluator<double>(p.net, rows_in_memory(p, {0, size - 1}), p.objective, 0, p.samples(), nobody),
      std::invalid_argument);
  BOOST_CHECK_THROW(
      ShardsEvaluator<double>(p.net, rows_in_memory(p, {1, size}), p.objective, 1, p.samples(), nobody),
      std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_callback_loss_that_repeats_a_loss_gives_its_gradient_to_the_bit) {
  Draw draw(5);
  for (int trial = 0; trial < 40; ++trial) {
    const Network net = draw.network("kutta3", Activation::tanh, 4, draw.coin(0.8) ? draw.whole(1, 9) : 100);
    Problem<double> p = draw.problem(net, draw.whole(1, 300), static_cast<TargetKind>(trial % 2));
    const CallbackLoss<double> repeated{
        [&](const double* outputs, Index count, std::span<const Index> rows, double* gradient) {
          BOOST_TEST(rows.empty());
          BOOST_TEST(count == p.samples());
          if (gradient) output_gradient(p.objective, p.data(), net.outputs, outputs, gradient);
          return 1.0;
        },
        [](const double*, Index) { return 0.25; }};
    CallbackLossEvaluator<double> outside(net, p.data(), p.objective.regulariser, repeated);
    SamplesEvaluator<double> inside(net, p.data(), p.objective);
    std::vector<double> gradient(p.controls.size()), expected(p.controls.size());
    outside.evaluate(p.controls.data(), gradient.data(), -1);
    inside.evaluate(p.controls.data(), expected.data(), -1);
    BOOST_TEST((gradient == expected));
    BOOST_TEST(outside.score(p.controls.data()) == 0.25);
  }
}

BOOST_AUTO_TEST_CASE(evaluators_return_the_derivatives_by_the_inputs) {
  Draw draw(14);
  const Problem<double> p = large_problem(draw, TargetKind::classes);
  const Index size = shard_size(p.samples()), width = p.net.row_size();
  const std::vector<double> expected = gradient_of(p).rows;
  std::vector<double> gradient(p.controls.size()), inputs(p.X.size()), of_batch;
  SamplesEvaluator<double> in_memory(p.net, p.data(), p.objective);
  in_memory.differentiate(p.controls.data(), {.controls = gradient.data(), .rows = inputs.data()}, -1);
  BOOST_TEST((inputs == expected));
  const auto alone = [&](std::vector<TreeNode> nodes) {
    return root_of(std::move(nodes), Shards::of(p.samples()).all);
  };
  ShardsEvaluator<double> read(
      p.net, std::make_unique<CopiedRows<double>>(p, Range{0, p.samples()}, size, p.samples()), p.objective,
      0, p.samples(), alone);
  std::fill(inputs.begin(), inputs.end(), 7);
  read.differentiate(p.controls.data(), {.rows = inputs.data()}, -1);
  BOOST_TEST((inputs == expected));

  // Of a batch, in the order of its samples.
  in_memory.cut_into_batches(100, 3);
  read.cut_into_batches(100, 3);
  inputs.assign(static_cast<std::size_t>(100 * width), 7);
  of_batch = inputs;
  in_memory.differentiate(p.controls.data(), {.rows = inputs.data()}, 2);
  read.differentiate(p.controls.data(), {.rows = of_batch.data()}, 2);
  BOOST_TEST((inputs == of_batch));
  const double scale = static_cast<double>(p.samples()) / 100;
  Batches batches(p.samples(), 100, 3);
  const std::span<const Index> rows = batches.at(2);
  for (std::size_t n = 0; n < rows.size(); ++n)
    for (Index i = 0; i < width; ++i) {
      const double batch = inputs[n * static_cast<std::size_t>(width) + static_cast<std::size_t>(i)],
                   all = expected[static_cast<std::size_t>(rows[n] * width + i)];
      BOOST_TEST(std::abs(batch - scale * all) <= 1e-12 * std::abs(batch));
    }
}

BOOST_AUTO_TEST_CASE(batches_cover_every_sample_once_per_epoch) {
  const Index samples = 103;
  Batches batches(samples, 10, 7);
  std::vector<Index> first_epoch, second_epoch, all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), Index(0));
  for (std::int64_t number = 0; number < 22; ++number) {
    const std::span<const Index> batch = batches.at(number);
    auto& seen = number < 11 ? first_epoch : second_epoch;
    seen.insert(seen.end(), batch.begin(), batch.end());
    BOOST_TEST(batch.size() == (number % 11 == 10 ? 3u : 10u));
  }
  BOOST_TEST(first_epoch != second_epoch);
  BOOST_TEST(first_epoch != all);
  std::sort(first_epoch.begin(), first_epoch.end());
  std::sort(second_epoch.begin(), second_epoch.end());
  BOOST_TEST(first_epoch == all);
  BOOST_TEST(second_epoch == all);
}

BOOST_AUTO_TEST_CASE(windows_cover_every_sample_once_per_epoch_from_places_far_apart) {
  Draw draw(13);
  for (int trial = 0; trial < 200; ++trial) {
    const Index samples = draw.whole(1, 700), batch = draw.whole(1, samples), window = draw.whole(1, 800);
    Batches batches(samples, batch, 3, window);
    std::vector<Index> all(static_cast<std::size_t>(samples));
    std::iota(all.begin(), all.end(), Index(0));
    std::int64_t number = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<Index> seen;
      for (; seen.size() < all.size(); ++number) {
        std::vector<Index> at_hand;
        for (const Range& range : batches.ranges_of(batches.window_of(number)))
          for (Index i = range.begin; i < range.end; ++i) at_hand.push_back(i);
        BOOST_TEST(static_cast<Index>(at_hand.size()) < std::max(window, batch) + Batches::ranges_per_window);
        const std::span<const Index> rows = batches.at(number);
        BOOST_TEST(!rows.empty());
        for (const Index row : rows)
          BOOST_TEST((std::find(at_hand.begin(), at_hand.end(), row) != at_hand.end()));
        seen.insert(seen.end(), rows.begin(), rows.end());
      }
      std::sort(seen.begin(), seen.end());
      BOOST_TEST((seen == all), samples << " samples, batches of " << batch << ", a window of " << window);
    }
  }
  const RowRanges first = Batches(1000000, 100, 3, 16000).ranges_of(0);
  BOOST_TEST(first.size() == 16u);
  const auto [low, high] =
      std::minmax_element(first.begin(), first.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  BOOST_TEST(high->begin - low->begin > 500000);
}

BOOST_AUTO_TEST_CASE(the_batches_of_an_epoch_have_the_mean_of_all_samples) {
  Draw draw(6);
  for (const TargetKind kind : {TargetKind::classes, TargetKind::numbers}) {
    Problem<double> p = draw.problem(draw.network("euler", Activation::tanh, 3, 4), 120, kind);
    SamplesEvaluator<double> evaluator(p.net, p.data(), p.objective);
    const double whole = evaluator.evaluate(p.controls.data(), nullptr, -1);
    BOOST_TEST(!evaluator.cut_into_batches(120, 1));
    BOOST_TEST(evaluator.cut_into_batches(30, 1));
    double mean = 0;
    for (std::int64_t batch = 0; batch < 4; ++batch)
      mean += evaluator.evaluate(p.controls.data(), nullptr, batch) / 4;
    BOOST_TEST(mean == whole, boost::test_tools::tolerance(1e-13));
  }
}

BOOST_AUTO_TEST_CASE(constant_targets_have_a_score_of_one_or_zero) {
  const Network net({.features = 1,
                     .dim = 1,
                     .layers = 1,
                     .outputs = 1,
                     .tableau = named("euler"),
                     .activation = Activation::identity});
  const std::vector<double> X(50, 0.0), targets(50, 0.1);
  const Data<double> data{{X.data(), 1}, {nullptr, {targets.data(), 1}}, nullptr, 50};
  SamplesEvaluator<double> evaluator(net, data, {SquaredError(), true, {}});
  BOOST_TEST(evaluator.score(std::vector<double>{0, 0, 1, 0, 0.1}.data()) == 1.0);
  BOOST_TEST(evaluator.score(std::vector<double>{0, 0, 1, 0, 0.2}.data()) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()
