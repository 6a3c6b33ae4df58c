#include "runtime/exec/cuda/narrow_layers.h"

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

namespace {

constexpr size_t kElement = 2; // bytes of the residual's, bf16

size_t residual_bytes(int64_t H) { return static_cast<size_t>(k::kNarrowMaxRows * H) * kElement; }
size_t parts_bytes(int64_t H) { return static_cast<size_t>(k::kNarrowMaxParts * k::kNarrowMaxRows * H) * sizeof(float); }

int parts_of(const k::NarrowAttention &half, const k::NarrowShape &) { return half.rope.kv_heads; }
int parts_of(const k::NarrowFeedForward &, const k::NarrowShape &shape) { return shape.clusters; }

} // namespace

size_t NarrowChain::scratch_bytes(int64_t H) { return residual_bytes(H) + 2 * parts_bytes(H); }

NarrowChain::NarrowChain(std::vector<NarrowHalf> halves, void *residual, int64_t ld, int64_t H, int64_t rows, std::byte *scratch)
    : halves_(std::move(halves)), residual_(residual), ld_(ld), H_(H), rows_(std::min<int64_t>(rows, k::kNarrowMaxRows)) {
  // The residual goes to and fro between its own place and one here, and so do parts between two places.
  k::NarrowResidual in = {residual, ld, nullptr, 0, scratch, H};
  for (size_t i = 0; i < halves_.size(); ++i) {
    float *parts = reinterpret_cast<float *>(scratch + residual_bytes(H) + i % 2 * parts_bytes(H));
    std::visit(
        [&](auto &half) {
          half.in = in, half.parts = parts, half.H = H;
          shapes_.push_back(narrow_shape(half));
          in.count = parts_of(half, shapes_.back());
        },
        halves_[i]);
    in.parts = parts;
    std::swap(in.ld, in.ld_sum);
    void *rows_now = in.sum;
    in.sum = const_cast<void *>(in.rows), in.rows = rows_now;
  }
}

bool NarrowChain::takes(const StepShape &shape) const {
  return shape.tokens <= rows_ && shape.tokens == shape.seqs && shape.max_query == 1 &&
         shape.tokens * shape.max_context <= k::kNarrowMaxKeys;
}

void NarrowChain::run(size_t index, const OpContext &c) const {
  const int64_t M = c.shape.tokens;
  if (const auto *attention = std::get_if<k::NarrowAttention>(&halves_[index])) {
    k::NarrowAttention call = *attention;
    call.M = M;
    call.rope.positions = c.inputs.positions(), call.append.slot_mapping = c.inputs.slot_mapping();
    call.context_lens = c.inputs.context_lens();
    call.page_table = c.inputs.page_table(), call.page_table_stride = c.inputs.page_table_stride();
    k::narrow_attention(call, shapes_[index], c.stream);
  } else {
    k::NarrowFeedForward call = std::get<k::NarrowFeedForward>(halves_[index]);
    call.M = M;
    k::narrow_feed_forward(call, shapes_[index], c.stream);
  }
  if (index + 1 < halves_.size())
    return;
  std::visit(
      [&](const auto &half) {
        const k::NarrowResidual end = {half.in.sum, half.in.ld_sum, half.parts, parts_of(half, shapes_[index]), residual_, ld_};
        k::narrow_add_parts(end, M, H_, c.stream);
      },
      halves_[index]);
}

} // namespace llmrt::exec::cuda
