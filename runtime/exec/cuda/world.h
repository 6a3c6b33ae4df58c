// How the ranks of one process reach each other's device memory. Ranks meet on the host (with the host communicator's
// deadlines and sequence numbers), exchange pointers and events there, and let kernels and copies read their peers' memory:
// over P2P where GPUs differ, directly where ranks share one. With one GPU a rank, NCCL carries the sums.
#pragma once

#include "kernels/cuda/dtype.h"
#include "runtime/comm/host_world.h"
#include "runtime/exec/cuda/handles.h"
#include "runtime/plan/loaded_plan.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace llmrt::exec::cuda {

// [rows, cols] elements on some device, row stride ld.
struct DevicePart {
  std::byte *data = nullptr;
  int64_t ld = 0, rows = 0, cols = 0;
  llmrt::cuda::DType type = llmrt::cuda::DType::f32;
};

// One rank's end. Used by that rank's thread alone, with its device current. All calls queue work on the stream; data
// may be reused by what is queued behind them. They throw comm::Aborted when the world has ended.
class RankLink {
public:
  // `devices[r]`: the CUDA device of each rank. `in_flight`: steps that may be under way at once.
  RankLink(const plan::LoadedPlan &plan, uint32_t rank, const std::vector<int> &devices, comm::Communicator &host,
           unsigned in_flight);
  ~RankLink();

  void begin_step(uint64_t step) { host_.begin_step(step); }

  // In place sum over the group, in group order, the same bits on every member.
  void all_reduce(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream);
  // Columns of all members in group order to `out`; on the member at position `root` only, or on all where root < 0.
  void gather(uint32_t group, uint32_t seq, int root, const DevicePart &out, const DevicePart &in, cudaStream_t stream);
  // The same [count] tokens on all ranks: those at `tokens` on rank `root`. Only where has_everyone().
  void hand_round_tokens(int32_t *tokens, size_t count, uint32_t root, cudaStream_t stream);
  void send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream);
  void recv(uint32_t peer, uint32_t seq, const DevicePart &out, cudaStream_t stream);

  // Whether all collectives of this rank go through NCCL.
  bool stays_in_stream() const { return nccl_.size() == own_groups_; }

  // Whether some group has all ranks of the plan, which hand_round_tokens() takes.
  static bool has_everyone(const plan::LoadedPlan &plan);

  size_t bytes() const;

private:
  struct Offer; // what ranks tell each other
  const std::vector<uint32_t> &members(uint32_t group) const { return groups_[group]; }
  std::vector<Offer> exchange(uint32_t group, uint32_t seq, const Offer &mine);
  void finish(uint32_t group, uint32_t seq, cudaStream_t stream);
  bool via_nccl(uint32_t group) const { return nccl_.count(group) != 0; }
  void start_nccl(uint32_t group, const std::vector<int> &devices);
  void gather_nccl(uint32_t group, int root, const DevicePart &out, const DevicePart &in, cudaStream_t stream);
  std::byte *scratch(size_t bytes);

  uint32_t rank_, everyone_ = 0; // the group of all ranks
  comm::Communicator &host_;
  int64_t max_logits_rows_;
  std::vector<std::vector<uint32_t>> groups_;
  std::map<uint32_t, ncclComm_t> nccl_; // by group
  size_t own_groups_ = 0;               // of which this rank is a member
  std::map<std::pair<uint32_t, int64_t>, std::vector<int64_t>> widths_; // of gathers: columns of each member
  std::vector<std::unique_ptr<Event>> ready_, done_;
  size_t next_event_ = 0;
  DeviceMemory scratch_;

  struct Channel { // to one peer: staging slots used in turn, one more than its messages under way
    std::vector<DeviceMemory> slots;
    std::vector<std::unique_ptr<Event>> events;
    size_t next = 0;
  };
  std::map<uint32_t, Channel> channels_;
};

} // namespace llmrt::exec::cuda
