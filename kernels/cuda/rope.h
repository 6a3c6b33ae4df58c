// Rotary embedding, and keys and values on their way to their pages.
#pragma once

#include "kernels/cuda/dtype.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace llmrt::cuda {

struct Rope {
  void *q;              // [T, q_heads, head_dim] act, in place, row stride ld
  void *k;              // [T, kv_heads, head_dim] act, in place
  int64_t ld_q, ld_k;
  const int32_t *positions; // [T]
  const float *inv_freq;    // [rotary_dim / 2]
  const float *q_norm, *k_norm; // [head_dim] f32 or null: RMS norm of each head first
  float attention_factor, eps;
  int64_t T;
  int q_heads, kv_heads, head_dim, rotary_dim;
  bool interleaved;     // pairs (2i, 2i+1); otherwise (i, i + rotary_dim/2)
  DType act;
};
// Angles position * inv_freq are reduced in double where float would lose bits (positions up to 2^20).
void rope(const Rope &p, cudaStream_t stream);

// One layer's pages: page p at base + p * page_stride_bytes holds [2 (k, v)][kv_heads][page_size][head_dim] of `type`.
struct KvPool {
  void *base;
  int64_t page_stride_bytes;
  DType type;
  int kv_heads, page_size, head_dim;
};

struct KvAppend {
  KvPool pool;
  const void *k, *v;    // [T, kv_heads, head_dim] act
  int64_t ld_k, ld_v;
  const int64_t *slot_mapping; // [T] page * page_size + offset; negative: skip
  int64_t T;
  DType act;
};
void kv_append(const KvAppend &p, cudaStream_t stream);

// rope(), then kv_append() of the rotated keys, in one launch: `append` has the k, T and act of `rope`. It reads positions
// and slot_mapping while the kernels launched before it still run: none of those may write them.
void rope_append(const Rope &rope, const KvAppend &append, cudaStream_t stream);

} // namespace llmrt::cuda
