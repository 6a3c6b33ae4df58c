// What the attention kernels share: resolved parameters, asynchronous copies, matrix loads, head groups.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/mma.cuh"

#include <type_traits>

namespace llmrt::cuda {

constexpr int kDecodeRows = 16; // sequences with more rows than this are prefill
constexpr float kLog2e = 1.4426950408889634f;
constexpr int kMaxSplits = 128;

// Like Attention, with what the device needs resolved.
struct AttentionParams {
  void *out;
  int64_t ld_out;
  const void *q;
  int64_t ld_q;
  const void *pool;
  int64_t page_stride; // elements
  int kv_heads, page_size, head_dim, q_heads;
  const uint16_t *kv_head_of_q;
  const int32_t *seq_starts, *context_lens, *page_table;
  int64_t page_table_stride;
  float scale, softcap;
  int window, splits;
  int page_shift; // log2 of page_size, or -1
  bool wide_q;    // rows of q allow 16-byte loads
  bool clustered; // the splits of a sequence are one cluster
  float *partial; // [S * splits][q_heads][kDecodeRows][head_dim + 2]: sums, then maximum and denominator
};

// In one instruction, without what exp2f() does for results too small for a normal float: those are 0.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Copies kBytes (8 or 16) from global to shared memory; zeros where !valid.
template <int kBytes> __device__ __forceinline__ void copy_async(void *to, const void *from, bool valid) {
  const int size = valid ? kBytes : 0;
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(size));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(to)), "l"(from), "r"(size));
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int kPending> __device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}

__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p)));
}

template <int kDim, int kChunk, typename F> void call_with_head_dim(F &f) {
  f(std::integral_constant<int, kDim>(), std::integral_constant<int, kChunk>());
}
// Calls f(kDim, kChunk), integral constants: head_dim rounded up to one that kernels are built for, and the elements that
// they copy at once (8, or 4 where rows are only 8-byte aligned).
template <typename F> void with_head_dim(int head_dim, F &&f) {
  if (head_dim % 8)
    return head_dim <= 112 ? call_with_head_dim<112, 4>(f) : call_with_head_dim<256, 4>(f);
  if (head_dim <= 64)
    call_with_head_dim<64, 8>(f);
  else if (head_dim <= 80)
    call_with_head_dim<80, 8>(f);
  else if (head_dim <= 96)
    call_with_head_dim<96, 8>(f);
  else if (head_dim <= 128)
    call_with_head_dim<128, 8>(f);
  else if (head_dim <= 224)
    call_with_head_dim<224, 8>(f);
  else
    call_with_head_dim<256, 8>(f);
}

// The neighbouring query heads that read a KV head: first and how many.
__device__ __forceinline__ void find_group(const AttentionParams &p, int kv_head, int &first, int &count) {
  int lo = p.q_heads, n = 0;
  for (int h = threadIdx.x & 31; h < p.q_heads; h += 32)
    if (p.kv_head_of_q[h] == kv_head) {
      lo = min(lo, h);
      ++n;
    }
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    lo = min(lo, __shfl_xor_sync(0xffffffffu, lo, offset));
    n += __shfl_xor_sync(0xffffffffu, n, offset);
  }
  first = lo, count = n;
}

constexpr int kAttentionCounters = 160 * kDecodeRows; // in front of the workspace, zero between calls; the parts follow
static_assert(kAttentionCounters * sizeof(float) == kAttentionKept);

// Parts that the workspace holds: two blocks a multiprocessor (160 are more than any device has) and two a sequence.
inline int64_t attention_parts(int64_t seqs) { return 2 * 160 + 2 * seqs; }

// Decode attention of the step's sequences with at most kDecodeRows rows (attention_decode.cu).
template <typename T> void decode_attention(const Attention &a, AttentionParams p, cudaStream_t stream);
size_t decode_shared_bytes(int head_dim); // what a block of it needs

// The same for even groups of query heads and usual shapes (attention_balanced.cu); false where it does not apply.
template <typename T> bool balanced_decode(const Attention &a, const AttentionParams &p, cudaStream_t stream);

// Prefill of the sequences with more rows, for Hopper (attention_hopper.cu); false where it does not apply.
template <typename T> bool hopper_prefill(const Attention &a, const AttentionParams &p, cudaStream_t stream);

} // namespace llmrt::cuda
