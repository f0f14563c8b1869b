#include <barrier>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <thread>

#include "ocdl/evaluator/outside_loss.hpp"
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

  std::vector<double> add_up(std::vector<TreeNode> nodes) {
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
  std::vector<double> total_;
};

/// Rows of a problem, as data of their own.
template <class T>
Data<T> rows_of(const Problem<T>& p, Range rows) {
  const Data<T> all = p.data();
  const auto from = [&](const auto* numbers, Index width) {
    return numbers ? numbers + rows.begin * width : nullptr;
  };
  return {from(all.X, p.net.features),
          {from(all.targets.labels, 1), from(all.targets.numbers, p.net.outputs)},
          from(all.weights, 1),
          rows.end - rows.begin};
}

/// Shares of whole shards that follow each other, some of them possibly empty.
std::vector<Range> shares(Index rows, int parts, Draw& draw) {
  std::vector<Index> cuts = {0, shard_count(rows)};
  for (int n = 1; n < parts; ++n) cuts.push_back(draw.whole(0, shard_count(rows)));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Range> found;
  for (std::size_t n = 1; n < cuts.size(); ++n)
    found.push_back(
        {std::min(cuts[n - 1] * shard_size(rows), rows), std::min(cuts[n] * shard_size(rows), rows)});
  return found;
}

