#include "test/unit/sched/failing_new.h"

#include <cstdlib>
#include <new>

namespace llmrt::test {

std::atomic<bool> allocation_failed = false;

namespace {

thread_local int left = 0; // allocations until the one that fails; 0: none does

void *allocate(size_t bytes, size_t alignment) {
  if (left > 0 && --left == 0) {
    allocation_failed = true;
    throw std::bad_alloc();
  }
  void *found = alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                                                             : std::malloc(bytes ? bytes : 1);
  if (!found)
    throw std::bad_alloc();
  return found;
}

} // namespace

void fail_allocation(int at) { left = at; }

} // namespace llmrt::test

using llmrt::test::allocate;

void *operator new(size_t bytes) { return allocate(bytes, 0); }
void *operator new[](size_t bytes) { return allocate(bytes, 0); }
void *operator new(size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<size_t>(alignment)); }
void *operator new[](size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<size_t>(alignment)); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete[](void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
void operator delete[](void *p, size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, size_t, std::align_val_t) noexcept { std::free(p); }
