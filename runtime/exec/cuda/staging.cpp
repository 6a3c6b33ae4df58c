#include "runtime/exec/cuda/staging.h"

#include <algorithm>

namespace llmrt::exec::cuda {

namespace {

// Slots a worker: one is filled while the other is on its way. More cost more than they bring: pinning takes 0.6 s a GiB.
constexpr size_t kSlots = 2;
// Pinned memory in all. Only pieces that are larger than this (single rows, absurdly long) make it more.
constexpr size_t kMostBytes = size_t(512) << 20;
constexpr size_t kAlign = 4096;

} // namespace

StagingSink::~StagingSink() {
  for (Worker &worker : workers_)
    for (auto &[device, lane] : worker.lanes) {
      cudaSetDevice(device);
      cudaStreamSynchronize(lane->stream);
    }
}

unsigned StagingSink::prepare(size_t largest, unsigned workers) {
  const size_t slot = std::max(kAlign, (largest + kAlign - 1) / kAlign * kAlign);
  const size_t allowed = std::clamp<size_t>(kMostBytes / (slot * kSlots), 1, workers);
  memory_ = PinnedMemory(slot * kSlots * allowed);
  workers_ = std::vector<Worker>(allowed);
  for (size_t i = 0; i < allowed * kSlots; ++i)
    workers_[i / kSlots].slots.push_back({memory_.data() + i * slot, nullptr});
  return static_cast<unsigned>(allowed);
}

std::byte *StagingSink::open(unsigned worker, uint32_t rank, uint64_t offset, size_t bytes) {
  Worker &w = workers_.at(worker);
  Slot &slot = w.slots[w.next];
  if (slot.copied) {
    LLMRT_CHECK(cudaEventSynchronize(*slot.copied));
    slot.copied = nullptr;
  }
  w.rank = rank;
  w.offset = offset;
  w.bytes = bytes;
  return slot.data;
}

void StagingSink::close(unsigned worker) {
  Worker &w = workers_[worker];
  const Destination &to = ranks_.at(w.rank);
  LLMRT_CHECK(cudaSetDevice(to.device));
  std::unique_ptr<Lane> &lane = w.lanes[to.device];
  if (!lane) {
    lane = std::make_unique<Lane>();
    for (size_t i = 0; i < w.slots.size(); ++i)
      lane->events.push_back(std::make_unique<Event>());
  }
  Slot &slot = w.slots[w.next];
  LLMRT_CHECK(cudaMemcpyAsync(to.data + w.offset, slot.data, w.bytes, cudaMemcpyHostToDevice, lane->stream));
  slot.copied = lane->events[w.next].get();
  LLMRT_CHECK(cudaEventRecord(*slot.copied, lane->stream));
  w.next = (w.next + 1) % w.slots.size();
}

void StagingSink::finish() {
  for (Worker &worker : workers_)
    for (auto &[device, lane] : worker.lanes) {
      LLMRT_CHECK(cudaSetDevice(device));
      LLMRT_CHECK(cudaStreamSynchronize(lane->stream));
    }
}

} // namespace llmrt::exec::cuda
