// Once warm, a step allocates nothing: counted by this binary's own operator new, over every thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <thread>

#include "test/unit/exec/driver.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<uint64_t> allocations{0};

void *allocate(size_t bytes, size_t alignment) {
  if (counting.load(std::memory_order_relaxed))
    allocations.fetch_add(1, std::memory_order_relaxed);
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}
void *allocate_or_throw(size_t bytes, size_t alignment = alignof(std::max_align_t)) {
  if (void *pointer = allocate(bytes, alignment))
    return pointer;
  throw std::bad_alloc();
}
} // namespace

void *operator new(size_t bytes) { return allocate_or_throw(bytes); }
void *operator new[](size_t bytes) { return allocate_or_throw(bytes); }
void *operator new(size_t bytes, std::align_val_t at) { return allocate_or_throw(bytes, static_cast<size_t>(at)); }
void *operator new[](size_t bytes, std::align_val_t at) { return allocate_or_throw(bytes, static_cast<size_t>(at)); }
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return allocate(bytes, alignof(std::max_align_t)); }
void *operator new[](size_t bytes, const std::nothrow_t &) noexcept {
  return allocate(bytes, alignof(std::max_align_t));
}
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete[](void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, size_t) noexcept { std::free(pointer); }
void operator delete[](void *pointer, size_t) noexcept { std::free(pointer); }
void operator delete(void *pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete[](void *pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void *pointer, size_t, std::align_val_t) noexcept { std::free(pointer); }
void operator delete[](void *pointer, size_t, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void *pointer, const std::nothrow_t &) noexcept { std::free(pointer); }
void operator delete[](void *pointer, const std::nothrow_t &) noexcept { std::free(pointer); }

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;

namespace {

class Allocations : public ::testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

TEST_P(Allocations, AStepMakesNoneOnceWarm) {
  plan::testing::TinySpec spec;
  spec.tp = GetParam().first;
  spec.pp = GetParam().second;
  TinyModel model(spec);
  std::atomic<uint64_t> done{0};
  auto executor = model.start([&](const StepBatch &, const LogitsView &, const std::string &) { ++done; });
  std::vector<std::shared_ptr<StepBatch>> batches;
  for (int32_t id = 1; id <= 60; ++id) {
    batches.push_back(std::make_shared<StepBatch>());
    *batches.back() = {static_cast<uint64_t>(id), {id % 50, id % 7}, {0, 0}, {0, 1, 2}, {1, 1}, {0, 1, 2}, {4, 5},
                       {16, 20}, {0, 1}};
  }
  const auto run = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      executor->submit(batches[i]);
    while (done < end)
      std::this_thread::yield();
  };
  run(0, 20);
  allocations = 0;
  counting = true;
  run(20, 60);
  counting = false;
  EXPECT_EQ(allocations, 0u);
}

INSTANTIATE_TEST_SUITE_P(TpPp, Allocations, ::testing::Values(std::pair{1u, 1u}, std::pair{2u, 1u}, std::pair{2u, 2u}));

} // namespace
