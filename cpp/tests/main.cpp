#define BOOST_TEST_MODULE ocdl
#include <boost/test/included/unit_test.hpp>
