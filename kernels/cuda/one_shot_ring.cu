// All-reduce in one shot of long messages: rows go through rings, so that links carry rows while others are summed, whatever the
// length of the message, in memory that does not grow with it.
//
// A block takes every gridDim.x-th row and meets nobody but the block of its number on each peer. Its last warps push its rows into
// the peers' rings, its first ones wait for the peers' rows and sum them in group order; the residual and the RMSNorm that follow go
// with it. Where links keep lines whole, lines carry the rows (lines.cuh). Elsewhere a flag behind a fence follows each row. Fences
// wait for all that their multiprocessor has stored, so a block pushes its next row when the last one's flag has gone.
//
// A ring has kPlaces rows of a block and needs no word back: pushing is at most kAhead rows ahead of summing, so a member that
// pushes row k of a block has summed row k - kAhead - 1, has so seen that a peer pushed it, and that peer had then summed row
// k - 2 kAhead - 2, after which kPlaces = 2 kAhead + 2 rows come into the same place. The count of rows goes on from call to call;
// a number comes again after 2^32 rows. What a group's rings hold is always lines or always rows, so that a line's last chunk has
// never been anything but a number. Blocks start in order, so that the first one that waits is under way on every member.
#include "kernels/cuda/lines.cuh"
#include "kernels/cuda/one_shot_ring.h"

#include <algorithm>
#include <type_traits>

namespace llmrt::cuda {

namespace {

constexpr int kAhead = 1, kPlaces = 2 * kAhead + 2;
constexpr int64_t kMostRingBytes = 10 << 20, kFullDevice = 128, kMostBlocks = 4 * kFullDevice; // of a source; blocks
constexpr int kMostPushers = 6, kBatch = 8; // warps; chunks of a thread on their way from memory

// Rows of the block that each warp has read to push them, and that have been summed.
struct Progress {
  uint32_t read[kMostPushers], summed;
};
__device__ __forceinline__ void tell(uint32_t *word, uint32_t rows) {
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(word))), "r"(rows) : "memory");
}
__device__ __forceinline__ void await(const uint32_t *word, int rows) {
  uint32_t v;
  do
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(word))) : "memory");
  while (static_cast<int>(v) < rows);
}

// How many places on the link a row has.
template <bool kLines> __host__ __device__ constexpr int places_of(int chunks) {
  return kLines ? lines_of(chunks) * InLines::kPlaces : chunks;
}

// Of a block, at a call.
struct Ring {
  const OneShot &p;
  uint32_t before; // rows that went through it in earlier calls

  __device__ __forceinline__ int rows() const { return static_cast<int>((p.T - blockIdx.x + gridDim.x - 1) / gridDim.x); }
  __device__ __forceinline__ int64_t row(int i) const { return blockIdx.x + static_cast<int64_t>(i) * gridDim.x; }
  __device__ __forceinline__ uint32_t number(int i) const { return before + i + 1; }
  // Where member `to` finds the row that member `from` sent, and its flag.
  __device__ __forceinline__ char *slot(int to, int from, int i) const { return source(to, from) + place(i) * p.box.ring.slot_bytes; }
  __device__ __forceinline__ uint32_t *flag(int to, int from, int i) const {
    return reinterpret_cast<uint32_t *>(source(to, from) + p.box.ring.flags_offset) + place(i);
  }

private:
  __device__ __forceinline__ char *source(int to, int from) const {
    return static_cast<char *>(p.inbox[to]) + p.box.ring_offset + (from - (from > to)) * p.box.ring.source_bytes;
  }
  __device__ __forceinline__ int64_t place(int i) const { return blockIdx.x * static_cast<int64_t>(kPlaces) + (before + i) % kPlaces; }
};

__device__ __forceinline__ uint32_t *rows_before(const OneShot &p) {
  return reinterpret_cast<uint32_t *>(static_cast<char *>(p.inbox[p.rank]) + p.box.ring_offset + p.box.ring.counts_offset) + blockIdx.x;
}

