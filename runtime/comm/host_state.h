// The memory that ranks of one process share for their collectives. Private to runtime/comm.
//
// A group meets in two ways. In a small collective the member that arrives last does the whole work and then
// releases the others: one meeting. In a large one all arrive, each does its share (reads all, writes all, on
// elements that only it touches), and all meet again before anyone goes on. Which member does what never changes
// a result: sums are elementwise, in group order.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/comm/host_channel.h"
#include "runtime/comm/host_world.h"

namespace llmrt::comm {

enum class Kind : uint8_t { None, AllReduce, AllGather, Gather, Send, Recv };
const char *kind_name(Kind kind);

// One operation as a rank describes it. Members of a group must agree on all but data and strides.
struct Call {
  Kind kind = Kind::None;
  uint32_t seq = 0;
  uint32_t root = 0; // Gather
  uint64_t step = 0;
  uint64_t rows = 0;
  uint64_t row_bytes = 0; // of the result
  const void *in = nullptr;
  size_t in_stride = 0; // bytes
  void *out = nullptr;
  size_t out_stride = 0; // bytes
  uint64_t part_offset = 0, part_bytes = 0; // this member's columns of the result, for gathers

  bool agrees(const Call &other) const {
    return kind == other.kind && seq == other.seq && root == other.root && step == other.step &&
           rows == other.rows && row_bytes == other.row_bytes;
  }
};
std::string describe(const Call &call); // "all_reduce 7 of step 12 (4 rows of 2304 bytes)"

struct alignas(64) Member {
  Call call;
  std::atomic<uint32_t> arrivals{0}; // operations this member has come to
};

struct Group {
  std::string name;
  std::vector<uint32_t> ranks;
  std::vector<Member> members;
  alignas(64) std::atomic<uint32_t> arrived{0};
  WaitWord phase;
};

struct TraceEntry {
  Kind kind = Kind::None;
  uint32_t seq = 0, with = 0; // group or peer
  uint64_t step = 0, rows = 0, row_bytes = 0;
};

// What belongs to one rank; padded so that signs of life cost no shared line.
struct alignas(64) RankState {
  std::atomic<uint64_t> beats{0};
  // Ring of the latest operations, newest at (count - 1) % size; written by the rank, read after a failure.
  std::mutex trace_mutex;
  std::array<TraceEntry, 8> trace;
  uint64_t traced = 0;
};

struct HostState {
  std::chrono::nanoseconds timeout{};
  WaitWord::Patience patience;
  uint64_t small_bytes = 0; // collectives up to this size are done by the member that comes last
  bool trace = false;
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<HostChannel>> channels;
  std::vector<RankState> ranks;

  std::atomic<bool> dead{false};
  mutable std::mutex reason_mutex;
  std::string reason;

  explicit HostState(uint32_t rank_count) : ranks(rank_count) {}

  void abort(const std::string &why);
  [[noreturn]] void throw_aborted() const;
  uint64_t life_signs() const;

  // Waits until `word` leaves `seen`; on a standstill of `timeout` ends the world with `standstill()`.
  template <typename Sentence> void wait(WaitWord &word, uint32_t seen, Sentence &&standstill) {
    uint64_t signs = life_signs();
    while (true) {
      switch (word.wait(seen, patience, timeout)) {
      case WaitWord::Result::Moved:
        return;
      case WaitWord::Result::Closed:
        throw_aborted();
      case WaitWord::Result::TimedOut:
        if (const uint64_t now = life_signs(); now != signs) {
          signs = now;
          continue;
        }
        abort(standstill());
        throw_aborted();
      }
    }
  }
};

} // namespace llmrt::comm
