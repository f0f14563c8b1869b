#include <cstdlib>
#include <exception>

#include "wasm/exported.hpp"

/// The compiler for WebAssembly comes without a runtime for exceptions. Whatever the core throws is misuse
/// that it explains: the sentence is kept, the call ends in a trap, and whoever called reads the sentence and
/// puts the stack back. What was allocated meanwhile is lost; a page that is refused a method a hundred times
/// does not notice.
namespace {

const char* thrown = nullptr;

}  // namespace

OCDL_EXPORTED(thrown_message) const char* thrown_message() { return thrown; }
OCDL_EXPORTED(forget_thrown) void forget_thrown() { thrown = nullptr; }

extern "C" {

void* __cxa_allocate_exception(std::size_t size) noexcept { return std::calloc(1, size); }
void __cxa_free_exception(void* exception) noexcept { std::free(exception); }

/// All exceptions of the core are std::exception, which is their first base.
[[noreturn]] void __cxa_throw(void* exception, void*, void (*)(void*)) {
  thrown = static_cast<std::exception*>(exception)->what();
  __builtin_trap();
}
}
