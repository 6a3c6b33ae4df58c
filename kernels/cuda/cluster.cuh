// What the blocks of a cluster say to each other: where the others are, stores to their shared memory that tell a barrier there,
// and a meeting in two halves. Only code for sm_90 and later may call these.
#pragma once

#include <cstdint>

namespace llmrt::cuda {

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// The address, in the shared memory of block `rank`, of what this block has at `address`.
__device__ __forceinline__ uint32_t of_block(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

// Stores to another block; its barrier, one of that block too, counts the bytes that have arrived.
__device__ __forceinline__ void send(uint32_t to, uint32_t value, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(value), "r"(barrier) : "memory");
}
__device__ __forceinline__ void send(uint32_t to, float2 v, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to), "r"(__float_as_uint(v.x)),
               "r"(__float_as_uint(v.y)), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void send(uint32_t to, float4 v, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
               "r"(__float_as_uint(v.x)), "r"(__float_as_uint(v.y)), "r"(__float_as_uint(v.z)), "r"(__float_as_uint(v.w)), "r"(barrier)
               : "memory");
}
// The copy engine takes `bytes`, a multiple of 16, from this block's shared memory to another's, whose barrier counts them. What it
// reads has been made visible to it (fence_async()), and stays until it has arrived.
__device__ __forceinline__ void send_bulk(uint32_t to, uint32_t from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}
// Until all that the barrier was told to expect has come from other blocks.
__device__ __forceinline__ void wait_for_blocks(uint32_t barrier, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
}

// Arrives at a barrier of any block of the cluster. What the thread has written it does not publish: a release for all the
// cluster is a fence for the whole GPU, a microsecond each time.
__device__ __forceinline__ void arrive_at(uint32_t barrier_there) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier_there) : "memory");
}

// Every thread of the cluster arrives, and later waits for all the others to have arrived.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
// The same for who has published already what the others are to see, or has nothing to publish: without a fence for the whole GPU.
__device__ __forceinline__ void cluster_arrive_only() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

} // namespace llmrt::cuda
