// Products of up to 64 rows and large weights on Hopper: the weight is streamed once, by all multiprocessors alike.
//
// A block computes tiles of 128 weight rows (the M side of the warpgroup products) by all input rows (the N side, padded to
// kBatch). One warp has the copy engine fill a ring of stages of 64 k each, the first weights before the previous kernel has
// ended; two warpgroups of 64 weight rows multiply.
//
// The k blocks of all tiles are one line of work, cut into equal stretches (stream-K: Osama et al., 2023), so that no
// multiprocessor is idle in a last round. Where a cut falls into a tile, the parts in front of it go to a workspace and the
// block that has the tile's end adds them, in fixed order. Every block computes the part that it gives away first: who waits,
// waits for blocks started before it, and hardly ever.
//
// Results leave transposed through shared memory, in whole lines. A gated product takes gate and up rows in turns of eight into
// one tile, so that the columns of both are at hand when a line leaves.
#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/mma.cuh"

#ifdef LLMRT_HOPPER
#include "kernels/cuda/tensor_map.h"

#include <algorithm>
#endif

namespace llmrt::cuda {

namespace {

constexpr int kRows = 128, kBlockK = 64;
constexpr int kConsumers = 256, kThreads = kConsumers + 32;

} // namespace

size_t wide_parts_bytes() { return static_cast<size_t>(device_limits().sms) * kRows * kWideMaxRows * sizeof(float); }

bool wide_linear_applies(const Linear &p, bool gated) {
#ifdef LLMRT_HOPPER
  const auto aligned = [](const void *data, int64_t ld) { return reinterpret_cast<uintptr_t>(data) % 16 == 0 && ld % 8 == 0; };
  return device_limits().major == 9 && device_limits().sms <= kWideFlags && p.M <= kWideMaxRows && p.act != DType::f32 &&
         p.act == p.weight_type && p.act == p.out_type && p.N % (gated ? 16 : 8) == 0 && p.N < 1 << 30 && p.K < 1 << 30 &&
         aligned(p.weight, p.K) && aligned(p.input, p.ld_input) && aligned(p.out, p.ld_out);
#else
  (void)p, (void)gated;
  return false;
#endif
}

#ifdef LLMRT_HOPPER

namespace {

struct WideParams {
  CUtensorMap weight, input;
  void *out;
  int64_t ld_out;
  const float *bias;
  float4 *parts;   // of each block
  uint32_t *flags; // of each block: 1 while its part is there
  int M, N;        // N of the weight: twice the output's where it is gated
  int k_blocks, tiles;
  bool gated;
  Activation kind;
};

__device__ __forceinline__ uint32_t load_acquire(const uint32_t *from) {
  uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ void store_release(uint32_t *to, uint32_t v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}
__device__ __forceinline__ void sync_consumers() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// A stretch of one tile's k blocks.
struct Piece {
  int tile, begin, end;
};

// Where the stretch of a block begins in the line of work.
__device__ __forceinline__ int64_t stretch_begin(const WideParams &p, int64_t block) {
  return static_cast<int64_t>(p.tiles) * p.k_blocks * block / gridDim.x;
}

// The pieces of this block, from the end of its stretch to the beginning.
struct Stretch {
  int k_blocks, begin, end;
  __device__ explicit Stretch(const WideParams &p)
      : k_blocks(p.k_blocks), begin(static_cast<int>(stretch_begin(p, blockIdx.x))),
        end(static_cast<int>(stretch_begin(p, blockIdx.x + 1))) {}
  __device__ bool more() const { return begin < end; }
  __device__ Piece next() {
    const int tile = (end - 1) / k_blocks, from = max(begin, tile * k_blocks);
    const Piece piece = {tile, from - tile * k_blocks, end - tile * k_blocks};
    end = from;
    return piece;
  }
};

// The k blocks of the stretch, one by one.
struct Cursor {
  Stretch stretch;
  Piece at{};
  bool more = true;
  __device__ explicit Cursor(const WideParams &p) : stretch(p) { take(); }
  __device__ void take() {
    more = stretch.more();
    if (more)
      at = stretch.next();
  }
  __device__ void next() {
    if (++at.begin == at.end)
      take();
  }
};

template <typename T, int kBatch> struct Wide {
  static constexpr int kWeightBytes = kRows * kBlockK * 2, kStageBytes = kWeightBytes + kBatch * kBlockK * 2;
  static constexpr int kLinesBytes = kBatch * 128; // results of 64 weight rows, one for each warpgroup
  static constexpr int kFit = (226 * 1024 - 1024 - 256 - 2 * kLinesBytes) / kStageBytes, kStages = kFit < 10 ? kFit : 10;
  static constexpr size_t kBytes = 1024 + kStages * kStageBytes + 2 * kLinesBytes + kStages * 16; // aligned by hand
  static constexpr int kQuads = kBatch / 8; // of a thread's sums: eight input rows each
  using Sums = float[kBatch / 2];           // of a thread; as warpgroup products leave them

  static __device__ __forceinline__ void fetch_weight(const WideParams &p, const Piece &at, uint32_t stage, uint32_t full) {
    barrier_expect(full, kStageBytes);
    if (p.gated)
      copy_box(stage, &p.weight, at.begin * kBlockK, 0, 0, at.tile * (kRows / 16), full, kEvictFirst);
    else
      copy_box(stage, &p.weight, at.begin * kBlockK, at.tile * kRows, full, kEvictFirst);
  }
  static __device__ __forceinline__ void fetch_input(const WideParams &p, const Piece &at, uint32_t stage, uint32_t full) {
    copy_box(stage + kWeightBytes, &p.input, at.begin * kBlockK, 0, full, kEvictLast);
  }

  static __device__ void produce(const WideParams &p, uint32_t stages, uint32_t full, uint32_t empty) {
    Cursor early(p);
    for (int s = 0; s < kStages && early.more; ++s, early.next())
      fetch_weight(p, early.at, stages + s * kStageBytes, full + s * 8);
    wait_for_previous();
    Cursor c(p);
    for (int s = 0; s < kStages && c.more; ++s, c.next())
      fetch_input(p, c.at, stages + s * kStageBytes, full + s * 8);
    for (int s = 0, use = 1; c.more; c.next()) {
      barrier_wait(empty + s * 8, use & 1 ^ 1);
      fetch_weight(p, c.at, stages + s * kStageBytes, full + s * 8);
      fetch_input(p, c.at, stages + s * kStageBytes, full + s * 8);
      if (++s == kStages)
        s = 0, ++use;
    }
  }

  // Leaves this block's part of a tile for the block that has the end of it.
  static __device__ __forceinline__ void give(const WideParams &p, const Sums &sums) {
    float4 *mine = p.parts + blockIdx.x * (kQuads * kConsumers) + threadIdx.x;
#pragma unroll
    for (int q = 0; q < kQuads; ++q)
      __stcg(mine + q * kConsumers, make_float4(sums[q * 4], sums[q * 4 + 1], sums[q * 4 + 2], sums[q * 4 + 3]));
    __threadfence();
    sync_consumers();
    if (threadIdx.x == 0)
      store_release(p.flags + blockIdx.x, 1);
  }

  // Adds the parts of the blocks that have the beginning of the tile.
  static __device__ __forceinline__ void take(const WideParams &p, int tile, Sums &sums) {
    const int64_t start = static_cast<int64_t>(tile) * p.k_blocks;
    int first = static_cast<int>(start * gridDim.x / (static_cast<int64_t>(p.tiles) * p.k_blocks));
    while (stretch_begin(p, first + 1) <= start)
      ++first;
    const int last = static_cast<int>(blockIdx.x);
    for (int b = first + static_cast<int>(threadIdx.x); b < last; b += kConsumers)
      while (load_acquire(p.flags + b) == 0) {
      }
    sync_consumers();
    for (int b = first; b < last; ++b) {
      const float4 *part = p.parts + b * (kQuads * kConsumers) + threadIdx.x;
#pragma unroll
      for (int q = 0; q < kQuads; ++q) {
        const float4 v = __ldcg(part + q * kConsumers);
        sums[q * 4] += v.x, sums[q * 4 + 1] += v.y, sums[q * 4 + 2] += v.z, sums[q * 4 + 3] += v.w;
      }
    }
    sync_consumers();
    for (int b = first + static_cast<int>(threadIdx.x); b < last; b += kConsumers)
      p.flags[b] = 0; // for the next product
  }

  static __device__ __forceinline__ void add_bias(const WideParams &p, int tile, Sums &sums) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = p.N / 2;
    const int row = tile * kRows + warp * 16 + lane / 4, column = tile * (kRows / 2) + warp * 8 + lane / 4;
    const int low = p.gated ? column : row, high = p.gated ? half + column : row + 8;
    const float b0 = low < (p.gated ? half : p.N) ? p.bias[low] : 0.0f, b1 = high < p.N ? p.bias[high] : 0.0f;
#pragma unroll
    for (int q = 0; q < kQuads; ++q)
      sums[q * 4] += b0, sums[q * 4 + 1] += b0, sums[q * 4 + 2] += b1, sums[q * 4 + 3] += b1;
  }

  // Eight columns of a line in shared memory: as they are, or activation(gate) * up.
  static __device__ __forceinline__ uint4 columns(const WideParams &p, const char *line, int chunk, int swap) {
    if (!p.gated)
      return *reinterpret_cast<const uint4 *>(line + (chunk ^ swap) * 16);
    Eight<T> gate, up;
    gate.load(reinterpret_cast<const T *>(line + (chunk * 2 ^ swap) * 16));
    up.load(reinterpret_cast<const T *>(line + (chunk * 2 + 1 ^ swap) * 16));
    uint32_t out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      out[i] = pack<T>(activate(p.kind, gate.v[i * 2]) * up.v[i * 2], activate(p.kind, gate.v[i * 2 + 1]) * up.v[i * 2 + 1]);
    return make_uint4(out[0], out[1], out[2], out[3]);
  }

  static __device__ __forceinline__ void write(const WideParams &p, int tile, const Sums &sums, char *both_lines) {
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    char *lines = both_lines + group * kLinesBytes;
    // Where this lane's row of a matrix goes: lines are input rows, chunks eight weight rows, exchanged by the line.
    const int to_line = lane / 16 * 8 + lane % 8, to_chunk = warp * 2 + lane / 8 % 2;
    const uint32_t to = shared_address(lines) + to_line * 128 + (to_chunk ^ lane % 8) * 16;
    asm volatile("bar.sync %0, 128;" ::"r"(2 + group) : "memory"); // the lines of the tile before have been read
#pragma unroll
    for (int pair = 0; pair < kQuads / 2; ++pair) {
      const float *s = sums + pair * 8;
      asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to + pair * 2048),
                   "r"(pack<T>(s[0], s[1])), "r"(pack<T>(s[2], s[3])), "r"(pack<T>(s[4], s[5])), "r"(pack<T>(s[6], s[7]))
                   : "memory");
    }
    asm volatile("bar.sync %0, 128;" ::"r"(2 + group) : "memory");
    const int chunks = p.gated ? 4 : 8, chunk = thread % chunks, column = ((tile * 2 + group) * chunks + chunk) * 8;
    if (column >= (p.gated ? p.N / 2 : p.N))
      return;
    T *out = static_cast<T *>(p.out) + column;
#pragma unroll 2
    for (int m = thread / chunks; m < p.M; m += 128 / chunks)
      *reinterpret_cast<uint4 *>(out + m * p.ld_out) = columns(p, lines + m * 128, chunk, m % 8);
  }

