#define BOOST_TEST_MODULE ocdl
#include <atomic>
#include <boost/test/included/unit_test.hpp>
#include <cstdlib>
#include <new>

#include "tests/allocation_counter.hpp"

namespace {
std::atomic<long> count{0};
}

long allocation_count() { return count.load(); }

void* operator new(std::size_t size) {
  ++count;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
