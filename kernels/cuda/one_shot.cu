// All-reduce in one shot between ranks whose memory is mutually mapped (after the custom all-reduce of FasterTransformer and
// NCCL's low-latency protocol): every rank pushes its rows into each peer's inbox, waits until the peers' rows are in its own,
// and sums them in group order, so that all members get the same bits. The residual and the RMSNorm that follow go with it.
//
// A block carries one row. Short messages bring an epoch with every eight bytes and need no other signal; longer ones are
// followed by a flag a row. The epoch counts the calls of a group and lives on the device, so that a captured graph can be
// replayed. Inboxes are used by turns (two): a rank pushes call e + 2 only after its call e + 1 has ended, which has seen the
// rows that each peer pushed when its call e had ended. An epoch comes again after 2^32 calls; a slot would have to lie
// untouched for exactly so many to be mistaken.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/kernels.h"

namespace llmrt::cuda {

namespace {

constexpr int kChunk = 16; // bytes
constexpr unsigned kSpinsBetweenLooks = 1u << 12;

// The halves lie in two planes, so that a warp's stores are contiguous on the link.
__device__ __forceinline__ void push_pairs(char *to, int64_t plane, uint4 v, uint32_t epoch) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.x), "r"(epoch), "r"(v.y), "r"(epoch) : "memory");
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to + plane), "r"(v.z), "r"(epoch), "r"(v.w), "r"(epoch)
               : "memory");
}
__device__ __forceinline__ uint4 load_volatile(const char *from) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from) : "memory");
  return v;
}
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

template <typename T> struct Chunk {
  static constexpr int kElements = kChunk / sizeof(T);
  float v[kElements];
  __device__ __forceinline__ void add(uint4 raw) {
    const T *e = reinterpret_cast<const T *>(&raw);
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      v[i] += to_float(e[i]);
  }
  __device__ __forceinline__ uint4 bits() const {
    uint4 raw;
    T *e = reinterpret_cast<T *>(&raw);
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      e[i] = from_float<T>(v[i]);
    return raw;
  }
};

// kPairs: the short form. kNorm: with residual and norm. kEach: chunks of a thread.
template <typename T, bool kPairs, bool kNorm, int kEach>
__global__ void __launch_bounds__(1024) one_shot_kernel(OneShot p) {
  constexpr int kElements = Chunk<T>::kElements;
  __shared__ float scratch[33];
  let_next_start();
  const int chunks = static_cast<int>(p.H) / kElements, row = blockIdx.x;
  const int64_t row_bytes = p.H * static_cast<int64_t>(sizeof(T));
  float weight[kNorm ? kEach : 1][kElements];
  if constexpr (kNorm) {
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (const int c = threadIdx.x + j * blockDim.x; c < chunks)
#pragma unroll
        for (int i = 0; i < kElements; ++i)
          weight[j][i] = p.norm.weight[c * kElements + i] + p.norm.weight_offset;
  }
  wait_for_previous();
  const uint32_t epoch = *static_cast<volatile uint32_t *>(p.state) + 1;
  const int64_t turn = static_cast<int64_t>(epoch & 1) * p.box.turn_bytes;
  if (row == 0 && threadIdx.x == 0)
    *p.host.at = p.number;

  // Push.
  const char *mine = static_cast<const char *>(p.data) + row * p.ld * static_cast<int64_t>(sizeof(T));
  uint4 own[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int c = threadIdx.x + j * blockDim.x;
    if (c >= chunks)
      break;
    own[j] = *reinterpret_cast<const uint4 *>(mine + c * kChunk);
    for (int r = 0; r < p.count; ++r) {
      if (r == p.rank)
        continue;
      char *to = static_cast<char *>(p.inbox[r]) + turn + p.rank * p.box.source_bytes;
      const int64_t at = row * row_bytes + c * kChunk;
      if constexpr (kPairs)
        push_pairs(to + at, p.box.data_offset / 2, own[j], epoch);
      else
        *reinterpret_cast<uint4 *>(to + p.box.data_offset + at) = own[j];
    }
  }
  const char *box = static_cast<const char *>(p.inbox[p.rank]) + turn;
  if constexpr (!kPairs) {
    __syncthreads();
    const int r = threadIdx.x;
    if (r < p.count && r != p.rank) {
      __threadfence_system();
      store_flag(reinterpret_cast<uint32_t *>(static_cast<char *>(p.inbox[r]) + turn + p.rank * p.box.source_bytes +
                                              p.box.flags_offset) + row, epoch);
      const uint32_t *flag = reinterpret_cast<const uint32_t *>(box + r * p.box.source_bytes + p.box.flags_offset) + row;
      spin(p.host.given_up, [&] { return load_flag(flag) == epoch; });
    }
    __syncthreads();
  }

  // Sum, in group order.
  float square = 0;
  Chunk<T> sum[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int c = threadIdx.x + j * blockDim.x;
    if (c >= chunks)
      break;
#pragma unroll
    for (int i = 0; i < kElements; ++i)
      sum[j].v[i] = 0;
    for (int r = 0; r < p.count; ++r) {
      if (r == p.rank) {
        sum[j].add(own[j]);
        continue;
      }
      const char *from = box + r * p.box.source_bytes;
      const int64_t at = row * row_bytes + c * kChunk;
      if constexpr (kPairs) {
        uint4 a, b;
        spin(p.host.given_up, [&] {
          a = load_volatile(from + at), b = load_volatile(from + p.box.data_offset / 2 + at);
          return a.y == epoch && a.w == epoch && b.y == epoch && b.w == epoch;
        });
        sum[j].add(make_uint4(a.x, a.z, b.x, b.z));
      } else {
        sum[j].add(load_volatile(from + p.box.data_offset + at));
      }
    }
    if constexpr (kNorm) {
      char *residual = static_cast<char *>(p.norm.residual) + row * p.norm.ld_residual * static_cast<int64_t>(sizeof(T)) + c * kChunk;
      sum[j].add(*reinterpret_cast<const uint4 *>(residual));
      *reinterpret_cast<uint4 *>(residual) = sum[j].bits();
#pragma unroll
      for (int i = 0; i < kElements; ++i)
        square += sum[j].v[i] * sum[j].v[i];
    } else {
      *reinterpret_cast<uint4 *>(const_cast<char *>(mine) + c * kChunk) = sum[j].bits();
    }
  }
  if constexpr (kNorm) {
    const float scale = rsqrtf(block_sum(square, scratch) / static_cast<float>(p.H) + p.norm.eps);
    char *out = static_cast<char *>(p.norm.out) + row * p.norm.ld_out * static_cast<int64_t>(sizeof(T));
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int c = threadIdx.x + j * blockDim.x;
      if (c >= chunks)
        break;
#pragma unroll
      for (int i = 0; i < kElements; ++i)
        sum[j].v[i] *= scale * weight[j][i];
      *reinterpret_cast<uint4 *>(out + c * kChunk) = sum[j].bits();
    }
  }

  // The last block to come here ends the epoch.
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(p.state + 1, 1u) == gridDim.x - 1) {
      p.state[1] = 0;
      p.state[0] = epoch;
    }
  }
}

