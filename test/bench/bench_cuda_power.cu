// What a card's power lets it multiply for long, part by part: warpgroup products of what lies in shared memory, with the weights and the
// input coming from L2 or from memory, and the copies alone. Each runs for 0.7 s and then for 1.5 s that count, on Hopper. A kernel for
// 256 rows that does more than these (it also writes results) cannot be faster for long; docs/performance.md has the figures.
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/tensor_map.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace llmrt::cuda;

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (cudaError_t status = (call); status != cudaSuccess) {                                                          \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                                             \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

namespace {

enum Multiply { kNothing, kShared, kRegisters, kTwice }; // 64 x 256; the weights in registers; 64 x 128 twice, rows as the M side
enum Source { kNone, kL2, kMemory };

constexpr int kStages = 4, kWeightBytes = 128 * 64 * 2, kInputBytes = 256 * 64 * 2, kStageBytes = kWeightBytes + kInputBytes;
constexpr int kWeightRows = 128, kRows = 256, kConsumers = 256, kThreads = kConsumers + 128;
constexpr int kSharedBytes = kStages * kStageBytes + 1024 + 256;

struct Params {
  CUtensorMap weight, input;
  long weight_rows;
  float *random; // kStages * kStageBytes
  int tile_blocks, blocks; // of 64 k: of a tile, of a launch
};

#define LLMRT_TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9"
#define LLMRT_REGS_128                                                                                                 \
  "{" LLMRT_TEN() "," LLMRT_TEN(1) "," LLMRT_TEN(2) "," LLMRT_TEN(3) "," LLMRT_TEN(4) "," LLMRT_TEN(5) "," LLMRT_TEN( \
      6) "," LLMRT_TEN(7) "," LLMRT_TEN(8) "," LLMRT_TEN(9) "," LLMRT_TEN(10) "," LLMRT_TEN(11) ",%120,%121,%122,%123,%124,%125,%126,%127}"
#define LLMRT_EIGHT(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define LLMRT_OUTS_64(i)                                                                                               \
  LLMRT_EIGHT(i), LLMRT_EIGHT(i + 8), LLMRT_EIGHT(i + 16), LLMRT_EIGHT(i + 24), LLMRT_EIGHT(i + 32), LLMRT_EIGHT(i + 40), \
      LLMRT_EIGHT(i + 48), LLMRT_EIGHT(i + 56)
__device__ __forceinline__ void multiply_shared(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " LLMRT_REGS_128 ", %128, %129, 1, 1, 1, 0, 0;"
               : LLMRT_OUTS_64(0), LLMRT_OUTS_64(64)
               : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_registers(float (&d)[128], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " LLMRT_REGS_128 ", {%128,%129,%130,%131}, %132, 1, 1, 1, 0;"
               : LLMRT_OUTS_64(0), LLMRT_OUTS_64(64)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <Multiply kMultiply, Source kWeight, Source kInput, int kCluster>
__global__ void __launch_bounds__(kThreads, 1) power_kernel(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char raw[];
  const uint32_t stages = (shared_address(raw) + 1023) / 1024 * 1024;
  const uint32_t full = stages + kStages * kStageBytes, empty = full + kStages * 8;
  const int rank = kCluster > 1 ? static_cast<int>(cluster_rank()) : 0;
  if (threadIdx.x == kConsumers) {
    for (int s = 0; s < kStages; ++s)
      barrier_init(full + 8 * s, 1), barrier_init(empty + 8 * s, kCluster * kConsumers / 32);
    fence_barriers();
  }
  const uint4 *from = reinterpret_cast<const uint4 *>(p.random);
  uint4 *to = reinterpret_cast<uint4 *>(raw + (stages - shared_address(raw)));
  for (int i = static_cast<int>(threadIdx.x); i < kStages * kStageBytes / 16; i += kThreads)
    to[i] = from[(i + blockIdx.x * 977) % (kStages * kStageBytes / 16)];
  fence_async();
  __syncthreads();
  if constexpr (kCluster > 1)
    cluster_arrive(), cluster_wait();
  constexpr bool kCopies = kWeight != kNone || kInput != kNone;
  if (threadIdx.x >= kConsumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == kConsumers && kCopies)
      for (int k = 0, stage = 0, use = 0; k < p.blocks; ++k) {
        barrier_wait(empty + stage * 8, use & 1 ^ 1);
        const uint32_t at = stages + stage * kStageBytes;
        barrier_expect(full + stage * 8, (kWeight != kNone ? kWeightBytes : 0) + (kInput != kNone ? kInputBytes : 0));
        const int tile = k / p.tile_blocks, column = k % p.tile_blocks * 64;
        if (kWeight != kNone) {
          const long row = kWeight == kMemory ? (static_cast<long>(tile) * gridDim.x + blockIdx.x) * kWeightRows % p.weight_rows
                                              : static_cast<long>(blockIdx.x % 16) * kWeightRows;
          copy_box(at, &p.weight, column, static_cast<int>(row), full + stage * 8, kEvictFirst);
        }
        if (kInput != kNone) {
          if (kCluster == 1)
            copy_box(at + kWeightBytes, &p.input, column, 0, full + stage * 8, kEvictLast);
          else
            copy_box_to((1 << kCluster) - 1, at + kWeightBytes + rank * (kInputBytes / kCluster), &p.input, column,
                        rank * (kRows / kCluster), full + stage * 8, kEvictLast);
        }
        if (++stage == kStages)
          stage = 0, ++use;
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    const uint32_t empty_there = of_block(empty, lane < kCluster ? lane : 0);
    float d[128] = {};
    uint32_t a[4][4];
    for (int i = 0; i < 16; ++i)
      a[i / 4][i % 4] = reinterpret_cast<const uint32_t *>(p.random)[threadIdx.x * 16 + i];
    int before = -1;
    for (int k = 0, stage = 0, use = 0; k < p.blocks; ++k) {
      if (kCopies)
        barrier_wait(full + stage * 8, use & 1);
      const uint32_t weight = stages + stage * kStageBytes, input = weight + kWeightBytes;
      if constexpr (kMultiply != kNothing) {
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < 4; ++s) {
          if constexpr (kMultiply == kShared)
            multiply_shared(d, tile_descriptor(weight + group * 8192 + s * 32, 0), tile_descriptor(input + s * 32, 0));
          if constexpr (kMultiply == kRegisters)
            multiply_registers(d, a[s], tile_descriptor(input + s * 32, 0));
          if constexpr (kMultiply == kTwice) {
            auto &low = reinterpret_cast<float(&)[64]>(d[0]), &high = reinterpret_cast<float(&)[64]>(d[64]);
            wgmma_ss<__nv_bfloat16>(low, tile_descriptor(input + group * 16384 + s * 32, 0), tile_descriptor(weight + s * 32, 0), 1);
            wgmma_ss<__nv_bfloat16>(high, tile_descriptor(input + group * 16384 + 8192 + s * 32, 0), tile_descriptor(weight + s * 32, 0), 1);
          }
        }
        wgmma_commit();
        wgmma_wait<1>();
      }
      if (kCopies && before >= 0 && lane < kCluster)
        arrive_at(empty_there + before * 8);
      before = stage;
      if (++stage == kStages)
        stage = 0, ++use;
    }
    wgmma_wait<0>();
    hold(d);
    float sum = 0;
#pragma unroll
    for (float v : d)
      sum += v;
    if (sum == 12345.678f)
      p.random[0] = sum;
  }
  if constexpr (kCluster > 1) {
    __syncwarp();
    cluster_arrive(), cluster_wait();
  }
#endif
}

__global__ void fill_kernel(uint32_t *data, size_t n, uint32_t seed) { // pairs of bf16, normally distributed
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n; i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    uint64_t s = (i + 1) * 0x9E3779B97F4A7C15ull + seed;
    s ^= s >> 30, s *= 0xBF58476D1CE4E5B9ull, s ^= s >> 27, s *= 0x94D049BB133111EBull, s ^= s >> 31;
    const float u = (static_cast<float>(s & 0xffffffff) + 1.0f) / 4294967296.0f, v = static_cast<float>(s >> 32) / 4294967296.0f;
    const float r = sqrtf(-2 * logf(u)) * 0.02f;
    data[i] = pack<__nv_bfloat16>(r * cosf(6.2831853f * v), r * sinf(6.2831853f * v));
  }
}

// The card's energy counter and clock, from the driver's own library.
class Card {
public:
  Card() {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library || find<int (*)()>(library, "nvmlInit_v2")() != 0 ||
        find<int (*)(unsigned, void **)>(library, "nvmlDeviceGetHandleByIndex_v2")(0, &device_) != 0) {
      std::fprintf(stderr, "bench_cuda_power: the driver's libnvidia-ml.so.1 does not answer\n");
      std::exit(1);
    }
    energy_ = find<decltype(energy_)>(library, "nvmlDeviceGetTotalEnergyConsumption");
    clock_ = find<decltype(clock_)>(library, "nvmlDeviceGetClockInfo");
  }
  double joules() const {
    unsigned long long millijoules = 0;
    energy_(device_, &millijoules);
    return static_cast<double>(millijoules) * 1e-3;
  }
  unsigned megahertz() const {
    unsigned mhz = 0;
    clock_(device_, 1, &mhz); // of the multiprocessors
    return mhz;
  }

private:
  template <typename F> static F find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found)
      std::fprintf(stderr, "bench_cuda_power: libnvidia-ml.so.1 has no %s\n", name), std::exit(1);
    return reinterpret_cast<F>(found);
  }
  void *device_ = nullptr;
  int (*energy_)(void *, unsigned long long *) = nullptr;
  int (*clock_)(void *, int, unsigned *) = nullptr;
};

