// Team: an epoch counter starts a parallel region, a countdown ends it. Both are words that a thread spins
// on briefly and then sleeps on in the kernel; a thread that changes one wakes sleepers only if there are
// any.
#include "kernels/cpu/team.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmrt::cpu {
namespace {

// Threads of all teams of the process: with more of them than cores, waiting threads sleep at once.
std::atomic<int> live_threads{0};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Of the process's mask: taskset's, or a container's.
int allowed_cores() {
  cpu_set_t set;
  return sched_getaffinity(getpid(), sizeof(set), &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
}

int spins() {
  static const int cores = allowed_cores();
  return live_threads.load(std::memory_order_relaxed) <= cores ? 1500 : 20; // about 30 us, or next to nothing
}

// A 32-bit word with futex wait and wake.
struct Word {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};

  // Waits until value differs from `old`; returns the new value.
  uint32_t wait_while(uint32_t old) {
    for (int i = spins(); i > 0; i--) {
      const uint32_t v = value.load(std::memory_order_acquire);
      if (v != old)
        return v;
      pause();
    }
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    uint32_t v;
    while ((v = value.load(std::memory_order_seq_cst)) == old)
      syscall(SYS_futex, reinterpret_cast<uint32_t *>(&value), FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
    return v;
  }
  // After a seq_cst change of value.
  void wake() {
    if (sleepers.load(std::memory_order_seq_cst) != 0)
      syscall(SYS_futex, reinterpret_cast<uint32_t *>(&value), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr,
              nullptr, 0);
  }
};

} // namespace

struct Team::Shared {
  alignas(64) Word epoch;
  Task task = nullptr;
  void *ctx = nullptr;
  bool stop = false;
  alignas(64) Word running; // workers that have not finished the region
  std::vector<std::thread> workers;

  void work(int part, int parts) {
    uint32_t seen = 0;
    for (;;) {
      seen = epoch.wait_while(seen);
      if (stop)
        return;
      task(ctx, part, parts);
      if (running.value.fetch_sub(1, std::memory_order_seq_cst) == 1)
        running.wake();
    }
  }
  void start_region() {
    epoch.value.fetch_add(1, std::memory_order_seq_cst);
    epoch.wake();
  }
  void finish() {
    stop = true;
    start_region();
    for (std::thread &t : workers)
      t.join();
  }
};

Team::Team(int threads) : size_(threads) {
  if (threads < 1)
    throw std::invalid_argument("a team of " + std::to_string(threads) +
                                " threads was asked for; it needs at least 1");
  live_threads.fetch_add(threads, std::memory_order_relaxed);
  if (threads == 1)
    return;
  shared_ = std::make_unique<Shared>();
  try {
    shared_->workers.reserve(static_cast<size_t>(threads - 1));
    for (int part = 1; part < threads; part++)
      shared_->workers.emplace_back([s = shared_.get(), part, threads] { s->work(part, threads); });
  } catch (const std::exception &e) {
    const size_t started = shared_->workers.size() + 1;
    shared_->finish();
    live_threads.fetch_sub(threads, std::memory_order_relaxed);
    throw std::runtime_error("only " + std::to_string(started) + " of " + std::to_string(threads) +
                             " threads of a team could be started (" + e.what() +
                             "); raise the limit on threads or use fewer");
  }
}

Team::~Team() {
  if (shared_)
    shared_->finish();
  live_threads.fetch_sub(size_, std::memory_order_relaxed);
  std::free(scratch_);
}

void Team::run(Task task, void *ctx) {
  Shared &s = *shared_;
  s.task = task;
  s.ctx = ctx;
  s.running.value.store(static_cast<uint32_t>(size_ - 1), std::memory_order_relaxed);
  s.start_region();
  task(ctx, 0, size_);
  uint32_t left = s.running.value.load(std::memory_order_acquire);
  while (left != 0)
    left = s.running.wait_while(left);
}

void *Team::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    const size_t rounded = (bytes + 63) / 64 * 64;
    void *p = std::aligned_alloc(64, rounded);
    if (!p)
      throw std::runtime_error(
          "the CPU kernels need " + std::to_string(rounded) +
          " bytes of scratch, which could not be allocated; lower max_batched_tokens or max_model_len");
    std::free(scratch_);
    scratch_ = p;
    scratch_bytes_ = rounded;
  }
  return scratch_;
}

} // namespace llmrt::cpu
