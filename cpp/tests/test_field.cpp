#include <boost/test/unit_test.hpp>
#include <numeric>

#include "ocdl/field/field.hpp"
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

/// A field of this kind: of a width that is no multiple of a panel's, or of a degree that fits the dimension.
Field<double> field_of(FieldKind kind, Index dim, Activation activation) {
  const std::string_view option = traits_of(kind).option;
  return {kind,
          {dim, activation, option == "width" ? 2 * dim + 3 : 0,
           option == "degree" ? (dim < 5    ? 3
                                 : dim < 20 ? 2
                                            : 1)
                              : 0}};
}

/// How many numbers a field takes at one stage.
template <class T>
Index stage_size(const Field<T>& field) {
  Index size = 0;
  for (const FieldPart& part : field.parts()) size += size_of(part);
  return size;
}

/// So many numbers, seen by the parts.
template <class E, class T, class Numbers>
StageControls<E> stage_view(const Field<T>& field, Numbers& numbers) {
  StageControls<E> controls;
  E* next = numbers.data();
  std::size_t p = 0;
  for (const FieldPart& part : field.parts()) {
    controls.parts[p++] = next;
    next += size_of(part);
  }
  return controls;
}

/// Planes of so many tiles that own their memory.
template <class T>
class OwnedPlanes {
 public:
  OwnedPlanes(Index count, Index rows, Index tiles)
      : numbers(static_cast<std::size_t>(count * rows * tiles * tile_width<T>)), rows_(rows), tiles_(tiles) {}
  OwnedPlanes(std::vector<T> values, Index rows, Index tiles)
      : numbers(std::move(values)), rows_(rows), tiles_(tiles) {}

  std::vector<T> numbers;

  Plane<T> plane() { return {numbers.data(), rows_, tiles_}; }
  Planes<T> planes() { return {plane(), rows_ * tiles_ * tile_width<T>}; }

 private:
  Index rows_, tiles_;
};

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

BOOST_AUTO_TEST_CASE(the_vjp_is_the_transpose_of_the_jvp) {
  Draw draw(2);
  std::vector<double> product(static_cast<std::size_t>(panel::scratch_size<double>()));
  for_each_kind([&](FieldKind kind) {
    if (traits_of(kind).is_mapped) return;
    for (std::size_t n = 0; n < activations.size(); ++n)
      for (const Index dim : {1, 2, 3, 4, 5, 9, 40, 50}) {
        if (traits_of(kind).needs_even_dim && dim % 2) continue;
        const Field<double> field = field_of(kind, dim, static_cast<Activation>(n));
        const Index tiles = 3, size = dim * tiles * tile_width<double>, hidden_rows = field.hidden().rows;
        const std::vector<double> controls = draw.normals(stage_size(field)),
                                  direction = draw.normals(stage_size(field));
        const auto random = [&] { return OwnedPlanes<double>(draw.normals(size), dim, tiles); };
        const auto empty = [&](Index count, Index rows) { return OwnedPlanes<double>(count, rows, tiles); };
        auto y = random(), v = random(), g = random();
        auto k = empty(1, dim), tangent = empty(1, dim), work = empty(1, dim), eta = empty(1, dim),
             state_cotangent = empty(1, dim), hidden = empty(field.hidden().count, hidden_rows),
             hidden_work = empty(2, hidden_rows), hidden_cotangent = empty(1, hidden_rows);
        std::vector<double> gradient(controls.size());
        const auto u = stage_view<const double>(field, controls),
                   du = stage_view<const double>(field, direction);
        std::vector<double> panels(
            static_cast<std::size_t>(panel::transposed_size<double>(std::max(dim, hidden_rows), tiles)));
        const ThreadSlice<double> all(tiles);
        const StagePlanes<double> at{k.plane(), field.hidden().count ? hidden.planes() : Planes<double>()};
        field.evaluate(u, y.plane(), at, {}, all, product.data());
        field.jvp(u, du, y.plane(), at, v.plane(), tangent.plane(), {hidden_work.planes(), work.plane()}, all,
                  product.data());
        LinearCombination<double> cotangent(g.plane()), state(y.plane());
        const CotangentPlanes<double> cotangents{hidden_cotangent.plane(), state_cotangent.plane()};
        field.vjp(u, at, 1.0, cotangent, cotangents, eta.plane(), all, product.data());
        field.control_gradient(cotangents, state, at, all, false, stage_view<double>(field, gradient),
                               panels.data());
        double left = 0, right = 0, magnitude = 0;
        const auto add = [&](double& sum, const std::vector<double>& a, const std::vector<double>& c) {
          for (std::size_t i = 0; i < a.size(); ++i) {
            sum += a[i] * c[i];
            magnitude += std::abs(a[i] * c[i]);
          }
        };
        add(left, g.numbers, tangent.numbers);
        add(right, eta.numbers, v.numbers);
        add(right, gradient, direction);
        BOOST_TEST(std::abs(left - right) <= 1e-14 * magnitude,
                   activations[n].name << ", dimension " << dim << ", " << traits_of(kind).name);
      }
  });
}

