#include "runtime/exec/cuda/one_shot.h"

#include "runtime/plan/access.h"

#include <algorithm>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

OneShotGroup::Size OneShotGroup::size_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t group) {
  Size size;
  const plan::Limits &limits = *plan.root().limits();
  for (const plan::Op *op : plan::each(plan.program(rank).ops())) {
    const plan::AllReduce *sum = op->op_as_AllReduce();
    if (!sum || sum->group() != group || sum->one_shot_bytes() == 0)
      continue;
    const plan::Buffer &buffer = plan.buffer(rank, *sum->data());
    const int64_t row = static_cast<int64_t>(sum->data()->cols() * plan::block_bytes(buffer.dtype()));
    const int64_t rows = buffer.rows() == plan::Rows::Tokens ? limits.max_batched_tokens() : limits.max_logits_rows();
    const int64_t bytes = std::min(static_cast<int64_t>(sum->one_shot_bytes()), rows * row);
    size.bytes = std::max(size.bytes, bytes);
    size.rows = std::max(size.rows, bytes / row);
  }
  return size;
}

OneShotGroup::OneShotGroup(Size size, int position, int count, uint32_t *at)
    : box_(k::one_shot_inbox(count, size.bytes, size.rows)), position_(position), count_(count),
      memory_(static_cast<size_t>(box_.bytes()) + 2 * sizeof(uint32_t), "the inbox of one-shot sums"),
      given_up_(sizeof(uint32_t)), at_(at) {
  *given_up() = 0;
}

void OneShotGroup::connect(const std::vector<std::byte *> &inboxes) { inboxes_ = inboxes; }

void OneShotGroup::all_reduce(const DevicePart &data, uint32_t seq, const SumNorm &norm, cudaStream_t stream) {
  k::OneShot call{};
  call.data = data.data, call.ld = data.ld, call.T = data.rows, call.H = data.cols, call.act = data.type;
  call.rank = position_, call.count = count_;
  std::copy(inboxes_.begin(), inboxes_.end(), call.inbox);
  call.box = box_;
  call.state = reinterpret_cast<uint32_t *>(memory_.data() + box_.bytes());
  call.number = seq;
  call.norm = {norm.out, norm.residual, norm.weight, norm.ld_out, norm.ld_residual, norm.eps, norm.weight_offset};
  call.host.at = at_;
  call.host.given_up = given_up();
  k::one_shot_all_reduce(call, stream);
}

} // namespace llmrt::exec::cuda
