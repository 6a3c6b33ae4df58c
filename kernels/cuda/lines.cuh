// Rows on links that keep lines whole: 128 bytes that a warp stores at once arrive at once, which NVLink does (after NCCL's LL128
// protocol). Of a line's eight chunks seven are the row's, the last is a number that tells the reader that the line is there: no flag
// and no fence is needed behind the rows, and the link carries an eighth more, not twice as much.
#pragma once

#include "kernels/cuda/peers.cuh"
#include "kernels/cuda/sum_rows.cuh"

namespace llmrt::cuda {

// The order of chunks: seven to eight places, and past all at the last.
struct InLines {
  static constexpr int kPlaces = 8, kCarried = 7;
  static __device__ __forceinline__ int chunk_at(int place) {
    return place % kPlaces == kCarried ? kMostRowChunks : place / kPlaces * kCarried + place % kPlaces;
  }
};
constexpr int kLineBytes = InLines::kPlaces * kChunk;
// Of a row of so many chunks.
__host__ __device__ constexpr int lines_of(int chunks) { return (chunks + InLines::kCarried - 1) / InLines::kCarried; }

// This lane's place of a line, once the lines of all lanes carry the number, or the host has given the group up. Whole warps call;
// `there`: whether this lane's line exists.
__device__ __forceinline__ uint4 load_line(const void *from, bool there, uint32_t number, const volatile uint32_t *given_up) {
  uint4 v = make_uint4(0, 0, 0, 0);
  for (unsigned n = 1;; ++n) {
    if (there)
      v = load_volatile(from);
    const bool late = there && threadIdx.x % InLines::kPlaces == InLines::kCarried && v.x != number;
    if (!__any_sync(0xffffffffu, late))
      return v;
    if (n % kSpinsBetweenLooks == 0 && __any_sync(0xffffffffu, *given_up != 0))
      return v;
  }
}

} // namespace llmrt::cuda
