// How the ranks of one process reach each other's device memory. A group's sums and gathers go, in this order of preference:
// by our kernels, in one shot or two, up to the sizes that the plan says; through NCCL, where every rank has a GPU of its own; by
// ranks meeting on the host, which exchange pointers and events there and read each other's memory; and through host memory,
// where GPUs cannot reach each other's. Stages are joined by the last two.
#pragma once

#include "runtime/comm/host_world.h"
#include "runtime/exec/cuda/device_part.h"
#include "runtime/exec/cuda/handles.h"
#include "runtime/exec/cuda/nccl_group.h"
#include "runtime/exec/cuda/pushed_sums.h"
#include "runtime/exec/cuda/staged.h"
#include "runtime/exec/cuda/token_rounds.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/loaded_plan.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace llmrt::exec::cuda {

struct RankLinkOptions {
  std::vector<int> devices; // CUDA device of each rank
  unsigned in_flight = 1;   // steps that may be under way at once
  double deadline_s = 60;
  Collectives collectives = Collectives::Auto;
  bool check_sequence = false; // ranks meet on the host before every operation and compare what they are about to do
};

// One rank's end. Used by that rank's thread alone, with its device current. All calls queue work on the stream; data
// may be reused by what is queued behind them. They throw comm::Aborted when the world has ended.
class RankLink {
public:
  // Meets the other ranks: all must be constructing theirs.
  RankLink(const plan::LoadedPlan &plan, uint32_t rank, const RankLinkOptions &options, comm::HostWorld &world);

  void begin_step(uint64_t step) { host_.begin_step(step); }

  // In place sum over the group, the same bits on every member.
  void all_reduce(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream);
  // Whether the sum of this data is pushed, in one shot or in two, which can take the norm that follows along.
  bool pushes(const DevicePart &data, const PushLimits &limits) const;
  void all_reduce_pushed(uint32_t seq, const DevicePart &data, const PushLimits &limits, const SumNorm &norm, cudaStream_t stream);
  // Columns of all members in group order to `out`; on the member at position `root` only, or on all where root < 0.
  void gather(uint32_t group, uint32_t seq, int root, const DevicePart &out, const DevicePart &in, cudaStream_t stream);
  // The same [count] tokens on all ranks: those at `tokens` on rank `root`. Only where has_everyone().
  void hand_round_tokens(int32_t *tokens, size_t count, uint32_t root, cudaStream_t stream);
  // Whether the ranks can draw greedy tokens together, each from its own columns of the logits: then all ranks have them.
  bool draws_together() const { return tokens_ != nullptr; }
  void sample_greedy(int32_t *tokens, size_t count, const OwnLogits &logits, cudaStream_t stream);
  void send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream);
  void recv(uint32_t peer, uint32_t seq, const DevicePart &out, cudaStream_t stream);

  // Whether no collective of this rank meets on the host.
  bool stays_in_stream() const { return (!group_ || nccl_) && !options_.check_sequence; }

  bool world_ended() const { return world_.aborted(); }
  std::string why_ended() const { return world_.reason(); }
  // What is queued stops waiting for other ranks; its results are worthless. Call both before waiting for the stream when the
  // world has ended: the first is for our kernels and never blocks, the second for NCCL's, once graphs with its operations are
  // gone.
  void stop_waiting();
  void abort();
  // Where this rank's device has failed: so has, maybe, one whose rows it waits for. Lets that one's rank say so first, for a second.
  void let_senders_speak() const;
  // "in all_reduce 17 of group 'ranks 0-1'": what this rank has come to; empty before the first collective.
  std::string where() const;

  // Whether some group has all ranks of the plan, which hand_round_tokens() takes.
  static bool has_everyone(const plan::LoadedPlan &plan);

  size_t bytes() const;

private:
  struct Offer; // what ranks tell each other
  const std::vector<uint32_t> &members(uint32_t group) const { return groups_[group]; }
  std::vector<Offer> exchange(uint32_t group, uint32_t seq, const Offer &mine);
  std::vector<std::byte *> exchange_memory(std::byte *mine); // of the group's members, where each takes what the others write
  void join_group(uint32_t group);
  int gathers_to(uint32_t group) const;
  void join_pushed();
  void join_tokens();
  void join_stages(const plan::LoadedPlan &plan);
  void check_sequence(uint32_t group, uint32_t seq);
  void tell(uint32_t seq, cudaStream_t stream);
  void note(uint32_t seq);
  void sum_met(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream);
  void gather_met(uint32_t group, uint32_t seq, int root, const DevicePart &out, const DevicePart &in, cudaStream_t stream);
  void tokens_met(int32_t *tokens, size_t count, int root, cudaStream_t stream); // of the member at position `root`
  void finish(uint32_t group, uint32_t seq, cudaStream_t stream);
  const std::vector<int64_t> &widths(uint32_t group, const DevicePart &in);
  bool reachable(uint32_t a, uint32_t b) const;
  size_t scratch_bytes() const;
  std::byte *scratch(size_t bytes);

  const plan::LoadedPlan &plan_;
  uint32_t rank_;
  RankLinkOptions options_;
  comm::HostWorld &world_;
  comm::Communicator &host_;
  Staged staged_;
  int64_t max_logits_rows_;
  std::vector<std::vector<uint32_t>> groups_;

  // The group that this rank is a member of: a stage's, at most one.
  std::optional<uint32_t> group_;
  int position_ = 0;
  bool met_ = false; // its members can read each other's memory
  std::unique_ptr<NcclGroup> nccl_;
  std::unique_ptr<PushedSums> pushed_;
  std::unique_ptr<TokenRounds> tokens_;
  PinnedMemory at_; // seq of the collective under way on the device

  std::map<int64_t, std::vector<int64_t>> widths_; // of gathers, by own columns: columns of each member
  std::vector<std::unique_ptr<Event>> ready_, done_;
  size_t next_event_ = 0;
  DeviceMemory scratch_;

  struct Channel { // to one peer: staging slots used in turn, one more than its messages under way
    std::vector<DeviceMemory> slots;
    std::vector<std::unique_ptr<Event>> events;
    size_t next = 0;
  };
  std::map<uint32_t, Channel> channels_;
  std::map<uint32_t, cudaEvent_t> received_; // behind the last rows of each peer
};

} // namespace llmrt::exec::cuda
