// Hopper's warpgroup products, barriers and bulk copies, as functions. Only code built for sm_90a may call the products, code
// for sm_90 and later the others.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace llmrt::cuda {

#define LLMRT_REGS_32 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define LLMRT_OUTS_32 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define LLMRT_REGS_64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define LLMRT_OUTS_64 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
  "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
  "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
  "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])

// d[64 rows, 128] (+)= a[64, 16] · b[128, 16]ᵀ, both in shared memory with k contiguous.
template <typename T> __device__ __forceinline__ void wgmma_ss(float (&d)[64], uint64_t a, uint64_t b, int add) {
#define LLMRT_WGMMA(type)                                                                                              \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " LLMRT_REGS_64 ", %64, %65, p, 1, 1, 0, 0; }" \
               : LLMRT_OUTS_64                                                                                         \
               : "l"(a), "l"(b), "r"(add))
  if constexpr (std::is_same_v<T, __half>)
    LLMRT_WGMMA("f16");
  else
    LLMRT_WGMMA("bf16");
#undef LLMRT_WGMMA
}

// d[64 rows, 128] += a[64, 16] · b[16, 128]; a in registers, b in shared memory with its columns contiguous.
template <typename T> __device__ __forceinline__ void wgmma_rs(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
#define LLMRT_WGMMA(type)                                                                                              \
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " LLMRT_REGS_64 ", {%64,%65,%66,%67}, %68, 1, 1, 1, 1;" \
               : LLMRT_OUTS_64                                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  if constexpr (std::is_same_v<T, __half>)
    LLMRT_WGMMA("f16");
  else
    LLMRT_WGMMA("bf16");
#undef LLMRT_WGMMA
}

// d[64 rows, 64] += a[64, 16] · b[16, 64]; a in registers, b in shared memory with its columns contiguous.
template <typename T> __device__ __forceinline__ void wgmma_rs(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
#define LLMRT_WGMMA(type)                                                                                              \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " LLMRT_REGS_32 ", {%32,%33,%34,%35}, %36, 1, 1, 1, 1;" \
               : LLMRT_OUTS_32                                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  if constexpr (std::is_same_v<T, __half>)
    LLMRT_WGMMA("f16");
  else
    LLMRT_WGMMA("bf16");
#undef LLMRT_WGMMA
}

#undef LLMRT_REGS_32
#undef LLMRT_REGS_64
#undef LLMRT_OUTS_32
#undef LLMRT_OUTS_64

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps reads of the registers behind the wait in front of it.
template <int kCount> __device__ __forceinline__ void hold(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    asm volatile("" : "+f"(d[i])::"memory");
}

// A tile in shared memory: lines of 128 bytes, 16-byte chunks exchanged by the line number modulo 8. `across` is the byte
// distance of the next 64 columns where columns are contiguous (unused otherwise); eight lines are 1024 bytes.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t address, uint32_t across) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | static_cast<uint64_t>((across & 0x3ffff) >> 4) << 16 |
         static_cast<uint64_t>(1024 >> 4) << 32 | static_cast<uint64_t>(1) << 62;
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
// Makes barrier_init() visible to bulk copies.
__device__ __forceinline__ void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Arrives, and lets the phase end no sooner than when `bytes` have been copied.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes) : "memory");
}
// Copies from global to shared memory, behind the calling thread's back; all a multiple of 16.
__device__ __forceinline__ void copy_bulk(uint32_t to, const void *from, int bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ bool barrier_try(uint32_t barrier, int parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
  while (!barrier_try(barrier, parity)) {
  }
}
// Makes ordinary writes to shared memory visible to the tensor cores.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

} // namespace llmrt::cuda
