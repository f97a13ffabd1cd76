// Counts allocations for `muster bench`, in the program alone: tests and sanitizers keep the operator new they have.
#include <cstdlib>
#include <new>

#include "bench/process.h"

namespace {

[[maybe_unused]] const bool kCounted = [] {
  muster::bench::allocations_are_counted = true;
  return true;
}();

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  muster::bench::allocations.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

}  // namespace

// The other forms call these.
void* operator new(std::size_t size) { return Counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return Counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
