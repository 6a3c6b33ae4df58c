// NCCL's communicator of one group, from the side of one rank: sums and gathers that stay in the stream.
#pragma once

#include "runtime/comm/host_world.h"
#include "runtime/exec/cuda/device_part.h"
#include "runtime/exec/cuda/handles.h"

#include <nccl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace llmrt::exec::cuda {

class NcclGroup {
public:
  // Which members a gather goes to: one (its position), all, or there is none.
  static constexpr int kToAll = -1, kNoGather = -2;

  // Joins the group on the current device, and makes the connections of sums and of gathers to `gathers_to`; every member calls,
  // each from its own thread. Throws llmrt::Error where the others do not come within `deadline_s` seconds, and comm::Aborted
  // where `world` ends meanwhile. `who`: the rank, for the error.
  NcclGroup(const ncclUniqueId &id, int position, int count, int gathers_to, double deadline_s, const comm::HostWorld &world,
            const std::string &who);
  ~NcclGroup() { abort(); }
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;

  // In place; rows without gaps.
  void all_reduce(const DevicePart &data, cudaStream_t stream);
  // Columns of all members side by side in `out`, on member `root` or, where it is negative, on all. `widths`: columns of each
  // member. `parts` has room for all of them, where this member receives.
  void gather(int root, const DevicePart &out, const DevicePart &in, const std::vector<int64_t> &widths, std::byte *parts,
              cudaStream_t stream);

  // The same tokens on all members: those of member `root`.
  void broadcast(int32_t *tokens, size_t count, int root, cudaStream_t stream);

  // What NCCL has taken of the device's memory, code and buffers.
  size_t bytes() const { return bytes_; }

  // Kernels under way end, whatever the others do. The group is of no use afterwards.
  void abort();

private:
  ncclComm_t comm_ = nullptr;
  int position_, count_;
  size_t bytes_ = 0;
};

} // namespace llmrt::exec::cuda
