// All-reduce in one shot between ranks whose memory is mutually mapped (after the custom all-reduce of FasterTransformer and
// NCCL's low-latency protocol): every rank pushes its rows into each peer's inbox, waits until the peers' rows are in its own,
// and sums them in group order, so that all members get the same bits. The residual and the RMSNorm that follow go with it.
//
// Short messages, whose rows a block carries each, bring an epoch with every eight bytes and need no other signal; longer ones bring
// it with every line where the links keep lines whole (one_shot_lines.cu); the longest go through rings (one_shot_ring.cu). The epoch
// counts the calls of a group and lives on the device, so that a captured graph can be replayed. Inboxes are used by turns (two):
// a rank pushes call e + 2 only after its call e + 1 has ended, which has seen the rows that each peer pushed when its call e had
// ended. An epoch comes again after 2^32 calls; a slot would have to lie untouched for exactly so many to be mistaken.
#include "kernels/cuda/one_shot_lines.h"
#include "kernels/cuda/one_shot_ring.h"
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

// kNorm: with residual and norm. kEach: chunks of a thread. kThreads: of a block, at most.
template <typename T, bool kNorm, int kEach, int kThreads>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) pairs_kernel(OneShot p) {
  __shared__ float scratch[33];
  let_next_start();
  SummedRow<T, kNorm, kEach> own(p);
  own.load_weight();
  wait_for_previous();
  const uint32_t epoch = begin_call(p);
  const int64_t turn = static_cast<int64_t>(epoch & 1) * p.box.turn_bytes, plane = p.box.lines_offset / 2;
  const int64_t row_at = own.row * p.H * static_cast<int64_t>(sizeof(T));

  // Push.
  uint4 mine[kEach];
  own.each([&](int c, int j) {
    mine[j] = *reinterpret_cast<const uint4 *>(own.data() + c * kChunk);
    for (int r = 0; r < p.count; ++r)
      if (r != p.rank)
        push_pairs(static_cast<char *>(p.inbox[r]) + turn + p.rank * p.box.source_bytes + row_at + c * kChunk, plane, mine[j], epoch);
  });
  own.load_residual();

  // Sum, in group order.
  const char *box = static_cast<const char *>(p.inbox[p.rank]) + turn;
  own.each([&](int c, int j) {
    own.sum[j].clear();
    for (int r = 0; r < p.count; ++r) {
      if (r == p.rank) {
        own.sum[j].add(mine[j]);
        continue;
      }
      const char *from = box + r * p.box.source_bytes + row_at + c * kChunk;
      uint4 a, b;
      spin(p.host.given_up, [&] {
        a = load_volatile(from), b = load_volatile(from + plane);
        return a.y == epoch && a.w == epoch && b.y == epoch && b.w == epoch;
      });
      own.sum[j].add(make_uint4(a.x, a.z, b.x, b.z));
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

// Each thread's work is to be over at once.
template <typename T, bool kNorm> void run(const OneShot &p, cudaStream_t stream) {
  const int64_t chunks = p.H / Chunk<T>::kElements;
  if (chunks <= 512)
    launch_rows(pairs_kernel<T, kNorm, 1, 512>, p, 1, stream);
  else if (chunks <= 1024)
    launch_rows(pairs_kernel<T, kNorm, 1, 1024>, p, 1, stream);
  else
    launch_rows(pairs_kernel<T, kNorm, 4, 1024>, p, 4, stream);
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

InboxShape one_shot_inbox(int count, int64_t most_bytes, int64_t most_row_bytes, int64_t most_rows) {
  auto round = [](int64_t bytes) { return ceil_div(bytes, 256) * 256; };
  const int64_t pairs = std::min(most_bytes, to_each(kPairsBytes, count)), lines = std::min(most_bytes, to_each(kLinesBytes, count));
  InboxShape box;
  box.lines_offset = round(2 * pairs);
  box.source_bytes = box.lines_offset + round(lines_bytes(lines, most_rows));
  box.turn_bytes = box.source_bytes * count;
  box.ring_offset = 2 * box.turn_bytes;
  if (count > 1 && most_bytes > pairs)
    box.ring = ring_shape(count, most_row_bytes, most_rows);
  return box;
}

void tell_host(uint32_t *word, uint32_t value, cudaStream_t stream) { launch(tell_kernel, dim3(1), dim3(1), 0, stream, word, value); }

void one_shot_all_reduce(const OneShot &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  const int64_t row_bytes = p.H * static_cast<int64_t>(dtype_bytes(p.act)), bytes = p.T * row_bytes;
  if (p.whole_lines && bytes > to_each(kShortBytes, p.count) && bytes <= to_each(kLinesBytes, p.count) && lines_take(row_bytes))
    return one_shot_in_lines(p, stream);
  if (p.count > 1 && bytes > to_each(kPairsBytes, p.count))
    return one_shot_in_rings(p, stream);
  with_type(p.act, [&](auto type) {
    using T = decltype(type);
    p.norm.out ? run<T, true>(p, stream) : run<T, false>(p, stream);
  });
}

} // namespace llmrt::cuda