  static __device__ void consume(const WideParams &p, uint32_t stages, char *lines, uint32_t full, uint32_t empty) {
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    int stage = 0, use = 0;
    for (Stretch stretch(p); stretch.more();) {
      const Piece piece = stretch.next();
      Sums sums;
#pragma unroll
      for (int i = 0; i < kBatch / 2; ++i)
        sums[i] = 0;
      int before = -1;
      for (int k = piece.begin; k < piece.end; ++k) {
        barrier_wait(full + stage * 8, use & 1);
        const uint32_t weight = stages + stage * kStageBytes + group * (kWeightBytes / 2);
        const uint32_t input = stages + stage * kStageBytes + kWeightBytes;
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kBlockK / 16; ++s)
          wgmma_ss<T>(sums, tile_descriptor(weight + s * 32, 0), tile_descriptor(input + s * 32, 0), 1);
        wgmma_commit();
        wgmma_wait<1>();
        if (before >= 0 && lane == 0)
          barrier_arrive(empty + before * 8);
        before = stage;
        if (++stage == kStages)
          stage = 0, ++use;
      }
      wgmma_wait<0>();
      hold(sums);
      if (lane == 0)
        barrier_arrive(empty + before * 8);
      if (piece.end < p.k_blocks) {
        give(p, sums);
        continue;
      }
      if (piece.begin > 0)
        take(p, piece.tile, sums);
      if (p.bias)
        add_bias(p, piece.tile, sums);
      write(p, piece.tile, sums, lines);
    }
  }
};

