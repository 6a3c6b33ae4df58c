// Rows that stages pass on: through a staging slot in the sender's memory where GPUs reach each other's, else through the host's.
#include "kernels/cuda/rows.h"
#include "runtime/exec/cuda/meeting.h"
#include "runtime/plan/access.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

// Slots are there, and counted, from the start: a message is of as many rows as a step can have.
void RankLink::join_stages(const plan::LoadedPlan &plan) {
  const plan::Limits &limits = *plan.root().limits();
  std::map<uint32_t, size_t> largest; // message to each peer
  for (const plan::Op *op : plan::each(plan.program(rank_).ops())) {
    if (const plan::Recv *recv = op->op_as_Recv(); recv && reachable(rank_, recv->peer()))
      enable_access(options_.devices[recv->peer()]);
    const plan::Send *send = op->op_as_Send();
    if (!send || !reachable(rank_, send->peer()))
      continue;
    const plan::Buffer &buffer = plan.buffer(rank_, *send->input());
    const uint64_t rows = buffer.rows() == plan::Rows::Tokens ? limits.max_batched_tokens() : limits.max_logits_rows();
    size_t &bytes = largest[send->peer()];
    bytes = std::max<size_t>(bytes, rows * send->input()->cols() * plan::block_bytes(buffer.dtype()));
  }
  for (const auto &[peer, bytes] : largest) {
    Channel &channel = channels_[peer];
    for (unsigned i = 0; i <= options_.in_flight; ++i) {
      channel.slots.emplace_back(bytes, "messages of rank " + std::to_string(rank_) + " to rank " + std::to_string(peer));
      channel.events.push_back(std::make_unique<Event>());
    }
  }
}

// The same answer on both sides: each must be able to read the other's memory, and the plan, unless told otherwise, must say so.
bool RankLink::reachable(uint32_t a, uint32_t b) const {
  const int here = options_.devices[a], there = options_.devices[b];
  return options_.collectives != Collectives::Host && (options_.collectives == Collectives::Peer || joined_by_peers(plan_, a, b)) &&
         can_access(here, there) && can_access(there, here);
}

// A slot is used again when as many sends have followed as there are slots, which is more than steps can be under way: the
// step that used it has ended.
void RankLink::send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream) {
  if (!reachable(rank_, peer))
    return staged_.send(peer, seq, in, stream);
  Channel &channel = channels_[peer];
  const int64_t size = in.size();
  const size_t slot = channel.next++ % channel.slots.size();
  k::copy_rows(channel.slots[slot].data(), in.cols * size, in.data, in.ld * size, in.rows, in.cols * size, stream);
  LLMRT_CHECK(cudaEventRecord(*channel.events[slot], stream));
  Offer mine;
  mine.data = channel.slots[slot].data(), mine.ld = in.cols, mine.rows = in.rows, mine.cols = in.cols;
  mine.event = *channel.events[slot];
  host_.send(peer, seq, {&mine, 1, sizeof(Offer), sizeof(Offer)});
}

void RankLink::recv(uint32_t peer, uint32_t seq, const DevicePart &out, cudaStream_t stream) {
  if (!reachable(rank_, peer))
    return staged_.recv(peer, seq, out, stream);
  Offer theirs;
  host_.recv(peer, seq, {&theirs, 1, sizeof(Offer), sizeof(Offer)});
  const size_t size = static_cast<size_t>(out.size());
  received_[peer] = theirs.event;
  LLMRT_CHECK(cudaStreamWaitEvent(stream, theirs.event, 0));
  LLMRT_CHECK(cudaMemcpy2DAsync(out.data, static_cast<size_t>(out.ld) * size, theirs.data, static_cast<size_t>(theirs.ld) * size,
                                static_cast<size_t>(theirs.cols) * size, static_cast<size_t>(theirs.rows), cudaMemcpyDefault,
                                stream));
}

// What waits for work of a device that has failed fails like it, and CUDA may tell the waiting rank before it tells the other.
void RankLink::let_senders_speak() const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::min(1.0, options_.deadline_s));
  for (const auto &[peer, event] : received_) {
    cudaSetDevice(options_.devices[peer]);
    const cudaError_t status = cudaEventQuery(event);
    const bool failed = status != cudaSuccess && status != cudaErrorNotReady;
    while (failed && !world_.aborted() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  cudaSetDevice(options_.devices[rank_]);
}

} // namespace llmrt::exec::cuda
