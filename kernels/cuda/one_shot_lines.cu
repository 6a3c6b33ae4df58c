// All-reduce in one shot over links that keep lines whole (lines.cuh), of messages that are over before much can be summed beside them.
//
// There are no more blocks than fit: each pushes all its rows before it waits for the first, so that the links never idle while
// rows are summed. Epochs, turns and order of the sums are one_shot.cu's. The inbox of lines is nobody else's, so that a line's
// last chunk has never been anything but an epoch.
#include "kernels/cuda/lines.cuh"
#include "kernels/cuda/one_shot_lines.h"

namespace llmrt::cuda {

namespace {

template <typename T, bool kNorm, int kEach, int kThreads>
__global__ void __launch_bounds__(kThreads, kThreads <= 512 ? 2 : 1) lines_kernel(OneShot p) {
  __shared__ float scratch[33];
  let_next_start();
  SummedRow<T, kNorm, kEach, InLines> own(p);
  own.load_weight();
  wait_for_previous();
  const uint32_t epoch = begin_call(p);
  const int64_t turn = static_cast<int64_t>(epoch & 1) * p.box.turn_bytes + p.box.lines_offset;
  const int lines = lines_of(own.chunks), places = lines * InLines::kPlaces;
  // Where the row's place j lies in what member `from` has sent to member `to`.
  const auto message = [&](int to, int from, int j) {
    return static_cast<char *>(p.inbox[to]) + turn + from * p.box.source_bytes + own.row * lines * kLineBytes + own.place(j) * kChunk;
  };
  const auto load_own = [&](uint4(&mine)[kEach]) {
    own.each([&](int c, int j) { mine[j] = *reinterpret_cast<const uint4 *>(own.data() + c * kChunk); });
  };

  for (own.row = blockIdx.x; own.row < p.T; own.row += gridDim.x) {
    uint4 mine[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      mine[j] = make_uint4(epoch, epoch, epoch, epoch);
    load_own(mine);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      for (int to = 0; to < p.count; ++to) {
        __syncwarp(); // a line is one store of eight lanes
        if (to != p.rank && own.place(j) < places)
          store_volatile(message(to, p.rank, j), mine[j]);
      }
  }
  for (own.row = blockIdx.x; own.row < p.T; own.row += gridDim.x) {
    uint4 mine[kEach] = {};
    load_own(mine);
    own.load_residual();
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      own.sum[j].clear();
      for (int from = 0; from < p.count; ++from)
        own.sum[j].add(from == p.rank ? mine[j]
                                      : load_line(message(p.rank, from, j), own.place(j) < places, epoch, p.host.given_up));
    }
    own.finish(scratch);
  }
  end_call(p, epoch);
}

template <typename T, bool kNorm> void run(const OneShot &p, cudaStream_t stream) {
  const int64_t places = lines_of(static_cast<int>(p.H / Chunk<T>::kElements)) * InLines::kPlaces;
  const auto start = [&](auto kernel, int64_t each) {
    const int64_t threads = ceil_div(ceil_div(places, each), 32) * 32;
    const int64_t blocks = device_limits().sms * (each == 1 && threads <= 640 ? 2 : 1), rounds = ceil_div(p.T, blocks);
    launch(kernel, dim3(static_cast<unsigned>(ceil_div(p.T, rounds))), dim3(static_cast<unsigned>(threads)), 0, stream, p);
  };
  if (places <= 512)
    start(lines_kernel<T, kNorm, 1, 512>, 1);
  else if (places <= 1024)
    start(lines_kernel<T, kNorm, 1, 1024>, 1);
  else if (places <= 1280)
    start(lines_kernel<T, kNorm, 2, 640>, 2);
  else if (places <= 2048)
    start(lines_kernel<T, kNorm, 2, 1024>, 2);
  else
    start(lines_kernel<T, kNorm, 4, 1024>, 4);
}

} // namespace

int64_t lines_bytes(int64_t most_bytes, int64_t most_rows) {
  return ceil_div(most_bytes, InLines::kCarried * kChunk) * kLineBytes + most_rows * kLineBytes; // a row ends a line
}

bool lines_take(int64_t row_bytes) { return lines_of(static_cast<int>(row_bytes / kChunk)) * InLines::kPlaces <= kMostRowChunks; }

void one_shot_in_lines(const OneShot &p, cudaStream_t stream) {
  with_type(p.act, [&](auto type) {
    using T = decltype(type);
    p.norm.out ? run<T, true>(p, stream) : run<T, false>(p, stream);
  });
}

} // namespace llmrt::cuda
