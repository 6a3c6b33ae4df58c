// Hopper's warpgroup products, barriers and bulk copies, as functions. Only code built for sm_90a may call the products, code
// for sm_90 and later the others.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace llmrt::cuda {

// The operand lists of inline assembly: "%t0,%t1,…,%t9" (t may be empty) and "+f"(d[i]), … of eight registers.
#define LLMRT_TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9"
#define LLMRT_EIGHT(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define LLMRT_OUTS_16 LLMRT_EIGHT(0), LLMRT_EIGHT(8)
#define LLMRT_OUTS_32 LLMRT_OUTS_16, LLMRT_EIGHT(16), LLMRT_EIGHT(24)
#define LLMRT_OUTS_40 LLMRT_OUTS_32, LLMRT_EIGHT(32)
#define LLMRT_OUTS_48 LLMRT_OUTS_40, LLMRT_EIGHT(40)
#define LLMRT_OUTS_56 LLMRT_OUTS_48, LLMRT_EIGHT(48)
#define LLMRT_OUTS_64 LLMRT_OUTS_56, LLMRT_EIGHT(56)
#define LLMRT_OUTS_72 LLMRT_OUTS_64, LLMRT_EIGHT(64)
#define LLMRT_OUTS_80 LLMRT_OUTS_72, LLMRT_EIGHT(72)
#define LLMRT_OUTS_88 LLMRT_OUTS_80, LLMRT_EIGHT(80)
#define LLMRT_OUTS_96 LLMRT_OUTS_88, LLMRT_EIGHT(88)
#define LLMRT_OUTS_112 LLMRT_OUTS_96, LLMRT_EIGHT(96), LLMRT_EIGHT(104)
#define LLMRT_REGS_32 "{" LLMRT_TEN() "," LLMRT_TEN(1) "," LLMRT_TEN(2) ",%30,%31}"
#define LLMRT_FIFTY LLMRT_TEN() "," LLMRT_TEN(1) "," LLMRT_TEN(2) "," LLMRT_TEN(3) "," LLMRT_TEN(4)
#define LLMRT_HUNDRED LLMRT_FIFTY "," LLMRT_TEN(5) "," LLMRT_TEN(6) "," LLMRT_TEN(7) "," LLMRT_TEN(8) "," LLMRT_TEN(9)
#define LLMRT_FORTY LLMRT_TEN() "," LLMRT_TEN(1) "," LLMRT_TEN(2) "," LLMRT_TEN(3)
#define LLMRT_REGS_40 "{" LLMRT_FORTY "}"
#define LLMRT_REGS_48 "{" LLMRT_FORTY ",%40,%41,%42,%43,%44,%45,%46,%47}"
#define LLMRT_REGS_80 "{" LLMRT_FIFTY "," LLMRT_TEN(5) "," LLMRT_TEN(6) "," LLMRT_TEN(7) "}"
#define LLMRT_REGS_96 "{" LLMRT_FIFTY "," LLMRT_TEN(5) "," LLMRT_TEN(6) "," LLMRT_TEN(7) "," LLMRT_TEN(8) ",%90,%91,%92,%93,%94,%95}"
#define LLMRT_REGS_56 "{" LLMRT_FIFTY ",%50,%51,%52,%53,%54,%55}"
#define LLMRT_REGS_64 "{" LLMRT_FIFTY "," LLMRT_TEN(5) ",%60,%61,%62,%63}"
#define LLMRT_REGS_72 "{" LLMRT_FIFTY "," LLMRT_TEN(5) "," LLMRT_TEN(6) ",%70,%71}"
#define LLMRT_REGS_112 "{" LLMRT_HUNDRED "," LLMRT_TEN(10) ",%110,%111}"

// d[64 rows, kColumns] (+)= a[64, 16] · b[kColumns, 16]ᵀ, both in shared memory with k contiguous. kColumns is 2 · kCount.
template <typename T, int kCount> __device__ __forceinline__ void wgmma_ss(float (&d)[kCount], uint64_t a, uint64_t b, int add) {
#define LLMRT_WGMMA(count, columns, type, at_a, at_b, at_add)                                                          \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #at_add ", 0; wgmma.mma_async.sync.aligned.m64n" #columns            \
               "k16.f32." type "." type " " LLMRT_REGS_##count ", %" #at_a ", %" #at_b ", p, 1, 1, 0, 0; }"            \
               : LLMRT_OUTS_##count                                                                                    \
               : "l"(a), "l"(b), "r"(add))
#define LLMRT_WGMMA_TYPES(count, columns, at_a, at_b, at_add)                                                          \
  else if constexpr (kCount == count && std::is_same_v<T, __half>)                                                     \
    LLMRT_WGMMA(count, columns, "f16", at_a, at_b, at_add);                                                            \
  else if constexpr (kCount == count)                                                                                  \
    LLMRT_WGMMA(count, columns, "bf16", at_a, at_b, at_add)
  if constexpr (kCount == 0) {
  }
  LLMRT_WGMMA_TYPES(32, 64, 32, 33, 34);
  LLMRT_WGMMA_TYPES(40, 80, 40, 41, 42);
  LLMRT_WGMMA_TYPES(48, 96, 48, 49, 50);
  LLMRT_WGMMA_TYPES(56, 112, 56, 57, 58);
  LLMRT_WGMMA_TYPES(64, 128, 64, 65, 66);
  LLMRT_WGMMA_TYPES(72, 144, 72, 73, 74);
  LLMRT_WGMMA_TYPES(80, 160, 80, 81, 82);
  LLMRT_WGMMA_TYPES(96, 192, 96, 97, 98);
  LLMRT_WGMMA_TYPES(112, 224, 112, 113, 114);
  else static_assert(kCount < 0, "no such product");