template <Multiply kMultiply, Source kWeight, Source kInput, int kCluster>
void run(const char *name, const Card &card, Params p, const CUtensorMap *inputs, int sms) {
  constexpr auto kKernel = power_kernel<kMultiply, kWeight, kInput, kCluster>;
  p.input = inputs[kCluster - 1];
  p.blocks = p.tile_blocks * 40;
  CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  const int blocks = sms / kCluster * kCluster;
  const auto launch_once = [&] {
    launch_cluster(kKernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), kSharedBytes, kCluster, nullptr, p);
  };
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const auto milliseconds = [&] {
    float ms = 0;
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms;
  };
  launch_once();
  CHECK(cudaEventRecord(begin));
  launch_once();
  CHECK(cudaEventRecord(end));
  const float once = milliseconds();
  for (int i = 0; i < static_cast<int>(700 / once); ++i)
    launch_once();
  CHECK(cudaDeviceSynchronize());
  const double joules = card.joules();
  const auto start = std::chrono::steady_clock::now();
  const int count = std::max(1, static_cast<int>(1500 / once));
  CHECK(cudaEventRecord(begin));
  for (int i = 0; i < count; ++i)
    launch_once();
  CHECK(cudaEventRecord(end));
  std::vector<unsigned> clocks;
  while (cudaEventQuery(end) == cudaErrorNotReady)
    clocks.push_back(card.megahertz());
  const double seconds = milliseconds() * 1e-3 / count;
  const double watts = (card.joules() - joules) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::nth_element(clocks.begin(), clocks.begin() + clocks.size() / 2, clocks.end());
  const double per_stage = static_cast<double>(blocks) * p.blocks / seconds * 1e-12;
  std::printf("%-48s %6.0f TFLOP/s  weights %5.2f  input %5.2f TB/s  %4.0f W  %4u MHz\n", name,
              kMultiply == kNothing ? 0 : 2.0 * kWeightRows * kRows * 64 * per_stage, kWeight == kNone ? 0 : kWeightBytes * per_stage,
              kInput == kNone ? 0 : kInputBytes * per_stage, watts, clocks.empty() ? 0 : clocks[clocks.size() / 2]);
  std::fflush(stdout);
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
}

} // namespace