/// What body(evaluator) returns in every part.
template <class T, class Body>
std::vector<std::vector<double>> in_parts(const Problem<T>& p, const std::vector<Range>& parts,
                                          const Body& body) {
  Exchange exchange(static_cast<int>(parts.size()), shard_count(p.samples()));
  std::vector<std::vector<double>> results(parts.size());
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < parts.size(); ++n)
    threads.emplace_back([&, n] {
      ThreadLimit::set_here(1);
      ShardsEvaluator<T> evaluator(
          p.net, rows_of(p, parts[n]), p.objective, parts[n].begin, p.samples(),
          [&](std::vector<TreeNode> nodes) { return exchange.add_up(std::move(nodes)); });
      results[n] = body(evaluator);
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

Problem<double> large_problem(Draw& draw, TargetKind kind) {
  Network net(3, 3, 3, 2, named("euler"), Activation::tanh, true, false, true, 1.0);
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
  BOOST_TEST(evaluator.cut_into_batches(100, 3));
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
    std::vector<std::vector<double>> vectors;
    for (Index k = 0; k < count; ++k) vectors.push_back(draw.normals(3));
    std::vector<std::vector<double>> roots;
    for (int trial = 0; trial < 30; ++trial) {
      std::vector<TreeNode> nodes;
      std::size_t largest = 0;
      for (Index begin = 0; begin < count;) {
        const Index end = trial == 0 ? count : draw.whole(begin + 1, count);
        TreeBuilder part(begin);
        for (; begin < end; ++begin) part.add(vectors[static_cast<std::size_t>(begin)]);
        std::vector<TreeNode> own = part.take();
        largest = std::max(largest, own.size());
        nodes.insert(draw.coin() ? nodes.begin() : nodes.end(), own.begin(), own.end());
      }
      BOOST_TEST(double(largest) <= 2 * std::log2(double(count)) + 1);
      roots.push_back(root_of(nodes, count));
      BOOST_TEST(roots.back() == roots.front(), boost::test_tools::per_element());
      if (count > 1) {
        nodes.pop_back();
        BOOST_CHECK_THROW(root_of(nodes, count), std::invalid_argument);
      }
    }
    double sum = 0;
    for (const auto& vector : vectors) sum += vector[0];
    BOOST_TEST(std::abs(roots[0][0] - sum) <= 1e-13 * static_cast<double>(count));
  }
}

BOOST_AUTO_TEST_CASE(a_number_that_is_not_finite_arrives_as_such) {
  std::vector<TreeNode> nodes = {
      {0, 0, {1.0}}, {0, 1, {std::numeric_limits<double>::infinity()}}, {0, 2, {-1.0}}};
  BOOST_TEST(std::isinf(root_of(nodes, 3)[0]));
  nodes[2].vector[0] = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(std::isnan(root_of(nodes, 3)[0]));
}

BOOST_AUTO_TEST_CASE(sums_over_parts_have_the_same_bits_for_any_number_of_parts) {
  Draw draw(2);
  for (const TargetKind kind : {TargetKind::classes, TargetKind::numbers})
    for (int trial = 0; trial < 4; ++trial) {
      const Problem<double> p = large_problem(draw, kind);
      const auto found = [&](const std::vector<Range>& parts) {
        return in_parts<double>(p, parts, [&](auto& evaluator) { return everything(evaluator, p); });
      };
      const std::vector<double> alone = found({{0, p.samples()}})[0];
      for (const int parts : {2, 3, 4, 8})
        for (const std::vector<double>& part : found(shares(p.samples(), parts, draw)))
          BOOST_TEST((part == alone), parts << " parts");
      // The same numbers as those of the samples in memory, but for the order of sums.
      SamplesEvaluator<double> in_memory(p.net, p.data(), p.objective);
      const std::vector<double> plain = everything(in_memory, p);
      BOOST_REQUIRE(plain.size() == alone.size());
      double error = 0, size = 0;
      for (std::size_t n = 0; n < plain.size(); ++n) {
        error = std::max(error, std::abs(plain[n] - alone[n]));
        size = std::max(size, std::abs(plain[n]));
      }
      BOOST_TEST(error <= 1e-12 * size);
    }
}

BOOST_AUTO_TEST_CASE(a_training_over_parts_has_the_same_bits_for_any_number_of_parts) {
  Draw draw(3);
  Problem<double> p = large_problem(draw, TargetKind::classes);
  p.objective = {CrossEntropy(), true, {{Tikhonov{1e-3, {}}}}};
  const std::vector<MethodOptions> methods = {BacktrackingOptions{0.1, 1.5, 0.99, 200},
                                              AdamOptions{0.01, 0.9, 0.999, 1e-8, 64, 1}, LBFGSOptions{5, 25},
                                              NewtonCGOptions{Curvature::hessian, 1.0, 0.5, 5, 25}};
  for (const MethodOptions& method : methods) {
    const auto train = [&](auto& evaluator) {
      Training<double> training(evaluator, p.controls.data(), method, {}, 0.0);
      Watch watch([] { return false; });
      std::vector<TrainingRecord> records(8);
      training.start(watch);
      training.run(8, 1e9, records.data(), watch);
      return training.iterate().controls;
    };
    const std::vector<double> alone = in_parts<double>(p, {{0, p.samples()}}, train)[0];
    BOOST_TEST((alone != p.controls));
    for (const int parts : {2, 3})
      for (const std::vector<double>& part : in_parts<double>(p, shares(p.samples(), parts, draw), train))
        BOOST_TEST((part == alone), "method " << method.index() << ", " << parts << " parts");
  }
}

BOOST_AUTO_TEST_CASE(a_part_holds_whole_shards) {
  Draw draw(4);
  const Problem<double> p = large_problem(draw, TargetKind::classes);
  const AddUp nobody = [](std::vector<TreeNode> nodes) { return nodes[0].vector; };
  const Index size = shard_size(p.samples());
  BOOST_CHECK_THROW(
      ShardsEvaluator<double>(p.net, rows_of(p, {0, size - 1}), p.objective, 0, p.samples(), nobody),
      std::invalid_argument);
  BOOST_CHECK_THROW(
      ShardsEvaluator<double>(p.net, rows_of(p, {1, size}), p.objective, 1, p.samples(), nobody),
      std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_loss_from_outside_that_repeats_one_of_ours_gives_its_gradient_to_the_bit) {
  Draw draw(5);
  for (int trial = 0; trial < 40; ++trial) {
    const Network net = draw.network("kutta3", Activation::tanh, 4, draw.coin(0.8) ? draw.whole(1, 9) : 100);
    Problem<double> p = draw.problem(net, draw.whole(1, 300), static_cast<TargetKind>(trial % 2));
    const OutsideLoss<double> repeated{
        [&](const double* outputs, Index count, std::span<const Index> rows, double* slopes) {
          BOOST_TEST(rows.empty());
          BOOST_TEST(count == p.samples());
          if (slopes) output_slopes(p.objective, p.data(), net.outputs, outputs, slopes);
          return 1.0;
        },
        [](const double*, Index) { return 0.25; }};
    OutsideLossEvaluator<double> outside(net, p.X.data(), p.samples(), p.objective.regulariser, repeated);
    SamplesEvaluator<double> inside(net, p.data(), p.objective);
    std::vector<double> gradient(p.controls.size()), expected(p.controls.size());
    outside.evaluate(p.controls.data(), gradient.data(), -1);
    inside.evaluate(p.controls.data(), expected.data(), -1);
    BOOST_TEST((gradient == expected));
    BOOST_TEST(outside.score(p.controls.data()) == 0.25);
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
  const Network net(1, 1, 1, 1, named("euler"), Activation::identity, true, false, false, 1.0);
  const std::vector<double> X(50, 0.0), targets(50, 0.1);
  const Data<double> data{X.data(), {nullptr, targets.data()}, nullptr, 50};
  SamplesEvaluator<double> evaluator(net, data, {SquaredError(), true, {}});
  BOOST_TEST(evaluator.score(std::vector<double>{0, 0, 1, 0, 0.1}.data()) == 1.0);
  BOOST_TEST(evaluator.score(std::vector<double>{0, 0, 1, 0, 0.2}.data()) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()
