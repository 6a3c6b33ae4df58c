#include "runtime/exec/cuda/inputs.h"

#include <algorithm>
#include <cstring>

namespace llmrt::exec::cuda {

StepInputs::StepInputs(const StepLimits &limits) {
  size_t end = 0;
  auto place = [&](size_t count, size_t size) {
    const size_t offset = end;
    end = (end + count * size + 255) / 256 * 256;
    return offset;
  };
  const size_t tokens = limits.max_batched_tokens, seqs = limits.max_num_seqs;
  ids_ = place(tokens, 4);
  positions_ = place(tokens, 4);
  slots_ = place(tokens, 8);
  seq_starts_ = place(seqs + 1, 4);
  context_lens_ = place(seqs, 4);
  logits_rows_ = place(limits.max_logits_rows, 4);
  stride_ = (limits.max_model_len + limits.page_size - 1) / limits.page_size;
  page_table_ = place(seqs * static_cast<size_t>(stride_), 4); // last: steps copy only the rows they use
  device_ = DeviceMemory(end, "step inputs");
  for (PinnedMemory &host : host_)
    host = PinnedMemory(end);
}

void StepInputs::upload(const Step &step, const StepShape &shape, cudaStream_t stream) {
  turn_ ^= 1;
  LLMRT_CHECK(cudaEventSynchronize(copied_[turn_]));
  std::byte *host = host_[turn_].data();
  const StepBatch &batch = *step.batch;
  auto fill = [&](size_t offset, const auto &values, int64_t padded, auto padding) {
    using T = std::decay_t<decltype(values[0])>;
    T *to = reinterpret_cast<T *>(host + offset);
    std::copy(values.begin(), values.end(), to);
    std::fill(to + values.size(), to + std::max<int64_t>(padded, static_cast<int64_t>(values.size())), static_cast<T>(padding));
  };
  fill(ids_, batch.ids, shape.tokens, 0);
  fill(positions_, batch.positions, shape.tokens, 0);
  fill(slots_, batch.slot_mapping, shape.tokens, -1);
  fill(context_lens_, batch.context_lens, shape.seqs, 0);
  fill(logits_rows_, batch.logits_rows, shape.rows, 0);
  fill(seq_starts_, batch.seq_starts, 0, 0);
  int32_t *starts = reinterpret_cast<int32_t *>(host + seq_starts_);
  for (int s = static_cast<int>(batch.context_lens.size()); s < shape.seqs; ++s)
    starts[s + 1] = starts[s] + 1; // a padded token each
  int32_t *table = reinterpret_cast<int32_t *>(host + page_table_);
  for (size_t s = 0; s < batch.context_lens.size(); ++s)
    std::copy(batch.pages.begin() + batch.page_starts[s], batch.pages.begin() + batch.page_starts[s + 1],
              table + static_cast<int64_t>(s) * stride_);
  const size_t bytes = page_table_ + batch.context_lens.size() * static_cast<size_t>(stride_) * 4;
  LLMRT_CHECK(cudaMemcpyAsync(device_.data(), host, bytes, cudaMemcpyHostToDevice, stream));
  LLMRT_CHECK(cudaEventRecord(copied_[turn_], stream));
}

} // namespace llmrt::exec::cuda
