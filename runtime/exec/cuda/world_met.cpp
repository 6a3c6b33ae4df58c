// Sums, gathers and tokens of ranks that meet on the host: they exchange pointers and events there and read each other's memory.
#include "kernels/cuda/peers.h"
#include "kernels/cuda/rank_sum.h"
#include "kernels/cuda/rows.h"
#include "runtime/exec/cuda/meeting.h"

#include <algorithm>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

// Nobody overwrites what a peer may still read: the stream waits for what every member has queued so far.
void RankLink::finish(uint32_t group, uint32_t seq, cudaStream_t stream) {
  Event &done = *done_[next_event_ % kEvents];
  LLMRT_CHECK(cudaEventRecord(done, stream));
  Offer mine;
  mine.event = done;
  for (const Offer &offer : exchange(group, seq, mine))
    LLMRT_CHECK(cudaStreamWaitEvent(stream, offer.event, 0));
  ++next_event_;
}

void RankLink::sum_met(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream) {
  const int64_t row = data.cols * data.size(), most = std::max<int64_t>(1, kMetScratch / row);
  std::byte *sum = scratch(static_cast<size_t>(std::min(data.rows, most) * row));
  Event &ready = *ready_[next_event_ % kEvents];
  LLMRT_CHECK(cudaEventRecord(ready, stream));
  Offer mine;
  mine.data = data.data, mine.ld = data.ld, mine.rows = data.rows, mine.cols = data.cols, mine.event = ready;
  const std::vector<Offer> offers = exchange(group, 2 * seq, mine);
  if (offers.size() > static_cast<size_t>(k::kMaxPeers))
    throw Error("a sum over " + std::to_string(offers.size()) + " ranks that share a GPU is more than the " +
                std::to_string(k::kMaxPeers) + " of this backend");
  k::PeerSum call{};
  call.data = sum, call.ld = data.cols, call.count = static_cast<int>(offers.size());
  call.H = data.cols, call.act = data.type;
  for (const Offer &offer : offers)
    LLMRT_CHECK(cudaStreamWaitEvent(stream, offer.event, 0));
  for (int64_t first = 0; first < data.rows; first += most) {
    call.T = std::min(most, data.rows - first);
    for (size_t i = 0; i < offers.size(); ++i)
      call.parts[i] = offers[i].data + first * offers[i].ld * data.size(), call.ld_parts[i] = offers[i].ld;
    k::peer_sum(call, stream);
    finish(group, 2 * seq + 1, stream);
    k::copy_rows(data.data + first * data.ld * data.size(), data.ld * data.size(), sum, row, call.T, row, stream);
  }
}

void RankLink::gather_met(uint32_t group, uint32_t seq, int root, const DevicePart &out, const DevicePart &in,
                          cudaStream_t stream) {
  const int64_t size = in.size();
  Event &ready = *ready_[next_event_ % kEvents];
  LLMRT_CHECK(cudaEventRecord(ready, stream));
  Offer mine;
  mine.data = in.data, mine.ld = in.ld, mine.rows = in.rows, mine.cols = in.cols, mine.event = ready;
  const std::vector<Offer> offers = exchange(group, 2 * seq, mine);
  if (root < 0 || root == position_) {
    int64_t column = 0;
    for (const Offer &offer : offers) {
      LLMRT_CHECK(cudaStreamWaitEvent(stream, offer.event, 0));
      LLMRT_CHECK(cudaMemcpy2DAsync(out.data + column * size, static_cast<size_t>(out.ld * size), offer.data,
                                    static_cast<size_t>(offer.ld * size), static_cast<size_t>(offer.cols * size),
                                    static_cast<size_t>(offer.rows), cudaMemcpyDefault, stream));
      column += offer.cols;
    }
  }
  finish(group, 2 * seq + 1, stream);
}

void RankLink::tokens_met(int32_t *tokens, size_t count, int root, cudaStream_t stream) {
  Event &ready = *ready_[next_event_ % kEvents];
  LLMRT_CHECK(cudaEventRecord(ready, stream));
  Offer mine;
  mine.data = reinterpret_cast<std::byte *>(tokens), mine.event = ready;
  const Offer from = exchange(*group_, kTokensSeq, mine)[static_cast<size_t>(root)];
  if (root != position_) {
    LLMRT_CHECK(cudaStreamWaitEvent(stream, from.event, 0));
    LLMRT_CHECK(cudaMemcpyAsync(tokens, from.data, count * sizeof(int32_t), cudaMemcpyDefault, stream));
  }
  finish(*group_, kTokensSeq + 1, stream);
}

} // namespace llmrt::exec::cuda
