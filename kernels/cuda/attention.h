// Attention over pages.
#pragma once

#include "kernels/cuda/rope.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace llmrt::cuda {

// Rows (new tokens times query heads on a KV head) of the longest sequence from which on Hopper's prefill works in pairs of blocks.
inline constexpr int64_t kPairRows = 16384;

struct Attention {
  void *out;            // [T, q_heads, head_dim] act
  int64_t ld_out;
  const void *q;        // [T, q_heads, head_dim] act
  int64_t ld_q;
  KvPool pool;
  const uint16_t *kv_head_of_q; // [q_heads], device: any grouping in which equal entries are neighbours
  const int32_t *seq_starts;    // [S + 1], device
  const int32_t *context_lens;  // [S], device: tokens in the pages, this step's included; 0: a padded row
  const int32_t *page_table;    // [S, page_table_stride], device
  int64_t page_table_stride;
  int64_t T;
  int S, q_heads;
  int max_group;        // largest number of query heads on one KV head
  int max_query;        // largest number of new tokens of a sequence in this step, known to the host
  int max_context;      // largest context length, or a bound on it (graphs: max_model_len)
  float scale;
  int window;           // 0: none; else a token sees the last `window` tokens, itself included
  float softcap;        // 0: none
  DType act;
  void *workspace;      // attention_workspace_bytes() bytes, zeroed once before the first call
  int64_t pair_rows = kPairRows; // tests ask for fewer
};
// Causal attention of ragged batches over pages; online softmax in f32. Any head_dim up to 256; slow in f32, of others than multiples of 4,
// and where a block's shared memory is too small for the head_dim.
// It reads seq_starts, context_lens, page_table and the keys and values of tokens before this step's while the kernels
// launched before it still run: none of those may write them, other than kv_append() at this step's tokens.
void attention(const Attention &p, cudaStream_t stream);

// Workspace for any step of at most max_tokens tokens and max_seqs sequences. Its first kAttentionKept bytes are zero between
// calls; the others are free for whoever wants them then.
inline constexpr size_t kAttentionKept = 10240;
size_t attention_workspace_bytes(int64_t max_tokens, int max_seqs, int q_heads, int head_dim);

} // namespace llmrt::cuda
