// All-reduce in one shot between ranks whose memory is mutually mapped (after the custom all-reduce of FasterTransformer and
// NCCL's low-latency protocol): every rank pushes its rows into each peer's inbox, waits until the peers' rows are in its own,
// and sums them in group order, so that all members get the same bits. The residual and the RMSNorm that follow go with it.
//
// A block carries one row. Short messages bring an epoch with every eight bytes and need no other signal; longer ones are
// followed by a flag a row, or bring an epoch with every line where the links keep lines whole (one_shot_lines.cu). The epoch
// counts the calls of a group and lives on the device, so that a captured graph can be replayed. Inboxes are used by turns (two):
// a rank pushes call e + 2 only after its call e + 1 has ended, which has seen the rows that each peer pushed when its call e had
// ended. An epoch comes again after 2^32 calls; a slot would have to lie untouched for exactly so many to be mistaken.
#include "kernels/cuda/one_shot_lines.h"
#include "kernels/cuda/peers.cuh"
#include "kernels/cuda/sum_rows.cuh"

#include <algorithm>

namespace llmrt::cuda {

namespace {

// The halves lie in two planes, so that a warp's stores are contiguous on the link.
__device__ __forceinline__ void push_pairs(char *to, int64_t plane, uint4 v, uint32_t epoch) {
  store_volatile(to, make_uint4(v.x, epoch, v.y, epoch));
  store_volatile(to + plane, make_uint4(v.z, epoch, v.w, epoch));
}

// kPairs: the short form. kNorm: with residual and norm. kEach: chunks of a thread. kThreads: of a block, at most.
template <typename T, bool kPairs, bool kNorm, int kEach, int kThreads>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) one_shot_kernel(OneShot p) {
  __shared__ float scratch[33];
  let_next_start();
  SummedRow<T, kNorm, kEach> own(p);
  own.load_weight();
  wait_for_previous();
  const uint32_t epoch = begin_call(p);
  const int64_t turn = static_cast<int64_t>(epoch & 1) * p.box.turn_bytes, row = blockIdx.x;
  const int64_t row_bytes = p.H * static_cast<int64_t>(sizeof(T));

  // Push.
  uint4 mine[kEach];
  own.each([&](int c, int j) {
    mine[j] = *reinterpret_cast<const uint4 *>(own.data() + c * kChunk);
    for (int r = 0; r < p.count; ++r) {
      if (r == p.rank)
        continue;
      char *to = static_cast<char *>(p.inbox[r]) + turn + p.rank * p.box.source_bytes;
      const int64_t at = row * row_bytes + c * kChunk;
      if constexpr (kPairs)
        push_pairs(to + at, p.box.lines_offset / 2, mine[j], epoch);
      else
        *reinterpret_cast<uint4 *>(to + p.box.data_offset + at) = mine[j];
    }
  });
  own.load_residual();
  const char *box = static_cast<const char *>(p.inbox[p.rank]) + turn;
  if constexpr (!kPairs) {
    __syncthreads();
    const int r = threadIdx.x;
    if (r < p.count && r != p.rank) {
      store_flag(reinterpret_cast<uint32_t *>(static_cast<char *>(p.inbox[r]) + turn + p.rank * p.box.source_bytes +
                                              p.box.flags_offset) + row, epoch);
      const uint32_t *flag = reinterpret_cast<const uint32_t *>(box + r * p.box.source_bytes + p.box.flags_offset) + row;
      spin(p.host.given_up, [&] { return load_flag(flag) == epoch; });
    }
    __syncthreads();
  }

  // Sum, in group order.
  own.each([&](int c, int j) {
    own.sum[j].clear();
    for (int r = 0; r < p.count; ++r) {
      if (r == p.rank) {
        own.sum[j].add(mine[j]);
        continue;
      }
      const char *from = box + r * p.box.source_bytes;
      const int64_t at = row * row_bytes + c * kChunk;
      if constexpr (kPairs) {
        uint4 a, b;
        spin(p.host.given_up, [&] {
          a = load_volatile(from + at), b = load_volatile(from + p.box.lines_offset / 2 + at);
          return a.y == epoch && a.w == epoch && b.y == epoch && b.w == epoch;
        });
        own.sum[j].add(make_uint4(a.x, a.z, b.x, b.z));
      } else {
        own.sum[j].add(load_volatile(from + p.box.data_offset + at));
      }
    }
  });
  own.finish(scratch);
  end_call(p, epoch);
}

__global__ void tell_kernel(uint32_t *word, uint32_t value) {
  let_next_start();
  wait_for_previous();
  *word = value;
}

// Short messages want each thread's work over at once; long ones want many rows under way.
template <typename T, bool kPairs, bool kNorm> void run(const OneShot &p, cudaStream_t stream) {
  const int64_t chunks = p.H / Chunk<T>::kElements;
  constexpr int kEach = kPairs ? 1 : 2;
  if (chunks <= 512)
    launch_rows(one_shot_kernel<T, kPairs, kNorm, kEach, 512 / kEach>, p, kEach, stream);
  else if (chunks <= 1024)
    launch_rows(one_shot_kernel<T, kPairs, kNorm, kEach, 1024 / kEach>, p, kEach, stream);
  else
    launch_rows(one_shot_kernel<T, kPairs, kNorm, 4, 1024>, p, 4, stream);
}

} // namespace

bool one_shot_takes(int64_t H, int64_t ld, DType act) {
  const int64_t size = static_cast<int64_t>(dtype_bytes(act));
  return H > 0 && H * size % kChunk == 0 && ld * size % kChunk == 0 && H * size <= kMostRowChunks * kChunk;
}

// What bringing the signal along costs grows with what crosses the links: a message of `most` bytes to all others.
static int64_t to_each(int64_t most, int count) { return most / (count > 1 ? count - 1 : 1); }

bool whole_lines_between(int a, int b) {
  int atomics = a == b;
  if (a != b)
    require(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, a, b), "peer attributes");
  return atomics != 0;
}

InboxShape one_shot_inbox(int count, int64_t most_bytes, int64_t most_rows) {
  auto round = [](int64_t bytes) { return ceil_div(bytes, 256) * 256; };
  InboxShape box;
  box.lines_offset = round(2 * std::min(most_bytes, to_each(kPairsBytes, count)));
  box.data_offset = box.lines_offset + round(lines_bytes(std::min(most_bytes, to_each(kLinesBytes, count)), most_rows));
  box.flags_offset = box.data_offset + round(most_bytes);
  box.source_bytes = box.flags_offset + round(most_rows * 4);
  box.turn_bytes = box.source_bytes * count;
  return box;
}

void tell_host(uint32_t *word, uint32_t value, cudaStream_t stream) { launch(tell_kernel, dim3(1), dim3(1), 0, stream, word, value); }

void one_shot_all_reduce(const OneShot &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  const int64_t row_bytes = p.H * static_cast<int64_t>(dtype_bytes(p.act)), bytes = p.T * row_bytes;
  if (p.whole_lines && bytes > to_each(kShortBytes, p.count) && bytes <= to_each(kLinesBytes, p.count) && lines_take(row_bytes))
    return one_shot_in_lines(p, stream);
  const bool pairs = bytes <= to_each(kPairsBytes, p.count);
  with_type(p.act, [&](auto type) {
    using T = decltype(type);
    if (p.norm.out)
      pairs ? run<T, true, true>(p, stream) : run<T, false, true>(p, stream);
    else
      pairs ? run<T, true, false>(p, stream) : run<T, false, false>(p, stream);
  });
}

} // namespace llmrt::cuda
