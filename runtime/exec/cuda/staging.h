// Weights on their way to GPUs: threads read pieces into pinned memory, from where they are copied to the device while the
// next ones are read. No weight is ever whole on the host.
#pragma once

#include "runtime/exec/cuda/handles.h"
#include "runtime/exec/weight_sink.h"

#include <map>
#include <memory>
#include <vector>

namespace llmrt::exec::cuda {

class StagingSink final : public WeightSink {
public:
  struct Destination {
    std::byte *data = nullptr; // the rank's weight region, on the device
    int device = 0;
  };

  explicit StagingSink(std::vector<Destination> ranks) : ranks_(std::move(ranks)) {}
  ~StagingSink() override; // waits for the copies under way

  unsigned prepare(size_t largest, unsigned workers) override;
  std::byte *open(unsigned worker, uint32_t rank, uint64_t offset, size_t bytes) override;
  void close(unsigned worker) override;
  void finish() override;

private:
  struct Slot {
    std::byte *data = nullptr;
    Event *copied = nullptr; // of the copy that read it last; null: none did
  };
  struct Lane { // from a worker to a device
    Stream stream;
    std::vector<std::unique_ptr<Event>> events; // by slot: an event belongs to the device that it is recorded on
  };
  struct Worker {
    std::vector<Slot> slots;
    size_t next = 0;
    std::map<int, std::unique_ptr<Lane>> lanes; // by device
    // The open piece.
    uint32_t rank = 0;
    uint64_t offset = 0;
    size_t bytes = 0;
  };

  std::vector<Destination> ranks_;
  PinnedMemory memory_;
  std::vector<Worker> workers_;
};

} // namespace llmrt::exec::cuda
