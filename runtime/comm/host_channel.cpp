// Copies of rows in and out of a channel's slots.
#include "runtime/comm/host_channel.h"

#include <cstring>

namespace llmrt::comm {

HostChannel::HostChannel(uint32_t from, uint32_t to, uint32_t slots, uint64_t slot_bytes)
    : from_(from), to_(to), slot_bytes_(slot_bytes), slots_(slots) {
  for (Slot &slot : slots_)
    slot.bytes.reset(new std::byte[slot_bytes]); // left uninitialised on purpose: pages come with use
}

void HostChannel::fill(const MessageTag &tag, const ConstBlock &in) {
  const uint64_t sent = sent_.load(std::memory_order_relaxed);
  Slot &slot = slots_[sent % slots_.size()];
  slot.tag = tag;
  const auto *source = static_cast<const std::byte *>(in.data);
  for (size_t row = 0; row < in.rows; ++row)
    std::memcpy(slot.bytes.get() + row * in.row_bytes, source + row * in.stride, in.row_bytes);
  sent_.store(sent + 1, std::memory_order_release);
  filled_.advance();
}

void HostChannel::empty(const Block &out) {
  const uint64_t taken = taken_.load(std::memory_order_relaxed);
  const Slot &slot = slots_[taken % slots_.size()];
  auto *target = static_cast<std::byte *>(out.data);
  for (size_t row = 0; row < out.rows; ++row)
    std::memcpy(target + row * out.stride, slot.bytes.get() + row * out.row_bytes, out.row_bytes);
  taken_.store(taken + 1, std::memory_order_release);
  room_.advance();
}

void HostChannel::close() {
  filled_.close();
  room_.close();
}

} // namespace llmrt::comm