BOOST_AUTO_TEST_CASE(the_map_of_a_fields_controls_and_its_transpose) {
  Draw draw(3);
  constexpr Index dim = 5;
  for_each_kind([&](FieldKind kind) {
    if (!traits_of(kind).is_mapped) return;
    const Field<double> field = field_of(kind, dim, Activation::tanh);
    const Index size = stage_size(field);
    const std::vector<double> u = draw.normals(size), G = draw.normals(size);
    std::vector<double> mapped(u.size()), back = G;
    field.map_controls(stage_view<const double>(field, u), stage_view<double>(field, mapped));
    field.transpose_map(stage_view<double>(field, back));
    const auto vector = [&](const std::vector<double>& v) {
      return VectorView<const double>(v.data(), size);
    };
    BOOST_TEST(vector(G).dot(vector(mapped)) == vector(back).dot(vector(u)),
               boost::test_tools::tolerance(1e-14));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(narrow_states_have_the_bits_of_the_general_way, T, Scalars) {
  Draw draw(5);
  for (Index dim = 1; dim <= max_narrow_dim; ++dim)
    for (std::size_t n = 0; n < activations.size(); ++n)
      for (const int terms : {0, 1, 3}) {
        const auto activation = static_cast<Activation>(n);
        const Index tiles = draw.whole(1, 70), size = dim * tiles * tile_width<T>;
        const auto random = [&] {
          const std::vector<double> drawn = draw.normals(size, 1);
          return OwnedPlanes<T>(std::vector<T>(drawn.begin(), drawn.end()), dim, tiles);
        };
        const Field<T> field(FieldKind::dense, {dim, activation});
        const std::vector<double> drawn = draw.normals(dim * (dim + 1), 1);
        const std::vector<T> numbers(drawn.begin(), drawn.end());
        const auto u = stage_view<const T>(field, numbers);
        auto y = random();
        OwnedPlanes<T> stages[3] = {random(), random(), random()};
        auto state = y, k = y, slope = y, next = y, fused_k = y, fused_slope = y, fused_next = y, power = y,
             completed = y;
        LinearCombination<T> sum(y.plane(), state.plane()), advance(y.plane(), next.plane());
        for (int l = 0; l < terms; ++l) sum.add(T(0.3) * T(l + 1), stages[l].plane());
        for (int l = 0; l < terms; ++l) advance.add(T(0.1) * T(l + 1), stages[l].plane());
        NarrowDense<T>{dim, activation}.evaluate(u, sum, {fused_k.plane(), fused_slope.planes()},
                                                 power.plane(), {&advance, T(0.7), fused_next.plane()});
        field.evaluate(u, sum.result(), {k.plane(), slope.planes()}, {&advance, T(0.7), completed.plane()},
                       ThreadSlice<T>(tiles), nullptr);
        advance.add(T(0.7), k.plane());
        advance.write();
        BOOST_TEST(fused_k.numbers == k.numbers, activations[n].name << " in dimension " << dim);
        BOOST_TEST(fused_slope.numbers == slope.numbers);
        BOOST_TEST(fused_next.numbers == next.numbers);
        BOOST_TEST(completed.numbers == next.numbers);
      }
}

BOOST_AUTO_TEST_SUITE_END()
