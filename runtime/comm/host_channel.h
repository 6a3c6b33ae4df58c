// A bounded one-way channel between two ranks of one process. Messages are copied in and out, so the sender goes
// on with its next micro-batch while the receiver is still busy with the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/support/wait_word.h"

namespace llmrt::comm {

// What both ends must agree on, checked with each message.
struct MessageTag {
  uint64_t step = 0;
  uint32_t seq = 0;
  uint64_t rows = 0, row_bytes = 0;
  bool operator==(const MessageTag &) const = default;
};

// One producer thread, one consumer thread. Waiting is the caller's: `put` and `take` are given a functor that
// waits on a WaitWord until it moves past a value, and that throws when the world ends.
class HostChannel {
public:
  // `slots` messages of up to `slot_bytes` bytes each can be under way. Memory is touched when first used.
  HostChannel(uint32_t from, uint32_t to, uint32_t slots, uint64_t slot_bytes);

  uint32_t from() const { return from_; }
  uint32_t to() const { return to_; }
  uint64_t bytes() const { return slots_.size() * slot_bytes_; }
  uint64_t slot_bytes() const { return slot_bytes_; }

  // Copies the rows into a free slot; `wait` runs while there is none.
  template <typename Wait> void put(const MessageTag &tag, const ConstBlock &in, Wait &&wait) {
    while (sent_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_acquire) == slots_.size()) {
      const uint32_t seen = room_.load();
      if (sent_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_acquire) != slots_.size())
        break;
      wait(room_, seen);
    }
    fill(tag, in);
  }

  // Waits for the next message and returns its tag; `empty` then copies it out and frees its slot.
  template <typename Wait> MessageTag front(Wait &&wait) {
    while (sent_.load(std::memory_order_acquire) == taken_.load(std::memory_order_relaxed)) {
      const uint32_t seen = filled_.load();
      if (sent_.load(std::memory_order_acquire) != taken_.load(std::memory_order_relaxed))
        break;
      wait(filled_, seen);
    }
    return slots_[taken_.load(std::memory_order_relaxed) % slots_.size()].tag;
  }
  void empty(const Block &out);

  void close();

private:
  struct Slot {
    MessageTag tag;
    std::unique_ptr<std::byte[]> bytes;
  };

  void fill(const MessageTag &tag, const ConstBlock &in);

  uint32_t from_, to_;
  uint64_t slot_bytes_;
  std::vector<Slot> slots_;
  alignas(64) std::atomic<uint64_t> sent_{0};
  alignas(64) std::atomic<uint64_t> taken_{0};
  WaitWord filled_, room_;
};

} // namespace llmrt::comm
