// A counter that threads wait on: they spin briefly, then sleep in the kernel until it moves. It can be closed for
// good, which wakes every waiter; that is how a failing rank ends the waits of all others.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace llmrt {

// One pause of a spinning thread.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class alignas(64) WaitWord {
public:
  enum class Result { Moved, Closed, TimedOut };

  // The value to hand to wait(). Acquires what the thread that moved it had written.
  uint32_t load() const { return word_.load(std::memory_order_acquire); }
  static bool is_closed(uint32_t value) { return value & 1; }

  // Moves the counter and wakes every waiter. Releases this thread's writes to them.
  void advance();
  // Closes the word: every wait, now and later, returns Closed.
  void close();

  // How to wait before sleeping: for how long, and whether to offer the core to other threads meanwhile (right
  // where threads outnumber cores: the thread waited for may need this very core).
  struct Patience {
    std::chrono::nanoseconds time{0};
    bool yield = false;
  };

  // Returns once the word differs from `seen`, is closed, or `timeout` has passed.
  Result wait(uint32_t seen, Patience patience, std::chrono::nanoseconds timeout);

private:
  void wake();

  std::atomic<uint32_t> word_{0}; // bit 0: closed; the rest counts, and wraps
  std::atomic<uint32_t> sleepers_{0};
};

} // namespace llmrt
