#include "runtime/exec/cuda/inputs.h"

#include <algorithm>
#include <cstring>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

namespace {

constexpr size_t kAlignment = 16; // of arrays in an upload

// Writes arrays one behind the other, and tells where they will be on the device.
class Packer {
public:
  Packer(std::byte *host, const std::byte *device) : host_(host), device_(device) {}

  // Room for `count` values, to be written by the caller before anything else is packed.
  template <typename T> T *room(size_t count, const T *&on_device) {
    T *to = reinterpret_cast<T *>(host_ + end_);
    on_device = reinterpret_cast<const T *>(device_ + end_);
    end_ = (end_ + count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return to;
  }
  template <typename T> void pack(const std::vector<T> &values, const T *&on_device) {
    T *to = room(values.size(), on_device);
    if (!values.empty())
      std::memcpy(to, values.data(), values.size() * sizeof(T));
  }
  size_t bytes() const { return end_; }

private:
  std::byte *host_;
  const std::byte *device_;
  size_t end_ = 0;
};

} // namespace

StepInputs::StepInputs(const StepLimits &limits) {
  size_t end = 0;
  auto place = [&](size_t count, size_t size) {
    const size_t offset = end;
    end = (end + count * size + 255) / 256 * 256;
    return offset;
  };
  const size_t tokens = limits.max_batched_tokens, seqs = limits.max_num_seqs, rows = limits.max_logits_rows;
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
  end = 0;
  for (auto [count, size] : {std::pair{tokens, size_t{8}}, {rows, sizeof(k::SampleRow)}, {tokens, size_t{4}}, {tokens, size_t{4}},
                             {tokens, size_t{4}}, {seqs + 1, size_t{4}}, {seqs, size_t{4}}, {rows, size_t{4}},
                             {seqs + 1, size_t{4}}, {pages, size_t{4}}})
    place(count, size);
  for (int turn = 0; turn < 2; ++turn) {
    host_[turn] = PinnedMemory(end);
    uploaded_[turn] = DeviceMemory(end, "uploads of step inputs");
  }
}

StepInputs::~StepInputs() { cudaStreamSynchronize(copies_); }

void StepInputs::upload(const Step &step, const StepShape &shape, const int32_t *drawn, bool draws, cudaStream_t stream) {
  turn_ ^= 1;
  const StepBatch &batch = *step.batch;
  Packer packer(host_[turn_].data(), uploaded_[turn_].data());
  k::BeginStep begin{};
  packer.pack(batch.slot_mapping, begin.slots);
  draws_ = nullptr;
  if (draws) {
    k::SampleRow *rows = packer.room(batch.sampling.size(), draws_);
    for (const RowSampling &r : batch.sampling) // rows that want no token are drawn too, as is cheapest; nobody looks
      *rows++ = {r.draw ? r.temperature : 0, r.top_p, r.min_p, r.top_k, r.seed, r.counter};
  }
  packer.pack(batch.ids, begin.ids);
  packer.pack(batch.positions, begin.positions);
  if (!batch.from_rows.empty()) {
    packer.pack(batch.from_rows, begin.from_rows);
    begin.drawn = drawn;
  }
  packer.pack(batch.seq_starts, begin.seq_starts);
  packer.pack(batch.context_lens, begin.context_lens);
  packer.pack(batch.logits_rows, begin.logits_rows);
  const size_t seqs = batch.context_lens.size();
  packer.pack(batch.page_starts, begin.page_starts);
  packer.pack(batch.pages, begin.pages);

  // The copy waits for nothing, the step for the copy.
  LLMRT_CHECK(cudaMemcpyAsync(uploaded_[turn_].data(), host_[turn_].data(), packer.bytes(), cudaMemcpyHostToDevice, copies_));
  LLMRT_CHECK(cudaEventRecord(copied_[turn_], copies_));
  LLMRT_CHECK(cudaStreamWaitEvent(stream, copied_[turn_], 0));
  begin.T = static_cast<int64_t>(batch.ids.size()), begin.P_T = shape.tokens;
  begin.R = static_cast<int64_t>(batch.logits_rows.size()), begin.P_R = shape.rows;
  begin.S = static_cast<int>(seqs), begin.P_S = shape.seqs;
  begin.to_slots = at<int64_t>(slots_);
  begin.to_ids = at<int32_t>(ids_), begin.to_positions = at<int32_t>(positions_);
  begin.to_seq_starts = at<int32_t>(seq_starts_), begin.to_context_lens = at<int32_t>(context_lens_);
  begin.to_logits_rows = at<int32_t>(logits_rows_);
  begin.to_page_table = at<int32_t>(page_table_), begin.page_table_stride = stride_;
  k::begin_step(begin, stream);
}

} // namespace llmrt::exec::cuda
