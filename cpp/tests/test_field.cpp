#include <boost/test/unit_test.hpp>
#include <numeric>

#include "ocdl/field/field.hpp"
#include "ocdl/field/field_map.hpp"
#include "ocdl/field/narrow_dense.hpp"
#include "tests/random_problem.hpp"

using namespace ocdl;
using ocdl::testing::Draw;

namespace {

using Scalars = std::tuple<float, double>;

template <class F>
void for_each_kind(const F& f) {
  for (std::size_t n = 0; n < fields.size(); ++n) f(static_cast<FieldKind>(n));
}

Index size_of(const FieldPart& part) {
  return std::accumulate(part.shape.begin(), part.shape.end(), Index(1), std::multiplies<>());
}

/// How many numbers a field takes at one stage.
Index stage_size(FieldKind kind, Index dim) {
  Index size = 0;
  for (const FieldPart& part : field_parts(kind, dim)) size += size_of(part);
  return size;
}

/// So many numbers, seen by the parts.
template <class E, class Numbers>
StageControls<E> stage_view(FieldKind kind, Index dim, Numbers& numbers) {
  std::array<E*, most_field_parts> starts{};
  E* next = numbers.data();
  std::size_t p = 0;
  for (const FieldPart& part : field_parts(kind, dim)) {
    starts[p++] = next;
    next += size_of(part);
  }
  return {starts, dim};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(field)

BOOST_AUTO_TEST_CASE(the_slope_of_an_activation_is_its_complex_step) {
  Draw draw(1);
  for (std::size_t n = 0; n < activations.size(); ++n) {
    const auto activation = static_cast<Activation>(n);
    std::vector<double> z = draw.normals(64, 3), one(64, 1), slope(64), result(64);
    std::vector<std::complex<double>> step(z.begin(), z.end());
    for (auto& x : step) x += std::complex<double>(0, 1e-40);
    activate<std::complex<double>>(activation, step.data(), nullptr, 64);
    activate(activation, z.data(), slope.data(), 64);
    multiply_by_slope(activation, z.data(), slope.data(), 1.0, one.data(), result.data(), 64);
    for (std::size_t i = 0; i < 64; ++i)
      BOOST_TEST(std::abs(result[i] - step[i].imag() / 1e-40) <= 1e-14, activations[n].name << " at " << i);
  }
}

BOOST_AUTO_TEST_CASE(kinks_have_the_slope_of_their_left_side_at_zero_and_keep_nan) {
  const Index size = tile_width<double>;
  for (const auto& [activation, left] :
       {std::pair{Activation::relu, 0.0}, std::pair{Activation::leaky_relu, leak}}) {
    std::vector<double> z(static_cast<std::size_t>(size), 0.0), one(z.size(), 1.0), slope(z.size());
    z[1] = std::numeric_limits<double>::quiet_NaN();
    activate<double>(activation, z.data(), slope.data(), size);
    multiply_by_slope<double>(activation, z.data(), slope.data(), 1.0, one.data(), slope.data(), size);
    BOOST_TEST(z[0] == 0.0);
    BOOST_TEST(std::isnan(z[1]));
    BOOST_TEST(slope[0] == left);
  }
}

BOOST_AUTO_TEST_CASE(the_pull_back_is_the_transpose_of_the_push_forward) {
  Draw draw(2);
  std::vector<double> product(static_cast<std::size_t>(panel::scratch_size<double>()));
  for_each_kind([&](FieldKind kind) {
    if (is_mapped(kind)) return;
    for (std::size_t n = 0; n < activations.size(); ++n)
      for (const Index dim : {1, 2, 3, 4, 5, 9, 40, 50}) {
        if (facts_of(kind).needs_even_dim && dim % 2) continue;
        const Field<double> field{kind, dim, static_cast<Activation>(n)};
        const Index tiles = 3, size = field.run(tiles);
        const std::vector<double> controls = draw.normals(stage_size(kind, dim)),
                                  direction = draw.normals(stage_size(kind, dim)), y = draw.normals(size),
                                  v = draw.normals(size), g = draw.normals(size);
        const auto plane = [&] { return std::vector<double>(static_cast<std::size_t>(size)); };
        std::vector<double> k = plane(), pushed = plane(), scratch = plane(), delta = plane(),
                            rotated = plane(), eta = plane(), details(static_cast<std::size_t>(2 * size));
        std::vector<double> gradient(controls.size());
        const auto u = stage_view<const double>(kind, dim, controls),
                   du = stage_view<const double>(kind, dim, direction);
        std::vector<double> panels(static_cast<std::size_t>(panel::transposed_size<double>(dim, tiles)));
        const StagePlanes<double> at{k.data(), details.data(), size};
        field.evaluate(u, y.data(), at, {}, tiles, product.data());
        field.push_forward(u, du, y.data(), at, v.data(), pushed.data(), scratch.data(), tiles,
                           product.data());
        Combination<double> cotangent(g.data(), nullptr, size), state(y.data(), nullptr, size);
        field.pull_back(u, at, 1.0, cotangent, delta.data(), rotated.data(), eta.data(), tiles,
                        product.data());
        field.control_gradient(delta.data(), rotated.data(), state, details.data(), tiles, false,
                               stage_view<double>(kind, dim, gradient), panels.data());
        double left = 0, right = 0, magnitude = 0;
        const auto add = [&](double& sum, const std::vector<double>& a, const std::vector<double>& c) {
          for (std::size_t i = 0; i < a.size(); ++i) {
            sum += a[i] * c[i];
            magnitude += std::abs(a[i] * c[i]);
          }
        };
        add(left, g, pushed);
        add(right, eta, v);
        add(right, gradient, direction);
        BOOST_TEST(std::abs(left - right) <= 1e-14 * magnitude,
                   activations[n].name << ", dimension " << dim << ", " << facts_of(kind).name);
      }
  });
}

BOOST_AUTO_TEST_CASE(the_map_of_a_fields_controls_and_its_transpose) {
  Draw draw(3);
  constexpr Index dim = 5;
  for_each_kind([&](FieldKind kind) {
    if (!is_mapped(kind)) return;
    const Index size = stage_size(kind, dim);
    const std::vector<double> u = draw.normals(size), G = draw.normals(size);
    std::vector<double> mapped(u.size()), back = G;
    map_controls<double>(kind, stage_view<const double>(kind, dim, u), stage_view<double>(kind, dim, mapped));
    transpose_map<double>(kind, stage_view<double>(kind, dim, back));
    const auto vector = [&](const std::vector<double>& v) {
      return VectorView<const double>(v.data(), size);
    };
    BOOST_TEST(vector(G).dot(vector(mapped)) == vector(back).dot(vector(u)),
               boost::test_tools::tolerance(1e-14));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(narrow_states_have_the_bits_of_the_general_way, T, Scalars) {
  Draw draw(5);
  for (Index dim = 1; dim <= most_narrow_dim; ++dim)
    for (std::size_t n = 0; n < activations.size(); ++n)
      for (const int terms : {0, 1, 3}) {
        const auto activation = static_cast<Activation>(n);
        const Index tiles = draw.whole(1, 70), size = dim * tiles * tile_width<T>;
        const auto plane = [&] {
          const std::vector<double> numbers = draw.normals(size, 1);
          return std::vector<T>(numbers.begin(), numbers.end());
        };
        const std::vector<double> drawn = draw.normals(dim * (dim + 1), 1);
        const std::vector<T> numbers(drawn.begin(), drawn.end()), y = plane(),
                                                                  stages[3] = {plane(), plane(), plane()};
        const auto u = stage_view<const T>(FieldKind::dense, dim, numbers);
        std::vector<T> state(y), k(y), slope(y), next(y), fused_k(y), fused_slope(y), fused_next(y), power(y),
            completed(y);
        Combination<T> sum(y.data(), state.data(), size), advance(y.data(), next.data(), size);
        for (int l = 0; l < terms; ++l) sum.add(T(0.3) * T(l + 1), stages[l].data());
        for (int l = 0; l < terms; ++l) advance.add(T(0.1) * T(l + 1), stages[l].data());
        NarrowDense<T>{dim, activation}.evaluate(u, sum, fused_k.data(), fused_slope.data(), power.data(),
                                                 {&advance, T(0.7), fused_next.data()}, tiles);
        Dense<T>{dim, activation}.evaluate(u, sum.result(), k.data(), slope.data(),
                                           {&advance, T(0.7), completed.data()}, tiles);
        advance.add(T(0.7), k.data());
        advance.write();
        BOOST_TEST(fused_k == k, activations[n].name << " in dimension " << dim);
        BOOST_TEST(fused_slope == slope);
        BOOST_TEST(fused_next == next);
        BOOST_TEST(completed == next);
      }
}

BOOST_AUTO_TEST_SUITE_END()