// Thread `at` of `threads`, whole warps. Chunks lie on the link as Places say.
template <bool kLines, typename Places>
__device__ __forceinline__ void push_rows(const Ring &ring, int at, int threads, int64_t row_bytes, Progress &progress) {
  const OneShot &p = ring.p;
  const int chunks = static_cast<int>(row_bytes / kChunk), places = places_of<kLines>(chunks);
  const int64_t ld_bytes = p.ld * (row_bytes / p.H);
  const auto meet = [&] { asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory"); };
  for (int i = 0; i < ring.rows(); ++i) {
    const char *own = static_cast<const char *>(p.data) + ring.row(i) * ld_bytes;
    for (int first = 0; first < places; first += kBatch * threads) {
      uint4 v[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        v[j].x = v[j].y = v[j].z = v[j].w = ring.number(i);
        if (const int c = Places::chunk_at(first + at + j * threads); c < chunks)
          v[j] = *reinterpret_cast<const uint4 *>(own + c * kChunk);
      }
      if (first == 0) {
        if (i > kAhead && at % 32 == 0)
          await(&progress.summed, i - kAhead);
        kLines ? __syncwarp() : meet(); // the flag of the row before has gone
      }
      for (int to = 0; to < p.count; ++to) {
        if (to == p.rank)
          continue;
        char *slot = ring.slot(to, p.rank, i);
#pragma unroll
        for (int j = 0; j < kBatch; ++j) {
          if constexpr (kLines)
            __syncwarp(); // a line is one store of eight lanes
          if (const int place = first + at + j * threads; place < places)
            store_volatile(slot + place * kChunk, v[j]);
        }
      }
    }
    kLines ? __syncwarp() : meet();
    if (at % 32 == 0)
      tell(&progress.read[at / 32], static_cast<uint32_t>(i + 1));
    if (!kLines && at < p.count && at != p.rank)
      store_flag(ring.flag(at, p.rank, i), ring.number(i));
  }
}

template <bool kLines, bool kNorm, typename Row>
__device__ __forceinline__ void sum_rows(const Ring &ring, Row &own, FirstThreads team, int pushers, float *scratch, Progress &progress) {
  const OneShot &p = ring.p;
  const int r = static_cast<int>(threadIdx.x), places = places_of<kLines>(own.chunks);
  for (int i = 0; i < ring.rows(); ++i) {
    own.row = ring.row(i);
    uint4 mine[Row::kPlacesOfThread] = {};
    own.each([&](int c, int j) { mine[j] = *reinterpret_cast<const uint4 *>(own.data() + c * kChunk); });
    own.load_residual();
    if (!kNorm && r < pushers) // the sum takes the row's place
      await(&progress.read[r], i + 1);
    if (!kLines && r < p.count && r != p.rank)
      spin(p.host.given_up, [&] { return load_flag(ring.flag(p.rank, r, i)) == ring.number(i); });
    if (!kLines || !kNorm)
      team.sync();
    if constexpr (kLines) {
#pragma unroll
      for (int j = 0; j < Row::kPlacesOfThread; ++j) {
        own.sum[j].clear();
        for (int from = 0; from < p.count; ++from)
          own.sum[j].add(from == p.rank ? mine[j]
                                        : load_line(ring.slot(p.rank, from, i) + own.place(j) * kChunk, own.place(j) < places,
                                                    ring.number(i), p.host.given_up));
      }
    } else {
      own.each([&](int c, int j) {
        own.sum[j].clear();
        for (int from = 0; from < p.count; ++from)
          own.sum[j].add(from == p.rank ? mine[j] : load_volatile(ring.slot(p.rank, from, i) + c * kChunk));
      });
    }
    own.finish(scratch);
    if (!kNorm) // with norm, all threads have met since they read the ring
      team.sync();
    if (r == 0)
      tell(&progress.summed, static_cast<uint32_t>(i + 1));
  }
}

// The first `summers` threads sum, the others push.
template <typename T, bool kLines, bool kNorm, int kEach, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) ring_kernel(OneShot p, int summers) {
  __shared__ float scratch[33];
  __shared__ Progress progress;
  using Places = std::conditional_t<kLines, InLines, InOrder>;
  let_next_start();
  const int at = static_cast<int>(threadIdx.x), pushing = static_cast<int>(blockDim.x) - summers;
  if (at == 0)
    progress = {};
  SummedRow<T, kNorm, kEach, Places, FirstThreads> own(p, FirstThreads{summers});
  if (at < summers)
    own.load_weight();
  wait_for_previous();
  const uint32_t epoch = begin_call(p);
  const Ring ring{p, *rows_before(p)};
  __syncthreads();
  if (at < summers)
    sum_rows<kLines, kNorm>(ring, own, FirstThreads{summers}, pushing / 32, scratch, progress);
  else
    push_rows<kLines, Places>(ring, at - summers, pushing, p.H * static_cast<int64_t>(sizeof(T)), progress);
  __syncthreads();
  if (at == 0)
    *rows_before(p) = ring.before + static_cast<uint32_t>(ring.rows());
  end_call(p, epoch);
}

template <typename T, bool kLines, bool kNorm> void run(const OneShot &p, cudaStream_t stream) {
  const int64_t places = places_of<kLines>(static_cast<int>(p.H / Chunk<T>::kElements));
  const int64_t pushers = std::clamp<int64_t>(ceil_div(places, 32 * kBatch), 1, kMostPushers);
  const auto start = [&](auto kernel, int64_t each) {
    const int64_t summers = ceil_div(ceil_div(places, each), 32) * 32;
    launch(kernel, dim3(static_cast<unsigned>(std::min(p.T, p.box.ring.blocks))), dim3(static_cast<unsigned>(summers + 32 * pushers)), 0,
           stream, p, static_cast<int>(summers));
  };
  if (places <= 320)
    start(ring_kernel<T, kLines, kNorm, 2, 224, 4>, 2);
  else if (places <= 640)
    start(ring_kernel<T, kLines, kNorm, 2, 416, 2>, 2);
  else if (places <= 1216)
    start(ring_kernel<T, kLines, kNorm, 2, 768, 1>, 2);
  else
    start(ring_kernel<T, kLines, kNorm, 6, 992, 1>, 6);
}

} // namespace

RingShape ring_shape(int count, int64_t most_row_bytes, int64_t most_rows) {
  RingShape ring;
  ring.slot_bytes = lines_of(static_cast<int>(ceil_div(most_row_bytes, kChunk))) * kLineBytes;
  const int64_t fit = std::clamp<int64_t>(kMostRingBytes / (kPlaces * ring.slot_bytes), 1, kMostBlocks);
  ring.blocks = std::min(most_rows, fit > kFullDevice ? fit / kFullDevice * kFullDevice : fit);
  ring.flags_offset = ring.blocks * kPlaces * ring.slot_bytes;
  ring.source_bytes = ring.flags_offset + ceil_div(ring.blocks * kPlaces * 4, 256) * 256;
  ring.counts_offset = ring.source_bytes * (count - 1);
  return ring;
}

void one_shot_in_rings(const OneShot &p, cudaStream_t stream) {
  with_type(p.act, [&](auto type) {
    using T = decltype(type);
    if (p.whole_lines)
      p.norm.out ? run<T, true, true>(p, stream) : run<T, true, false>(p, stream);
    else
      p.norm.out ? run<T, false, true>(p, stream) : run<T, false, false>(p, stream);
  });
}

} // namespace llmrt::cuda
