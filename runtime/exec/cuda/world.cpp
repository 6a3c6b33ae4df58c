#include "runtime/exec/cuda/world.h"

#include "kernels/cuda/kernels.h"
#include "runtime/plan/access.h"

#include <algorithm>
#include <cstring>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

// Plain bytes, exchanged through host memory.
struct RankLink::Offer {
  std::byte *data = nullptr;
  int64_t ld = 0, rows = 0, cols = 0;
  cudaEvent_t event = nullptr;
  ncclUniqueId id{};
};

namespace {

// Lets kernels of the current device read the memory of another.
void enable_access(int to) {
  int from = 0;
  LLMRT_CHECK(cudaGetDevice(&from));
  if (from == to)
    return;
  int can = 0;
  LLMRT_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
  if (!can)
    throw Error("CUDA device " + std::to_string(from) + " cannot read the memory of device " + std::to_string(to) +
                " (no P2P): ranks of one stage on these devices need NCCL, and stages cannot be joined over them");
  if (const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0); status == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    LLMRT_CHECK(status);
}

ncclDataType_t library_type(k::DType t) {
  return t == k::DType::f32 ? ncclFloat32 : t == k::DType::f16 ? ncclFloat16 : ncclBfloat16;
}

// The first group with all ranks; the number of groups if there is none.
uint32_t group_of_all(const plan::LoadedPlan &plan) {
  uint32_t index = 0;
  for (const plan::Group *group : plan::each(plan.root().groups())) {
    std::vector<uint32_t> ranks(plan::each(group->ranks()).begin(), plan::each(group->ranks()).end());
    std::sort(ranks.begin(), ranks.end());
    if (std::unique(ranks.begin(), ranks.end()) == ranks.end() && ranks.size() == plan.num_ranks())
      break;
    ++index;
  }
  return index;
}

// Exchanges number the two meetings of a collective from its place in the plan; this one and the next are no collective's.
constexpr uint32_t kTokensSeq = 0xFFFFFFFE;

constexpr size_t kEvents = 64; // rotated; a step uses each long after its last use has completed

} // namespace

RankLink::RankLink(const plan::LoadedPlan &plan, uint32_t rank, const std::vector<int> &devices, comm::Communicator &host,
                   unsigned in_flight)
    : rank_(rank), everyone_(group_of_all(plan)), host_(host), max_logits_rows_(plan.root().limits()->max_logits_rows()) {
  for (const plan::Group *group : plan::each(plan.root().groups()))
    groups_.emplace_back(plan::each(group->ranks()).begin(), plan::each(group->ranks()).end());
  for (size_t i = 0; i < kEvents; ++i) {
    ready_.push_back(std::make_unique<Event>());
    done_.push_back(std::make_unique<Event>());
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    if (std::find(groups_[g].begin(), groups_[g].end(), rank) == groups_[g].end())
      continue;
    ++own_groups_;
    std::vector<int> used;
    for (uint32_t member : groups_[g])
      used.push_back(devices[member]);
    std::sort(used.begin(), used.end());
    const bool distinct = std::adjacent_find(used.begin(), used.end()) == used.end();
    if (distinct && used.size() > 1)
      start_nccl(g, devices);
    else
      for (uint32_t member : groups_[g])
        enable_access(devices[member]);
  }
  for (const plan::Op *op : plan::each(plan.program(rank).ops())) {
    if (const plan::Recv *recv = op->op_as_Recv())
      enable_access(devices[recv->peer()]);
    if (const plan::Send *send = op->op_as_Send()) {
      Channel &channel = channels_[send->peer()];
      for (unsigned i = 0; i <= in_flight; ++i) {
        channel.slots.emplace_back();
        channel.events.push_back(std::make_unique<Event>());
      }
    }
  }
}

RankLink::~RankLink() {
  for (auto &[group, comm] : nccl_)
    ncclCommAbort(comm);
}

