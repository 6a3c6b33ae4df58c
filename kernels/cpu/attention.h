// Paged KV cache writes and causal attention over it, for ragged batches that mix prefill and decode.
//
// The pool of one layer holds pages of [2 (k, v)][kv_heads][page_size][head_dim]. Keys are visited in
// blocks anchored at their absolute position and partial results merge in that order, so a query's bits
// do not depend on how the prompt was cut into chunks, on the rest of the batch, on the page size, or on
// the number of threads. Softmax is the online one (Milakov & Gimelshein, arXiv:1805.02867).
#pragma once

#include "kernels/cpu/dtype.h"
#include "kernels/cpu/team.h"

namespace llmrt::cpu {

struct KvPool {
  void *base;                // page p starts at base + p * page_stride_bytes
  int64_t page_stride_bytes; // >= 2 * kv_heads * page_size * head_dim * dtype_bytes
  DType dtype;
  int kv_heads;
  int page_size; // tokens in a page
  int head_dim;
};

// Writes the rows k, v of T tokens. Rows whose slot is negative are skipped.
void kv_append(Team &team, const KvPool &pool, const float *k,
               int64_t k_stride,                 // [T, kv_heads, head_dim], row stride in elements
               const float *v, int64_t v_stride, // the same
               const int64_t *slot_mapping,      // [T]: page * page_size + offset, or -1
               int64_t T);

struct PagedAttention {
  const float *q; // [T, q_heads, head_dim], row stride q_stride elements
  int64_t q_stride;
  float *out; // [T, q_heads, head_dim], row stride out_stride elements; must not overlap q
  int64_t out_stride;
  KvPool kv;
  int q_heads;
  const int32_t *kv_head_of_q; // [q_heads]: which local KV head each query head reads
  int num_seqs;
  const int32_t *seq_starts;   // [num_seqs + 1]: rows of sequence s are seq_starts[s] .. seq_starts[s+1]
  const int32_t *context_lens; // [num_seqs]: tokens in KV, the new ones included (already appended)
  const int32_t *page_table;   // [num_seqs, page_table_stride]: page of tokens [i*page_size, (i+1)*page_size)
  int64_t page_table_stride;
  float scale;                  // multiplies q.k
  int window = 0;               // 0: none; else a token sees the last `window` tokens, itself included
  float softcap = 0;            // 0: none; else score = softcap * tanh(score / softcap)
  const float *sinks = nullptr; // [q_heads] or null: one more logit per head, with no value
};

void paged_attention(Team &team, const PagedAttention &p);

// The most scratch that paged_attention() asks of a team, for up to max_tokens rows and contexts up to
// max_context.
size_t attention_scratch_bytes(int team_size, int q_heads, int kv_heads, int head_dim, int64_t max_tokens,
                               int64_t max_context);

} // namespace llmrt::cpu
