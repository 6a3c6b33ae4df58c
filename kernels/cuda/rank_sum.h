// Sums over the ranks of one machine.
#pragma once

#include "kernels/cuda/dtype.h"
#include "kernels/cuda/peers.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

struct PeerSum {
  void *data;           // [T, H] act: out
  int64_t ld;
  const void *parts[kMaxPeers]; // each rank's [T, H], in group order, readable from this device
  int64_t ld_parts[kMaxPeers];
  int count;
  int64_t T, H;
  DType act;
};
// data = sum of parts in order, in f32: the same bits on every rank. `data` must be none of the parts.
void peer_sum(const PeerSum &p, cudaStream_t stream);

// In place sum over a group whose members can write each other's memory: the same bits on every rank. With norm.out:
// residual += sum, out = RMSNorm(residual) · (weight + offset), and data is left as it was. Every member must make the same
// calls in the same order, each with inboxes of the same shape; inboxes and state begin as zeros. The kernels of the
// members wait for each other: each must be able to start whatever the others do, so every member needs its own device.
struct RankSum {
  void *data; // [T, H] act, rows ld apart, 16-byte aligned
  int64_t ld, T, H;
  DType act;
  int rank, count;        // position in the group, members
  void *inbox[kMaxPeers]; // of each member, written by all
  uint32_t *state;        // two words of device memory of this rank and group
  uint32_t number;        // told to the host while the sum is under way
  struct {
    void *out, *residual;
    const float *weight;
    int64_t ld_out, ld_residual;
    float eps, weight_offset;
  } norm;
  struct { // pinned host memory
    uint32_t *at;                      // `number` of the last sum begun
    const volatile uint32_t *given_up; // not 0: stop waiting for the others; the sum is then worthless
  } host;
};

// Whether rows of H elements, ld apart, are of a form that these sums carry.
bool one_shot_takes(int64_t H, int64_t ld, DType act);

// Rings of long messages in a rank's inbox: from every other member a source, for each of so many blocks some rows of slot_bytes, then
// their flags; and behind all sources, from counts_offset on, how many rows went through each block's.
struct RingShape {
  int64_t slot_bytes = 0, blocks = 0, flags_offset = 0, source_bytes = 0, counts_offset = 0;
  int64_t bytes() const { return counts_offset + blocks * 4; }
};
// In one shot: every member pushes its rows to all others. Where messages lie in a rank's inbox: two turns of `turn_bytes`, in each
// of which every member of the group has `source_bytes`, for the pairs of short messages and, from lines_offset on, for lines; then
// the rings of long ones, if there are any.
struct InboxShape {
  int64_t lines_offset = 0, source_bytes = 0, turn_bytes = 0, ring_offset = 0;
  RingShape ring;
  int64_t bytes() const { return ring_offset + ring.bytes(); }
};
// Messages of up to so much to all others carry their signal with them: in pairs, or in lines where the links keep those whole;
// the shortest in pairs all the same.
inline constexpr int64_t kPairsBytes = 512 << 10, kLinesBytes = 2 << 20, kShortBytes = 64 << 10;
// Whether 128 bytes that a warp of one device stores at once to the other's memory arrive at once: so they do over NVLink, which is
// known by its atomics, and within a device.
bool whole_lines_between(int a, int b);

// An inbox for messages of up to `most_bytes` and `most_rows` of up to `most_row_bytes` from each of `count` members.
InboxShape one_shot_inbox(int count, int64_t most_bytes, int64_t most_row_bytes, int64_t most_rows);
struct OneShot : RankSum {
  InboxShape box;
  bool whole_lines; // between all members; the same on every member
};
void one_shot_all_reduce(const OneShot &p, cudaStream_t stream);

// In two shots: row t is summed by member t % count, to which the others push theirs, and pushed by it to all. An inbox has two
// turns; in each, what every member sends for the rows that this one sums (source_bytes each: rows, then their flags at
// flags_offset), and from results_offset on the sums of all rows, with their flags at result_flags_offset.
struct TwoShotShape {
  int64_t flags_offset = 0, source_bytes = 0, results_offset = 0, result_flags_offset = 0, turn_bytes = 0;
  int64_t bytes() const { return 2 * turn_bytes; }
};
// For messages of up to `most_bytes` in rows of up to `most_row_bytes`, and up to `most_rows`.
TwoShotShape two_shot_inbox(int count, int64_t most_bytes, int64_t most_row_bytes, int64_t most_rows);
struct TwoShot : RankSum {
  TwoShotShape box;
};
void two_shot_all_reduce(const TwoShot &p, cudaStream_t stream);

} // namespace llmrt::cuda
