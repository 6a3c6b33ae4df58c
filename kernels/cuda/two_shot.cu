// All-reduce in two shots between ranks whose memory is mutually mapped: a reduce-scatter and an all-gather in one kernel. Rows are
// dealt out to the members; each sums its rows, which the others have pushed into its inbox, in group order, and pushes the sums to
// all. A member sends 2 (n - 1) / n of a message instead of the n - 1 of one shot, for one more hop.
//
// A block carries one row, whose owner's block sums it; blocks start in order of their rows, so that a row that is waited for is
// under way everywhere. Flags carry the call's number. Inboxes are used by turns (two), as in one_shot.cu: a member begins call
// e + 2 only after its call e + 1 has ended, for which the owner of row 0 has waited for all members, which had ended call e.
#include "kernels/cuda/peers.cuh"
#include "kernels/cuda/sum_rows.cuh"

namespace llmrt::cuda {

namespace {

template <typename T, bool kNorm, int kEach, int kThreads>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) two_shot_kernel(TwoShot p) {
  __shared__ float scratch[33];
  let_next_start();
  SummedRow<T, kNorm, kEach> own(p);
  own.load_weight();
  wait_for_previous();
  const uint32_t epoch = begin_call(p);
  const int64_t turn = static_cast<int64_t>(epoch & 1) * p.box.turn_bytes, row = blockIdx.x;
  const int owner = static_cast<int>(row % p.count);
  const int64_t row_bytes = p.H * static_cast<int64_t>(sizeof(T)), place = row / p.count;
  const auto source = [&](int member, int from) {
    return static_cast<char *>(p.inbox[member]) + turn + from * p.box.source_bytes;
  };
  const auto results = [&](int member) { return static_cast<char *>(p.inbox[member]) + turn + p.box.results_offset; };
  const auto source_flag = [&](int member, int from) {
    return reinterpret_cast<uint32_t *>(source(member, from) + p.box.flags_offset) + place;
  };
  const auto result_flag = [&](int member) {
    return reinterpret_cast<uint32_t *>(static_cast<char *>(p.inbox[member]) + turn + p.box.result_flags_offset) + row;
  };
  const int r = static_cast<int>(threadIdx.x);
  if (owner != p.rank) {
    own.each([&](int c, int) {
      *reinterpret_cast<uint4 *>(source(owner, p.rank) + place * row_bytes + c * kChunk) =
          *reinterpret_cast<const uint4 *>(own.data() + c * kChunk);
    });
    own.load_residual();
    __syncthreads();
    if (r == 0) {
      store_flag(source_flag(owner, p.rank), epoch);
      spin(p.host.given_up, [&] { return load_flag(result_flag(p.rank)) == epoch; });
    }
    __syncthreads();
    own.each([&](int c, int j) {
      own.sum[j].clear();
      own.sum[j].add(load_volatile(results(p.rank) + row * row_bytes + c * kChunk));
    });
  } else {
    own.load_residual();
    if (r < p.count && r != p.rank)
      spin(p.host.given_up, [&] { return load_flag(source_flag(p.rank, r)) == epoch; });
    __syncthreads();
    own.each([&](int c, int j) {
      own.sum[j].clear();
      for (int from = 0; from < p.count; ++from)
        own.sum[j].add(from == p.rank ? *reinterpret_cast<const uint4 *>(own.data() + c * kChunk)
                                      : load_volatile(source(p.rank, from) + place * row_bytes + c * kChunk));
      const uint4 rounded = own.sum[j].bits(); // what the others get, and go on with
      for (int to = 0; to < p.count; ++to)
        if (to != p.rank)
          *reinterpret_cast<uint4 *>(results(to) + row * row_bytes + c * kChunk) = rounded;
      own.sum[j].clear();
      own.sum[j].add(rounded);
    });
    __syncthreads();
    if (r < p.count && r != p.rank)
      store_flag(result_flag(r), epoch);
  }
  own.finish(scratch);
  end_call(p, epoch);
}

template <typename T, bool kNorm> void run(const TwoShot &p, cudaStream_t stream) {
  const int64_t chunks = p.H / Chunk<T>::kElements;
  if (chunks <= 512)
    launch_rows(two_shot_kernel<T, kNorm, 2, 256>, p, 2, stream);
  else if (chunks <= 1024)
    launch_rows(two_shot_kernel<T, kNorm, 2, 512>, p, 2, stream);
  else
    launch_rows(two_shot_kernel<T, kNorm, 4, 1024>, p, 4, stream);
}

} // namespace

TwoShotShape two_shot_inbox(int count, int64_t most_bytes, int64_t most_row_bytes, int64_t most_rows) {
  auto round = [](int64_t bytes) { return ceil_div(bytes, 256) * 256; };
  TwoShotShape box;
  box.flags_offset = round(most_bytes / count + most_row_bytes);
  box.source_bytes = box.flags_offset + round(ceil_div(most_rows, count) * 4);
  box.results_offset = box.source_bytes * count;
  box.result_flags_offset = box.results_offset + round(most_bytes);
  box.turn_bytes = box.result_flags_offset + round(most_rows * 4);
  return box;
}

void two_shot_all_reduce(const TwoShot &p, cudaStream_t stream) {
  if (p.T <= 0)
    return;
  with_type(p.act, [&](auto type) {
    using T = decltype(type);
    p.norm.out ? run<T, true>(p, stream) : run<T, false>(p, stream);
  });
}

} // namespace llmrt::cuda
