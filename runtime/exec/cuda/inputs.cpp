#include "runtime/exec/cuda/inputs.h"

#include "runtime/exec/packed_step.h"

#include <cstddef>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

// What is uploaded is what kernels read.
static_assert(sizeof(k::SampleRow) == sizeof(PackedDraw));
static_assert(offsetof(k::SampleRow, top_k) == offsetof(PackedDraw, top_k));
static_assert(offsetof(k::SampleRow, seed) == offsetof(PackedDraw, seed));
static_assert(offsetof(k::SampleRow, counter) == offsetof(PackedDraw, counter));
static_assert(sizeof(NewPage) == 2 * sizeof(int32_t));

StepInputs::StepInputs(const StepLimits &limits) {
  size_t end = 0;
  auto place = [&](size_t count, size_t size) {
    const size_t offset = end;
    end = (end + count * size + 255) / 256 * 256;
    return offset;
  };
  const size_t tokens = limits.max_batched_tokens, seqs = limits.max_num_seqs, rows = limits.max_logits_rows;
  page_size_ = static_cast<int>(limits.page_size);
  stride_ = (limits.max_model_len + limits.page_size - 1) / limits.page_size;
  const size_t pages = seqs * static_cast<size_t>(stride_);
  ids_ = place(tokens, 4);
  positions_ = place(tokens, 4);
  slots_ = place(tokens, 8);
  seq_starts_ = place(seqs + 1, 4);
  context_lens_ = place(seqs, 4);
  logits_rows_ = place(rows, 4);
  page_table_ = place(pages, 4);
  device_ = DeviceMemory(end, "step inputs");
  for (int turn = 0; turn < 2; ++turn) {
    host_[turn] = PinnedMemory(packed_bytes(limits));
    uploaded_[turn] = DeviceMemory(packed_bytes(limits), "uploads of step inputs");
  }
}

StepInputs::~StepInputs() { cudaStreamSynchronize(copies_); }

void StepInputs::upload(const Step &step, const StepShape &shape, const int32_t *drawn, bool draws, cudaStream_t stream) {
  turn_ ^= 1;
  const StepBatch &batch = *step.batch;
  const PackedStep packed = pack(batch, draws, host_[turn_].data());
  // The copy waits for nothing, the step for the copy.
  LLMRT_CHECK(cudaMemcpyAsync(uploaded_[turn_].data(), host_[turn_].data(), packed.bytes, cudaMemcpyHostToDevice, copies_));
  LLMRT_CHECK(cudaEventRecord(copied_[turn_], copies_));
  LLMRT_CHECK(cudaStreamWaitEvent(stream, copied_[turn_], 0));
  const auto uploaded = [&]<typename T>(const T *&to, size_t offset) {
    to = reinterpret_cast<const T *>(uploaded_[turn_].data() + offset);
  };
  k::BeginStep begin{};
  uploaded(begin.slots, packed.slots);
  uploaded(begin.ids, packed.ids), uploaded(begin.positions, packed.positions);
  if (!batch.from_rows.empty())
    uploaded(begin.from_rows, packed.from_rows), begin.drawn = drawn;
  uploaded(begin.seq_starts, packed.seq_starts), uploaded(begin.context_lens, packed.context_lens);
  uploaded(begin.logits_rows, packed.logits_rows);
  uploaded(begin.page_starts, packed.page_starts), uploaded(begin.pages, packed.pages);
  draws_ = draws ? reinterpret_cast<k::SampleRow *>(uploaded_[turn_].data() + packed.draws) : nullptr;
  seqs_ = static_cast<int>(batch.context_lens.size());
  begin.T = static_cast<int64_t>(batch.ids.size()), begin.P_T = shape.tokens;
  begin.R = static_cast<int64_t>(batch.logits_rows.size()), begin.P_R = shape.rows;
  begin.S = seqs_, begin.P_S = shape.seqs;
  begin.to_slots = at<int64_t>(slots_);
  begin.to_ids = at<int32_t>(ids_), begin.to_positions = at<int32_t>(positions_);
  begin.to_seq_starts = at<int32_t>(seq_starts_), begin.to_context_lens = at<int32_t>(context_lens_);
  begin.to_logits_rows = at<int32_t>(logits_rows_);
  begin.to_page_table = at<int32_t>(page_table_), begin.page_table_stride = stride_;
  k::begin_step(begin, stream);
}

void StepInputs::follow(const Step &step, const int32_t *drawn, cudaStream_t stream) {
  const std::vector<NewPage> &pages = step.batch->new_pages;
  k::FollowStep follow{};
  follow.drawn = drawn;
  follow.new_pages = reinterpret_cast<const int32_t *>(pages.data());
  follow.num_new_pages = static_cast<int>(pages.size());
  follow.S = seqs_, follow.page_size = page_size_;
  follow.ids = at<int32_t>(ids_), follow.positions = at<int32_t>(positions_), follow.context_lens = at<int32_t>(context_lens_);
  follow.slots = at<int64_t>(slots_);
  follow.page_table = at<int32_t>(page_table_), follow.page_table_stride = stride_;
  follow.rows = draws_;
  k::follow_step(follow, stream);
}

} // namespace llmrt::exec::cuda