#undef LLMRT_WGMMA_TYPES
#undef LLMRT_WGMMA
}

// d[64 rows, kColumns] += a[64, 16] · b[16, kColumns]; a in registers, b in shared memory with its columns contiguous.
template <typename T, int kCount> __device__ __forceinline__ void wgmma_rs(float (&d)[kCount], const uint32_t (&a)[4], uint64_t b) {
#define LLMRT_WGMMA(count, columns, type, operands)                                                                    \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type " " LLMRT_REGS_##count ", " operands \
               ", 1, 1, 1, 1;"                                                                                         \
               : LLMRT_OUTS_##count                                                                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  constexpr bool kHalf = std::is_same_v<T, __half>;
  static_assert(kCount == 32 || kCount == 64, "no such product");
  if constexpr (kCount == 64 && kHalf)
    LLMRT_WGMMA(64, 128, "f16", "{%64,%65,%66,%67}, %68");
  else if constexpr (kCount == 64)
    LLMRT_WGMMA(64, 128, "bf16", "{%64,%65,%66,%67}, %68");
  else if constexpr (kHalf)
    LLMRT_WGMMA(32, 64, "f16", "{%32,%33,%34,%35}, %36");
  else
    LLMRT_WGMMA(32, 64, "bf16", "{%32,%33,%34,%35}, %36");
#undef LLMRT_WGMMA
}

// d[64 rows, 128] (+)= a[64, 16] · b[128, 16]ᵀ; a in registers, b in shared memory with k contiguous.
template <typename T> __device__ __forceinline__ void wgmma_rs(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int add) {
#define LLMRT_WGMMA(type)                                                                                              \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type     \
               " " LLMRT_REGS_64 ", {%64,%65,%66,%67}, %68, p, 1, 1, 0; }"                                             \
               : LLMRT_OUTS_64                                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))
  if constexpr (std::is_same_v<T, __half>)
    LLMRT_WGMMA("f16");
  else
    LLMRT_WGMMA("bf16");
#undef LLMRT_WGMMA
}

#undef LLMRT_TEN
#undef LLMRT_EIGHT
#undef LLMRT_OUTS_16
#undef LLMRT_OUTS_32
#undef LLMRT_OUTS_40
#undef LLMRT_OUTS_48
#undef LLMRT_OUTS_56
#undef LLMRT_OUTS_64
#undef LLMRT_OUTS_72
#undef LLMRT_OUTS_80
#undef LLMRT_OUTS_88
#undef LLMRT_OUTS_96
#undef LLMRT_OUTS_112
#undef LLMRT_FORTY
#undef LLMRT_FIFTY
#undef LLMRT_HUNDRED
#undef LLMRT_REGS_32
#undef LLMRT_REGS_40
#undef LLMRT_REGS_48
#undef LLMRT_REGS_56
#undef LLMRT_REGS_64
#undef LLMRT_REGS_72
#undef LLMRT_REGS_80
#undef LLMRT_REGS_96
#undef LLMRT_REGS_112

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
// distance of the next 64 columns where columns are contiguous (unused otherwise), `down` that of the next eight lines.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t address, uint32_t across, uint32_t down = 1024) {
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | static_cast<uint64_t>((across & 0x3ffff) >> 4) << 16 |
         static_cast<uint64_t>(down >> 4) << 32 | static_cast<uint64_t>(1) << 62;
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

// Has the copy engine read a tensor map that it will need.
__device__ __forceinline__ void prefetch_map(const void *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// The copy engine brings the box at (x, y, …) of a tensor map to shared memory and tells `barrier`.
__device__ __forceinline__ void copy_box(uint32_t to, const void *map, int x, int y, uint32_t barrier, uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(barrier), "l"(policy)
               : "memory");
}
__device__ __forceinline__ void copy_box(uint32_t to, const void *map, int x, int y, int z, int w, uint32_t barrier, uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "l"(policy)
               : "memory");
}
__device__ __forceinline__ void copy_box(uint32_t to, const void *map, int x, int y, int z, int w, int v, uint32_t barrier, uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(barrier), "l"(policy)
               : "memory");
}

__device__ __forceinline__ void copy_box(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier, uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier), "l"(policy)
               : "memory");
}
// The same for the blocks of the cluster that `blocks` has a bit for: to the same place in each, whose own barrier is told.
__device__ __forceinline__ void copy_box_to(uint16_t blocks, uint32_t to, const void *map, int x, int y, uint32_t barrier, uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(blocks), "l"(policy)
               : "memory");
}
__device__ __forceinline__ void copy_box_to(uint16_t blocks, uint32_t to, const void *map, int x, int y, int z, int w, int v, uint32_t barrier,
                                            uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8, %9;" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "r"(barrier), "h"(blocks), "l"(policy)
               : "memory");
}
// The copy engine takes a box from shared memory to (x, y) of a tensor map; what lies beyond the array is left out.
__device__ __forceinline__ void store_box(const void *map, int x, int y, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
}
__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until the calling thread's stores have read what they store, or have been done.
__device__ __forceinline__ void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void wait_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Makes ordinary writes to shared memory visible to the tensor cores and the copy engine.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

} // namespace llmrt::cuda
