// The row blocks of a step's prefill attention, and the order in which they are dealt to the blocks of a smaller grid.
#pragma once

#include "kernels/cuda/attention.cuh"

namespace llmrt::cuda {

// Rows (token * group + head) of one sequence and KV head, as those who work on them need to know them.
struct RowBlock {
  int start, first_head, group, rows; // the sequence's first token; the query heads of a token; rows of the whole sequence
  int row0, past, begin, tiles;       // first row; tokens before the sequence's first; first key, and tiles of keys; none: no work
  int seq, kv_head, context, none;    // tokens in all; nothing
};

// Finds the row block of a number. Blocks of the most rows before them, which see the most keys, come first, so that all ends
// together: of 32 sequences at a time, for those are what shares the L2 cache; of one KV head after the other where not even
// their keys and values fit there. Called by a whole warp, with numbers that only grow.
template <int kRows, int kTile> class RowBlocks {
public:
  __device__ RowBlocks(const AttentionParams &p, int seqs, int max_group) : p_(p), seqs_(seqs), max_group_(max_group) {}

  // False: there is none of that number, nor of a larger one. A block without tiles: that number has no rows.
  __device__ bool find(int number, RowBlock &block) {
    const int lane = threadIdx.x % 32;
    uint32_t longer; // sequences that have blocks at this level
    for (;;) {
      while (level_ < 0)
        if (!next_level())
          return false;
      // Levels down to `below` have the same sequences.
      longer = __ballot_sync(0xffffffffu, blocks_ > level_);
      const int below = __reduce_max_sync(0xffffffffu, blocks_ > level_ ? 0 : blocks_), each = __popc(longer) * heads_;
      const int skip = (number - before_) / each, levels = level_ - below + 1;
      if (skip < levels) {
        before_ += skip * each, level_ -= skip;
        break;
      }
      before_ += levels * each, level_ = below - 1;
    }
    const int at = number - before_, rank = __popc(longer & ((1u << lane) - 1));
    const int from = __ffs(__ballot_sync(0xffffffffu, longer >> lane & 1 && rank == at / heads_)) - 1;
    block.seq = first_ + from, block.kv_head = head_ + at % heads_;
    const int queries = __shfl_sync(0xffffffffu, queries_, from);
    block.context = __shfl_sync(0xffffffffu, context_, from);
    block.start = __shfl_sync(0xffffffffu, start_, from);
    find_group(p_, block.kv_head, block.first_head, block.group);
    block.rows = queries * block.group, block.row0 = level_ * kRows, block.past = block.context - queries;
    block.begin = p_.window ? max(0, block.past + block.row0 / block.group - p_.window + 1) / kTile * kTile : 0;
    const int end = block.past + min(queries - 1, (block.row0 + kRows - 1) / block.group) + 1;
    block.tiles = block.rows <= kDecodeRows || block.row0 >= block.rows ? 0 : (end - block.begin + kTile - 1) / kTile;
    return true;
  }

private:
  // The longest blocks of the next KV heads, or of the next sequences that have any; false: there are none.
  __device__ bool next_level() {
    const int lane = threadIdx.x % 32;
    head_ += heads_;
    if (head_ < p_.kv_heads)
      return level_ = top_, true;
    constexpr int kAhead = 4; // sets of 32 sequences looked at together: most have only sequences that decode
    for (first_ += 32; first_ < seqs_; first_ += kAhead * 32) {
      int starts[kAhead], ends[kAhead], contexts[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        const int i = min(first_ + j * 32 + lane, seqs_ - 1);
        starts[j] = p_.seq_starts[i], ends[j] = p_.seq_starts[i + 1], contexts[j] = p_.context_lens[i];
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        const int rows = first_ + j * 32 + lane < seqs_ && contexts[j] > 0 ? (ends[j] - starts[j]) * max_group_ : 0;
        if (__any_sync(0xffffffffu, rows > kDecodeRows)) {
          first_ += j * 32;
          start_ = starts[j], queries_ = ends[j] - starts[j], context_ = contexts[j];
          blocks_ = rows > kDecodeRows ? (rows + kRows - 1) / kRows : 0;
          top_ = level_ = __reduce_max_sync(0xffffffffu, blocks_) - 1;
          const int64_t keys = __reduce_add_sync(0xffffffffu, blocks_ ? context_ : 0);
          head_ = 0, heads_ = keys * p_.kv_heads * p_.head_dim * 4 <= kTogether ? p_.kv_heads : 1;
          return true;
        }
      }
    }
    return false;
  }

  static constexpr int64_t kTogether = 24 << 20; // bytes of keys and values: half of an H200's L2 cache

  const AttentionParams &p_;
  int seqs_, max_group_;
  int first_ = -32, start_ = 0, queries_ = 0, context_ = 0, blocks_ = 0; // sequence first_ + lane
  int head_ = 1 << 30, heads_ = 0, level_ = -1, top_ = -1, before_ = 0;  // before_: number of the level's first block
};

} // namespace llmrt::cuda