int main() {
  CHECK(cudaSetDevice(0));
  if (device_limits().major != 9) {
    std::fprintf(stderr, "bench_cuda_power: this device has no Hopper's warpgroup products\n");
    return 1;
  }
  const Card card;
  const int sms = device_limits().sms;
  const uint64_t K = 3584, rows = static_cast<uint64_t>(sms) * kWeightRows * 40;
  char *weight, *input;
  Params p{};
  CHECK(cudaMalloc(&weight, rows * K * 2));
  CHECK(cudaMalloc(&input, kRows * K * 2));
  CHECK(cudaMalloc(&p.random, 1 << 20));
  const auto fill = [](void *to, size_t bytes, uint32_t seed) {
    fill_kernel<<<1024, 256>>>(static_cast<uint32_t *>(to), bytes / 4, seed);
  };
  fill(weight, rows * K * 2, 1), fill(input, kRows * K * 2, 2), fill(p.random, 1 << 20, 3);
  CHECK(cudaDeviceSynchronize());
  p.weight_rows = static_cast<long>(rows), p.tile_blocks = static_cast<int>(K / 64);
  p.weight = tensor_map(DType::bf16, weight, {K, rows}, {K * 2}, {64, kWeightRows});
  CUtensorMap inputs[2];
  for (uint32_t cluster : {1, 2})
    inputs[cluster - 1] = tensor_map(DType::bf16, input, {K, kRows}, {K * 2}, {64, kRows / cluster});
  for (int round = 0; round < 2; ++round) {
    run<kShared, kNone, kNone, 1>("products of what lies in shared memory", card, p, inputs, sms);
    run<kRegisters, kNone, kNone, 1>("weights in registers", card, p, inputs, sms);
    run<kTwice, kNone, kNone, 1>("64 x 128 twice, rows as the M side", card, p, inputs, sms);
    run<kShared, kL2, kNone, 1>("weights from L2", card, p, inputs, sms);
    run<kShared, kMemory, kNone, 1>("weights from memory", card, p, inputs, sms);
    run<kShared, kNone, kL2, 1>("input from L2", card, p, inputs, sms);
    run<kShared, kMemory, kL2, 1>("weights from memory, input from L2", card, p, inputs, sms);
    run<kShared, kMemory, kL2, 2>("the same, input shared by two blocks", card, p, inputs, sms);
    run<kNothing, kMemory, kNone, 1>("copies alone: weights", card, p, inputs, sms);
    run<kNothing, kMemory, kL2, 2>("copies alone: weights and input", card, p, inputs, sms);
  }
  CHECK(cudaMemset(p.random, 0, 1 << 20));
  run<kShared, kNone, kNone, 1>("products of zeros in shared memory", card, p, inputs, sms);
}