template <typename T, int kBatch> __global__ void __launch_bounds__(kThreads, 1) wide_kernel(const __grid_constant__ WideParams p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using W = Wide<T, kBatch>;
  extern __shared__ char raw[];
  let_next_start();
  char *shared = raw + (1024 - shared_address(raw) % 1024) % 1024;
  const uint32_t stages = shared_address(shared);
  const uint32_t full = stages + W::kStages * W::kStageBytes + 2 * W::kLinesBytes, empty = full + W::kStages * 8;
  if (threadIdx.x == kConsumers) {
    prefetch_map(&p.weight);
    prefetch_map(&p.input);
    for (int s = 0; s < W::kStages; ++s) {
      barrier_init(full + s * 8, 1);
      barrier_init(empty + s * 8, kConsumers / 32);
    }
    fence_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kConsumers)
    W::consume(p, stages, shared + W::kStages * W::kStageBytes, full, empty);
  else if (threadIdx.x == kConsumers)
    W::produce(p, stages, full, empty);
#endif
}

template <typename T, int kBatch>
void launch_wide(const Linear &p, const std::optional<Activation> &gate, const WideScratch &scratch, cudaStream_t stream) {
  constexpr int64_t kLeast = 4; // k blocks that are worth a block
  WideParams params;
  params.out = p.out, params.ld_out = p.ld_out, params.bias = p.bias;
  params.parts = static_cast<float4 *>(scratch.parts), params.flags = scratch.flags;
  params.M = static_cast<int>(p.M), params.N = static_cast<int>(p.N);
  params.k_blocks = static_cast<int>(ceil_div(p.K, kBlockK)), params.tiles = static_cast<int>(ceil_div(p.N, kRows));
  params.gated = gate.has_value(), params.kind = gate.value_or(Activation::silu);
  const uint64_t M = static_cast<uint64_t>(p.M), N = static_cast<uint64_t>(p.N), K = static_cast<uint64_t>(p.K);
  params.weight = gate ? tensor_map(p.act, p.weight, {K, 8, 2, N / 16}, {K * 2, N * K, K * 16}, {kBlockK, 8, 2, kRows / 16})
                       : tensor_map(p.act, p.weight, {K, N}, {K * 2}, {kBlockK, kRows});
  params.input = tensor_map(p.act, p.input, {K, M}, {static_cast<uint64_t>(p.ld_input) * 2}, {kBlockK, kBatch});
  const int64_t work = int64_t{params.tiles} * params.k_blocks;
  const int64_t blocks = std::clamp<int64_t>(work / kLeast, 1, device_limits().sms);
  allow_shared_memory<wide_kernel<T, kBatch>>();
  launch(wide_kernel<T, kBatch>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), Wide<T, kBatch>::kBytes, stream, params);
}

template <typename T>
void launch_rows(const Linear &p, const std::optional<Activation> &gate, const WideScratch &scratch, cudaStream_t stream) {
  if (p.M <= 32)
    launch_wide<T, 32>(p, gate, scratch, stream);
  else
    launch_wide<T, 64>(p, gate, scratch, stream);
}

} // namespace

void wide_linear(const Linear &p, std::optional<Activation> gate, const WideScratch &scratch, cudaStream_t stream) {
  if (p.M <= 0)
    return;
  if (p.act == DType::f16)
    return launch_rows<__half>(p, gate, scratch, stream);
  launch_rows<__nv_bfloat16>(p, gate, scratch, stream);
}

#else

void wide_linear(const Linear &, std::optional<Activation>, const WideScratch &, cudaStream_t) {
  throw std::logic_error("wide_linear() was built without Hopper's instructions: ask wide_linear_applies() first");
}

#endif // LLMRT_HOPPER

} // namespace llmrt::cuda