void RankLink::start_nccl(uint32_t group, const std::vector<int> &) {
  const std::vector<uint32_t> &ranks = members(group);
  Offer mine;
  if (ranks[0] == rank_)
    LLMRT_CHECK(ncclGetUniqueId(&mine.id));
  const std::vector<Offer> offers = exchange(group, 0, mine);
  const int position = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
  ncclComm_t comm = nullptr;
  LLMRT_CHECK(ncclCommInitRank(&comm, static_cast<int>(ranks.size()), offers[0].id, position));
  nccl_[group] = comm;
}

// Every member's offer, in group order. Doubles as a meeting point: nobody leaves before all have come.
std::vector<RankLink::Offer> RankLink::exchange(uint32_t group, uint32_t seq, const Offer &mine) {
  const size_t count = members(group).size();
  std::vector<Offer> offers(count);
  const std::vector<uint64_t> bytes(count, sizeof(Offer));
  host_.all_gather(group, seq, {offers.data(), 1, count * sizeof(Offer), count * sizeof(Offer)},
                   {&mine, 1, sizeof(Offer), sizeof(Offer)}, bytes);
  return offers;
}

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

std::byte *RankLink::scratch(size_t bytes) {
  if (scratch_.size() < bytes) {
    LLMRT_CHECK(cudaDeviceSynchronize());
    scratch_ = DeviceMemory(bytes, "the scratch of collectives");
  }
  return scratch_.data();
}

void RankLink::all_reduce(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream) {
  if (data.rows == 0)
    return;
  const int64_t size = static_cast<int64_t>(k::dtype_bytes(data.type));
  if (via_nccl(group) && data.ld == data.cols) {
    LLMRT_CHECK(ncclAllReduce(data.data, data.data, static_cast<size_t>(data.rows * data.cols), library_type(data.type), ncclSum,
                              nccl_.at(group), stream));
    return;
  }
  std::byte *sum = scratch(static_cast<size_t>(data.rows * data.cols * size));
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
  call.T = data.rows, call.H = data.cols, call.act = data.type;
  for (size_t i = 0; i < offers.size(); ++i) {
    LLMRT_CHECK(cudaStreamWaitEvent(stream, offers[i].event, 0));
    call.parts[i] = offers[i].data, call.ld_parts[i] = offers[i].ld;
  }
  k::peer_sum(call, stream);
  finish(group, 2 * seq + 1, stream);
  k::copy_rows(data.data, data.ld * size, sum, data.cols * size, data.rows, data.cols * size, stream);
}

