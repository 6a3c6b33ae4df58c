// Rows that stages pass on: through a staging slot in the sender's memory where GPUs reach each other's, else through the host's.
#include "kernels/cuda/kernels.h"
#include "runtime/exec/cuda/meeting.h"
#include "runtime/plan/access.h"

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

void RankLink::join_stages(const plan::LoadedPlan &plan) {
  for (const plan::Op *op : plan::each(plan.program(rank_).ops())) {
    if (const plan::Recv *recv = op->op_as_Recv(); recv && reachable(recv->peer()))
      enable_access(options_.devices[recv->peer()]);
    const plan::Send *send = op->op_as_Send();
    if (!send || !reachable(send->peer()))
      continue;
    Channel &channel = channels_[send->peer()];
    for (unsigned i = 0; i <= options_.in_flight; ++i) {
      channel.slots.emplace_back();
      channel.events.push_back(std::make_unique<Event>());
    }
  }
}

// The same answer on both sides: each must be able to read the other's memory.
bool RankLink::reachable(uint32_t peer) const {
  const int here = options_.devices[rank_], there = options_.devices[peer];
  return options_.collectives != Collectives::Host && can_access(here, there) && can_access(there, here);
}

// A slot is used again when as many sends have followed as there are slots, which is more than steps can be under way: the
// step that used it has ended.
void RankLink::send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream) {
  if (!reachable(peer))
    return staged_.send(peer, seq, in, stream);
  Channel &channel = channels_[peer];
  const int64_t size = in.size();
  const size_t slot = channel.next++ % channel.slots.size();
  const size_t bytes = static_cast<size_t>(in.rows * in.cols * size);
  if (channel.slots[slot].size() < bytes)
    channel.slots[slot] = DeviceMemory(bytes, "a message between stages");
  k::copy_rows(channel.slots[slot].data(), in.cols * size, in.data, in.ld * size, in.rows, in.cols * size, stream);
  LLMRT_CHECK(cudaEventRecord(*channel.events[slot], stream));
  Offer mine;
  mine.data = channel.slots[slot].data(), mine.ld = in.cols, mine.rows = in.rows, mine.cols = in.cols;
  mine.event = *channel.events[slot];
  host_.send(peer, seq, {&mine, 1, sizeof(Offer), sizeof(Offer)});
}

void RankLink::recv(uint32_t peer, uint32_t seq, const DevicePart &out, cudaStream_t stream) {
  if (!reachable(peer))
    return staged_.recv(peer, seq, out, stream);
  Offer theirs;
  host_.recv(peer, seq, {&theirs, 1, sizeof(Offer), sizeof(Offer)});
  const size_t size = static_cast<size_t>(out.size());
  LLMRT_CHECK(cudaStreamWaitEvent(stream, theirs.event, 0));
  LLMRT_CHECK(cudaMemcpy2DAsync(out.data, static_cast<size_t>(out.ld) * size, theirs.data, static_cast<size_t>(theirs.ld) * size,
                                static_cast<size_t>(theirs.cols) * size, static_cast<size_t>(theirs.rows), cudaMemcpyDefault,
                                stream));
}

} // namespace llmrt::exec::cuda
