// How kernels of ranks that can write each other's memory signal and wait: flags, words that carry a signal along, and
// spinning that the host can end.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llmrt::cuda {

constexpr unsigned kSpinsBetweenLooks = 1u << 12;

__device__ __forceinline__ void store_volatile(void *to, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ __forceinline__ uint4 load_volatile(const void *from) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from) : "memory");
  return v;
}

// What the block's threads wrote before a barrier in front of this is seen by whoever sees the flag.
__device__ __forceinline__ void store_flag(uint32_t *to, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ __forceinline__ uint32_t load_flag(const uint32_t *from) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}

// Spins until `arrived()`; false when the host has given the group up.
template <typename F> __device__ __forceinline__ bool spin(const volatile uint32_t *given_up, F &&arrived) {
  for (unsigned n = 1; !arrived(); ++n)
    if (n % kSpinsBetweenLooks == 0 && *given_up)
      return false;
  return true;
}

} // namespace llmrt::cuda