void RankLink::gather(uint32_t group, uint32_t seq, int root, const DevicePart &out, const DevicePart &in,
                      cudaStream_t stream) {
  if (in.rows == 0)
    return;
  if (via_nccl(group) && in.ld == in.cols)
    return gather_nccl(group, root, out, in, stream);
  const int64_t size = static_cast<int64_t>(k::dtype_bytes(in.type));
  Event &ready = *ready_[next_event_ % kEvents];
  LLMRT_CHECK(cudaEventRecord(ready, stream));
  Offer mine;
  mine.data = in.data, mine.ld = in.ld, mine.rows = in.rows, mine.cols = in.cols, mine.event = ready;
  const std::vector<Offer> offers = exchange(group, 2 * seq, mine);
  if (root < 0 || members(group)[static_cast<size_t>(root)] == rank_) {
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

// Members' columns come one behind the other into scratch, and are laid side by side from there. Widths differ by rank and
// are the plan's, so each member tells its own once, at the first gather.
void RankLink::gather_nccl(uint32_t group, int root, const DevicePart &out, const DevicePart &in, cudaStream_t stream) {
  const std::vector<uint32_t> &ranks = members(group);
  const int64_t size = static_cast<int64_t>(k::dtype_bytes(in.type));
  std::vector<int64_t> &widths = widths_[{group, in.cols}];
  if (widths.empty()) {
    Offer mine;
    mine.cols = in.cols;
    for (const Offer &offer : exchange(group, 0, mine))
      widths.push_back(offer.cols);
  }
  const ncclComm_t comm = nccl_.at(group);
  const bool receives = root < 0 || ranks[static_cast<size_t>(root)] == rank_;
  int64_t total = 0;
  for (int64_t width : widths)
    total += width;
  // As large as it will ever be: captured graphs keep the address.
  std::byte *parts = receives ? scratch(static_cast<size_t>(std::max(in.rows, max_logits_rows_) * total * size)) : nullptr;
  LLMRT_CHECK(ncclGroupStart());
  int64_t column = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (root < 0 || static_cast<int>(i) == root)
      LLMRT_CHECK(ncclSend(in.data, static_cast<size_t>(in.rows * in.cols), library_type(in.type), static_cast<int>(i), comm, stream));
    if (receives)
      LLMRT_CHECK(ncclRecv(parts + in.rows * column * size, static_cast<size_t>(in.rows * widths[i]), library_type(in.type),
                           static_cast<int>(i), comm, stream));
    column += widths[i];
  }
  LLMRT_CHECK(ncclGroupEnd());
  if (!receives)
    return;
  column = 0;
  for (int64_t width : widths) {
    k::copy_rows(out.data + column * size, out.ld * size, parts + in.rows * column * size, width * size, in.rows, width * size, stream);
    column += width;
  }
}

bool RankLink::has_everyone(const plan::LoadedPlan &plan) { return group_of_all(plan) < plan::size_of(plan.root().groups()); }

void RankLink::hand_round_tokens(int32_t *tokens, size_t count, uint32_t root, cudaStream_t stream) {
  if (count == 0)
    return;
  const std::vector<uint32_t> &ranks = members(everyone_);
  const auto position = std::find(ranks.begin(), ranks.end(), root) - ranks.begin();
  if (via_nccl(everyone_)) {
    LLMRT_CHECK(ncclBroadcast(tokens, tokens, count, ncclInt32, static_cast<int>(position), nccl_.at(everyone_), stream));
    return;
  }
  Event &ready = *ready_[next_event_ % kEvents];
  LLMRT_CHECK(cudaEventRecord(ready, stream));
  Offer mine;
  mine.data = reinterpret_cast<std::byte *>(tokens), mine.event = ready;
  const Offer from = exchange(everyone_, kTokensSeq, mine)[static_cast<size_t>(position)];
  if (root != rank_) {
    LLMRT_CHECK(cudaStreamWaitEvent(stream, from.event, 0));
    LLMRT_CHECK(cudaMemcpyAsync(tokens, from.data, count * sizeof(int32_t), cudaMemcpyDefault, stream));
  }
  finish(everyone_, kTokensSeq + 1, stream);
}

// A slot is used again when as many sends have followed as there are slots, which is more than steps can be under way: the
// step that used it has ended.
void RankLink::send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream) {
  Channel &channel = channels_[peer];
  const int64_t size = static_cast<int64_t>(k::dtype_bytes(in.type));
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
  Offer theirs;
  host_.recv(peer, seq, {&theirs, 1, sizeof(Offer), sizeof(Offer)});
  const size_t size = k::dtype_bytes(out.type);
  LLMRT_CHECK(cudaStreamWaitEvent(stream, theirs.event, 0));
  LLMRT_CHECK(cudaMemcpy2DAsync(out.data, static_cast<size_t>(out.ld) * size, theirs.data, static_cast<size_t>(theirs.ld) * size,
                                static_cast<size_t>(theirs.cols) * size, static_cast<size_t>(theirs.rows), cudaMemcpyDefault,
                                stream));
}

size_t RankLink::bytes() const {
  size_t bytes = scratch_.size();
  for (const auto &[peer, channel] : channels_)
    for (const DeviceMemory &slot : channel.slots)
      bytes += slot.size();
  return bytes;
}

} // namespace llmrt::exec::cuda
