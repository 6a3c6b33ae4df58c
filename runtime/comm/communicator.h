// What a rank sees of the other ranks: collectives over groups, and point-to-point messages. The plan gives every
// operation a sequence number; an implementation never lets a lost rank become a silent hang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/support/error.h"

namespace llmrt::comm {

// Thrown on every rank of a world that has ended: by a rank that failed, by a deadline, by ranks that disagree
// about what comes next. The sentence is the same on all of them.
class Aborted : public Error {
public:
  explicit Aborted(const std::string &why) : Error(why) {}
};

// `rows` rows of `row_bytes` bytes each, `stride` bytes apart.
struct Block {
  void *data = nullptr;
  size_t rows = 0;
  size_t row_bytes = 0;
  size_t stride = 0;
};
struct ConstBlock {
  const void *data = nullptr;
  size_t rows = 0;
  size_t row_bytes = 0;
  size_t stride = 0;
};

// The communicator of one rank; used by that rank's thread alone, but for abort(). Operations block until this
// rank's part is done: then its buffers may be reused. Groups and ranks are indices of the plan. An operation
// over no rows does nothing on any member. All throw Aborted.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual uint32_t rank() const = 0;

  // Names the step in error messages, and ties the operations of all ranks to the same step.
  virtual void begin_step(uint64_t step) = 0;

  // data[rows, cols] = sum over the group, in place, added in group order: the same bits on every member and in
  // every run, and each row's bits independent of the other rows. `stride` in floats.
  virtual void all_reduce(uint32_t group, uint32_t seq, float *data, size_t rows, size_t cols, size_t stride) = 0;

  // out[rows, sum of part_bytes]: the columns of all members in group order; part_bytes[i] bytes of each row come
  // from member i. `in` is this member's part; it may lie at its place in `out`, but not elsewhere in it.
  virtual void all_gather(uint32_t group, uint32_t seq, const Block &out, const ConstBlock &in,
                          std::span<const uint64_t> part_bytes) = 0;

  // As all_gather, but only the member at position `root` of the group receives; `out` is ignored elsewhere.
  virtual void gather(uint32_t group, uint32_t seq, uint32_t root, const Block &out, const ConstBlock &in,
                      std::span<const uint64_t> part_bytes) = 0;

  // The n-th send to a peer meets the peer's n-th receive from here. send returns once the rows are copied out.
  virtual void send(uint32_t peer, uint32_t seq, const ConstBlock &in) = 0;
  virtual void recv(uint32_t peer, uint32_t seq, const Block &out) = 0;

  // Tells the others that this rank lives: it has finished some piece of work. Deadlines count from the last sign
  // of life of any rank. Throws Aborted if the world has ended.
  virtual void beat() = 0;

  // Ends the whole world with this sentence; the first one stands. Callable from any thread.
  virtual void abort(const std::string &why) = 0;
};

} // namespace llmrt::comm
