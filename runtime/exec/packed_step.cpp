#include "runtime/exec/packed_step.h"

#include <cstring>

namespace llmrt::exec {

namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kReserved = 256; // each list's room is a multiple of it, as the plan's ledger counts it (cudaStepInputs())

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
size_t room(size_t count, size_t size) { return (count * size + kReserved - 1) / kReserved * kReserved; }

} // namespace

size_t packed_bytes(const StepLimits &limits) {
  const size_t tokens = limits.max_batched_tokens, seqs = limits.max_num_seqs, rows = limits.max_logits_rows;
  const size_t pages = (size_t{limits.max_model_len} + limits.page_size - 1) / limits.page_size;
  return room(tokens, sizeof(int64_t)) + room(rows, sizeof(PackedDraw)) + 3 * room(tokens, 4) + 2 * room(seqs + 1, 4) + room(seqs, 4) +
         room(rows, 4) + room(seqs * pages, 4);
}

PackedStep pack(const StepBatch &batch, bool draws, std::byte *to) {
  PackedStep at;
  const auto add = [&](const auto &list) {
    const size_t begin = at.bytes, bytes = list.size() * sizeof(list[0]);
    if (bytes)
      std::memcpy(to + begin, list.data(), bytes);
    at.bytes += aligned(bytes);
    return begin;
  };
  at.slots = add(batch.slot_mapping);
  at.draws = at.bytes;
  if (draws) {
    auto *row = reinterpret_cast<PackedDraw *>(to + at.draws);
    for (const RowSampling &r : batch.sampling)
      *row++ = {r.draw ? r.temperature : 0, r.top_p, r.min_p, r.top_k, r.seed, r.counter};
    at.bytes += aligned(batch.sampling.size() * sizeof(PackedDraw));
  }
  at.ids = add(batch.ids);
  at.positions = add(batch.positions);
  at.from_rows = add(batch.from_rows);
  at.seq_starts = add(batch.seq_starts);
  at.context_lens = add(batch.context_lens);
  at.logits_rows = add(batch.logits_rows);
  at.page_starts = add(batch.page_starts);
  at.pages = add(batch.pages);
  return at;
}

} // namespace llmrt::exec