__global__ void tell_kernel(uint32_t *word, uint32_t value) {
  let_next_start();
  wait_for_previous();
  *word = value;
}

template <typename T, bool kPairs, bool kNorm> void run(const OneShot &p, cudaStream_t stream) {
  const int64_t chunks = p.H / Chunk<T>::kElements;
  const int64_t threads = chunks > 1024 ? 1024 : ceil_div(chunks, 32) * 32;
  const dim3 grid(static_cast<unsigned>(p.T)), block(static_cast<unsigned>(threads));
  if (chunks <= 1024)
    launch(one_shot_kernel<T, kPairs, kNorm, 1>, grid, block, 0, stream, p);
  else if (chunks <= 2048)
    launch(one_shot_kernel<T, kPairs, kNorm, 2>, grid, block, 0, stream, p);
  else
    launch(one_shot_kernel<T, kPairs, kNorm, 4>, grid, block, 0, stream, p);
}

} // namespace

bool one_shot_takes(int64_t H, int64_t ld, DType act) {
  const int64_t size = static_cast<int64_t>(dtype_bytes(act));
  return H > 0 && H * size % kChunk == 0 && ld * size % kChunk == 0 && H * size <= 4 * 1024 * kChunk;
}

// Pairs double what crosses the links, so that they are for what is small when sent to all others.
static int64_t most_pairs_bytes(int count) { return kPairsBytes / (count > 1 ? count - 1 : 1); }

InboxShape one_shot_inbox(int count, int64_t most_bytes, int64_t most_rows) {
  auto round = [](int64_t bytes) { return ceil_div(bytes, 256) * 256; };
  InboxShape box;
  box.data_offset = round(2 * (most_bytes < most_pairs_bytes(count) ? most_bytes : most_pairs_bytes(count)));
  box.flags_offset = box.data_offset + round(most_bytes);
  box.source_bytes = box.flags_offset + round(most_rows * 4);
  box.turn_bytes = box.source_bytes * count;
  return box;
}

void tell_host(uint32_t *word, uint32_t value, cudaStream_t stream) { launch(tell_kernel, dim3(1), dim3(1), 0, stream, word, value); }

void one_shot_all_reduce(const OneShot &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  const bool pairs = p.T * p.H * static_cast<int64_t>(dtype_bytes(p.act)) <= most_pairs_bytes(p.count);
  with_type(p.act, [&](auto type) {
    using T = decltype(type);
    if (p.norm.out)
      pairs ? run<T, true, true>(p, stream) : run<T, false, true>(p, stream);
    else
      pairs ? run<T, true, false>(p, stream) : run<T, false, false>(p, stream);
  });
}

} // namespace llmrt::cuda
