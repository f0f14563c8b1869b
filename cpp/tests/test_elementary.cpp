#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ocdl/kernel/elementary.hpp"

namespace {

using Scalars = std::tuple<float, double>;

/// The precision in which references are computed.
template <class T>
using Reference = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <class T>
struct Function {
  const char* name;
  ocdl::Pack<T> (*kernel)(ocdl::Pack<T>);
  Reference<T> (*reference)(Reference<T>);
  bool odd = false;
  double bound = 4.5;  ///< in units of the last place
};

/// Of tanh: each multiply-add of the machine spares a rounding.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr double tanh_bound = 3.3;
#else
constexpr double tanh_bound = 3.5;
#endif

template <class T>
const std::vector<Function<T>>& functions() {
  using P = ocdl::Pack<T>;
  using R = Reference<T>;
  static const std::vector<Function<T>> table{
      {"tanh", [](P x) { return ocdl::tanh<T>(x); }, [](R x) { return std::tanh(x); }, true, tanh_bound},
      {"exp", [](P x) { return ocdl::exp<T>(x); }, [](R x) { return std::exp(x); }},
      {"expm1", [](P x) { return ocdl::expm1<T>(x); }, [](R x) { return std::expm1(x); }},
      {"log1p", [](P x) { return ocdl::log1p<T>(x); }, [](R x) { return std::log1p(x); }},
      {"sigmoid", [](P x) { return ocdl::sigmoid<T>(x); },
       [](R x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }},
      {"softplus", [](P x) { return ocdl::softplus<T>(x); },
       [](R x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
      {"softplus_slope", [](P k) { return ocdl::softplus_slope<T>(k); }, [](R k) { return -std::expm1(-k); }},
      {"sine", [](P x) { return ocdl::sincos<T>(x).sine; }, [](R x) { return std::sin(x); }, true},
      {"cosine", [](P x) { return ocdl::sincos<T>(x).cosine; }, [](R x) { return std::cos(x); }}};
  return table;
}

/// Distance in units of the last place of the exact value; subnormal numbers share one unit.
template <class T>
double ulps(T value, Reference<T> exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(value))
    return std::isnan(exact) && std::isnan(value) ? 0 : Limits::infinity();
  if (std::isinf(static_cast<T>(exact)) || std::isinf(value)) {  // one step below infinity is one ulp away
    constexpr T top = Limits::max();
    auto finite = [](Reference<T> x) { return static_cast<T>(std::clamp<Reference<T>>(x, -top, top)); };
    return finite(value) == finite(exact) ? 1 : Limits::infinity();
  }
  int exponent;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, Limits::min_exponent);
  return static_cast<double>(std::abs(value - exact) *
                             std::ldexp(Reference<T>(1), Limits::digits - exponent));
}

/// Results of all values: a full number of packs is computed, the last one padded with zeros.
template <class T>
std::vector<T> apply(const Function<T>& function, std::vector<T> values) {
  const std::size_t count = values.size();
  values.resize((count + ocdl::lanes<T> - 1) / ocdl::lanes<T> * ocdl::lanes<T>);
  for (std::size_t i = 0; i < count; i += ocdl::lanes<T>)
    ocdl::store(values.data() + i, function.kernel(ocdl::load(values.data() + i)));
  values.resize(count);
  return values;
}

/// Every exponent, the ranges in which the functions bend, and both sides of every point where a kernel
/// switches.
template <class T>
std::vector<T> arguments() {
  using Limits = std::numeric_limits<T>;
  std::mt19937_64 random(1);
  std::vector<T> values;
  auto add = [&](double value) {
    values.push_back(static_cast<T>(value));
    values.push_back(static_cast<T>(-value));
  };
  auto add_around = [&](long double value) {
    T near = static_cast<T>(value);
    for (int step = 0; step < 3; ++step) near = std::nextafter(near, -Limits::infinity());
    for (int step = 0; step < 7; ++step, near = std::nextafter(near, Limits::infinity())) add(near);
  };
  std::uniform_real_distribution<double> mantissa(1, 2);
  for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent; ++exponent) {
    add_around(std::ldexp(1.0, exponent));
    for (int i = 0; i < 20; ++i) add(std::ldexp(mantissa(random), exponent));
  }
  for (double range : {0.2, 1.0, 4.0, 25.0, 120.0, 800.0, 1e5, 2e5}) {
    std::uniform_real_distribution<double> within(0, range);
    for (int i = 0; i < 20000; ++i) add(within(random));
  }
  for (int i = 0; i < 4500; ++i) add_around(i * std::numbers::ln2_v<long double> / 4);
  for (int i = 0; i < 2600; ++i) add_around(i * std::numbers::pi_v<long double> / 4);
  for (int i = 100000; i < 130000; ++i) add_around(i * std::numbers::pi_v<long double> / 4);
  for (int i = 1; i < Limits::digits; ++i) add_around(1 - std::ldexp(1.0L, -i));
  add_around(std::numbers::sqrt2_v<long double> - 1);
  return values;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(elementary)

BOOST_AUTO_TEST_CASE_TEMPLATE(error_stays_below_the_stated_bound, T, Scalars) {
  const std::vector<T> values = arguments<T>();
  for (const auto& function : functions<T>()) {
    const std::vector<T> results = apply(function, values);
    double worst = 0;
    T worst_value = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = ulps<T>(results[i], function.reference(values[i]));
      if (error > worst) worst = error, worst_value = values[i];
    }
    BOOST_TEST_MESSAGE(function.name << ": " << worst << " ulp at " << worst_value);
    BOOST_CHECK_MESSAGE(worst <= function.bound,
                        function.name << " is off by " << worst << " ulp at " << worst_value);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(zeros_infinities_and_nan_give_the_limits, T, Scalars) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const std::vector<T> values{T(0), -T(0), infinity, -infinity, std::numeric_limits<T>::quiet_NaN()};
  for (const auto& function : functions<T>()) {
    const std::vector<T> results = apply(function, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T exact = static_cast<T>(function.reference(values[i]));
      const bool same = std::isnan(exact)
                            ? std::isnan(results[i])
                            : results[i] == exact && std::signbit(results[i]) == std::signbit(exact);
      BOOST_CHECK_MESSAGE(same,
                          function.name << '(' << values[i] << ") = " << results[i] << ", not " << exact);
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(subnormal_numbers_are_kept, T, Scalars) {
  constexpr T smallest = std::numeric_limits<T>::denorm_min();
  const std::vector<T> values{smallest, -smallest, 3 * smallest, std::numeric_limits<T>::min() - smallest};
  for (const auto& function : functions<T>())
    for (std::size_t i = 0; i < values.size(); ++i)
      BOOST_CHECK_EQUAL(apply(function, values)[i], static_cast<T>(function.reference(values[i])));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(odd_functions_are_odd_to_the_bit, T, Scalars) {
  const std::vector<T> values = arguments<T>();
  for (const auto& function : functions<T>()) {
    if (!function.odd) continue;
    const std::vector<T> results = apply(function, values);  // values come as x, -x
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) BOOST_REQUIRE_EQUAL(results[i], -results[i + 1]);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(tanh_is_never_above_one_and_its_halves_make_it_up, T, Scalars) {
  const std::vector<T> values = arguments<T>();
  for (std::size_t i = 0; i + ocdl::lanes<T> <= values.size(); i += ocdl::lanes<T>) {
    const ocdl::Pack<T> x = ocdl::load(values.data() + i), whole = ocdl::tanh<T>(x);
    ocdl::ReducedTanh<T> half = ocdl::reduce_tanh<T>(x);
    asm volatile("" : "+m"(half));  // as if it came from memory
    const ocdl::Pack<T> joined = ocdl::finish_tanh<T>(half);
    BOOST_REQUIRE(std::memcmp(&whole, &joined, sizeof whole) == 0);
    for (int lane = 0; lane < ocdl::lanes<T>; ++lane) BOOST_REQUIRE_LE(std::abs(whole[lane]), T(1));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(both_sigmoids_have_all_their_digits, T, Scalars) {
  for (const T x : arguments<T>()) {
    const auto [large, small] = ocdl::two_sigmoids<T>(ocdl::broadcast<T>(x));
    const Reference<T> decay = std::exp(-std::abs(Reference<T>(x)));
    BOOST_REQUIRE_LE(ulps<T>(large[0], 1 / (1 + decay)), 4.5);
    BOOST_REQUIRE_LE(ulps<T>(small[0], decay / (1 + decay)), 4.5);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bits_depend_neither_on_the_lane_nor_on_the_neighbours, T, Scalars) {
  std::vector<T> values = arguments<T>();
  std::shuffle(values.begin(), values.end(), std::mt19937_64(2));
  values.resize(20000);
  for (const auto& function : functions<T>()) {
    const std::vector<T> results = apply(function, values);
    for (int shift = 1; shift < ocdl::lanes<T>; ++shift) {
      const std::vector<T> moved = apply(function, std::vector<T>(values.begin() + shift, values.end()));
      bool same = true;
      for (std::size_t i = 0; i < moved.size(); ++i)
        same =
            same && (std::isnan(moved[i]) ||
                     std::memcmp(&moved[i], &results[i + static_cast<std::size_t>(shift)], sizeof(T)) == 0);
      BOOST_CHECK_MESSAGE(same, function.name << " changes when values move by " << shift << " lanes");
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(slope_from_the_value_of_softplus_is_the_sigmoid, T, Scalars) {
  for (T x = -80; x < 80; x += T(0.0625)) {
    const T slope = ocdl::softplus_slope<T>(ocdl::softplus<T>(ocdl::broadcast<T>(x)))[0];
    BOOST_CHECK_LE(ulps<T>(slope, 1 / (1 + std::exp(-Reference<T>(x)))), 2 * 4.5);
  }
}

BOOST_AUTO_TEST_SUITE_END()
