// A team of threads that one rank runs its kernels on: the caller is member 0, the others wait in
// between, spinning for some microseconds before they sleep (ranks can outnumber cores).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace llmrt::cpu {

// One caller at a time; a parallel region must not start another one on the same team, nor throw.
class Team {
public:
  // threads >= 1, the caller included. Throws std::runtime_error when a thread cannot be started.
  explicit Team(int threads);
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  int size() const { return size_; }

  // Runs fn(part, parts) once for each part in [0, parts = size()) and returns when all are done.
  template <class F> void parallel(F &&fn) {
    if (size_ == 1) {
      fn(0, 1);
      return;
    }
    using Fn = std::remove_reference_t<F>;
    run([](void *ctx, int part, int parts) { (*static_cast<Fn *>(ctx))(part, parts); },
        const_cast<void *>(static_cast<const void *>(&fn)));
  }

  // Deals [0, count) out in chunks of `grain` to whoever is free: fn(begin, end, part).
  template <class F> void for_each_chunk(int64_t count, int64_t grain, F &&fn) {
    if (count <= 0)
      return;
    if (size_ == 1 || count <= grain) {
      for (int64_t b = 0; b < count; b += grain)
        fn(b, b + grain < count ? b + grain : count, 0);
      return;
    }
    std::atomic<int64_t> next{0};
    parallel([&](int part, int) {
      for (;;) {
        const int64_t b = next.fetch_add(grain, std::memory_order_relaxed);
        if (b >= count)
          return;
        fn(b, b + grain < count ? b + grain : count, part);
      }
    });
  }

  // A buffer of at least `bytes`, aligned to 64, kept until the next call with a larger size; its
  // contents last only for one kernel. Call it once before serving to reserve the largest need.
  void *scratch(size_t bytes);
  size_t scratch_bytes() const { return scratch_bytes_; }

private:
  using Task = void (*)(void *ctx, int part, int parts);
  struct Shared;
  void run(Task task, void *ctx);

  int size_;
  std::unique_ptr<Shared> shared_;
  void *scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

} // namespace llmrt::cpu
