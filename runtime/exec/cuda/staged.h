// Collectives through host memory, for GPUs that cannot reach each other's: rows are copied out, the host communicator does the
// rest, and rows are copied in again. Waits for the stream each time.
#pragma once

#include "runtime/comm/communicator.h"
#include "runtime/exec/cuda/device_part.h"
#include "runtime/exec/cuda/handles.h"

#include <cstdint>
#include <vector>

namespace llmrt::exec::cuda {

class Staged {
public:
  explicit Staged(comm::Communicator &host) : host_(host) {}

  // In place; summed in f32, in group order.
  void all_reduce(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream);
  // `widths`: columns of each member.
  void gather(uint32_t group, uint32_t seq, int root, bool receives, const DevicePart &out, const DevicePart &in,
              const std::vector<int64_t> &widths, cudaStream_t stream);
  // The same tokens on all `members`: those of the member at position `root`, which `sends`.
  void broadcast(uint32_t group, uint32_t seq, size_t members, int root, bool sends, int32_t *tokens, size_t count,
                 cudaStream_t stream);
  void send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream);
  void recv(uint32_t peer, uint32_t seq, const DevicePart &out, cudaStream_t stream);

private:
  std::byte *copy_out(PinnedMemory &to, const DevicePart &from, cudaStream_t stream);
  void copy_in(const DevicePart &to, const std::byte *from, cudaStream_t stream);

  comm::Communicator &host_;
  PinnedMemory rows_, whole_;
  std::vector<float> sums_;
};

} // namespace llmrt::exec::cuda
