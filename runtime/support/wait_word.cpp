// Spinning and the futex behind WaitWord.
#include "runtime/support/wait_word.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmrt {

using Clock = std::chrono::steady_clock;

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain 32-bit word");

void WaitWord::wake() {
  // Sequentially consistent with wait(): either the sleeper sees the new word, or this thread sees the sleeper.
  if (sleepers_.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void WaitWord::advance() {
  word_.fetch_add(2, std::memory_order_seq_cst);
  wake();
}

void WaitWord::close() {
  word_.fetch_or(1, std::memory_order_seq_cst);
  wake();
}

WaitWord::Result WaitWord::wait(uint32_t seen, Patience patience, std::chrono::nanoseconds timeout) {
  const auto judge = [&](uint32_t value) {
    return is_closed(value) ? Result::Closed : value != seen ? Result::Moved : Result::TimedOut;
  };
  uint32_t value = word_.load(std::memory_order_acquire);
  if (value != seen || is_closed(value))
    return judge(value);
  const auto start = Clock::now();
  while (Clock::now() - start < patience.time) {
    for (int i = 0; i < 8; ++i) {
      if (patience.yield)
        sched_yield();
      else
        spin_pause();
      value = word_.load(std::memory_order_acquire);
      if (value != seen)
        return judge(value);
    }
  }

  const auto deadline = start + timeout;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  Result result = Result::TimedOut;
  while (true) {
    value = word_.load(std::memory_order_seq_cst);
    if (value != seen) {
      result = judge(value);
      break;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      break;
    timespec relative{};
    relative.tv_sec = static_cast<time_t>(left / 1'000'000'000);
    relative.tv_nsec = static_cast<long>(left % 1'000'000'000);
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, &relative, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return result;
}

} // namespace llmrt
