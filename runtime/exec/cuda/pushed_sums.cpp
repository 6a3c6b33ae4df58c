#include "runtime/exec/cuda/pushed_sums.h"

#include "runtime/plan/access.h"

#include <algorithm>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

namespace {

constexpr size_t kStateBytes = 2 * sizeof(uint32_t); // of each kind of sum

k::InboxShape one_shot_shape(const PushedSums::Size &size, int count) {
  return size.one_bytes ? k::one_shot_inbox(count, size.one_bytes, size.row_bytes, size.one_rows) : k::InboxShape();
}
k::TwoShotShape two_shot_shape(const PushedSums::Size &size, int count) {
  return size.two_bytes ? k::two_shot_inbox(count, size.two_bytes, size.row_bytes, size.two_rows) : k::TwoShotShape();
}

} // namespace

PushedSums::Size PushedSums::size_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t group) {
  Size size;
  const plan::Limits &limits = *plan.root().limits();
  for (const plan::Op *op : plan::each(plan.program(rank).ops())) {
    const plan::AllReduce *sum = op->op_as_AllReduce();
    if (!sum || sum->group() != group)
      continue;
    const plan::Buffer &buffer = plan.buffer(rank, *sum->data());
    const int64_t row = static_cast<int64_t>(sum->data()->cols() * plan::block_bytes(buffer.dtype()));
    const int64_t rows = buffer.rows() == plan::Rows::Tokens ? limits.max_batched_tokens() : limits.max_logits_rows();
    const auto add = [&](uint64_t most, int64_t &most_bytes, int64_t &most_rows) {
      if (most == 0)
        return;
      const int64_t bytes = static_cast<int64_t>(std::min<uint64_t>(most, static_cast<uint64_t>(rows * row)));
      most_bytes = std::max(most_bytes, bytes);
      most_rows = std::max(most_rows, bytes / row);
      size.row_bytes = std::max(size.row_bytes, row);
    };
    add(sum->one_shot_bytes(), size.one_bytes, size.one_rows);
    add(sum->two_shot_bytes(), size.two_bytes, size.two_rows);
  }
  return size;
}

PushedSums::PushedSums(const Size &size, int position, int count, bool whole_lines, uint32_t *at)
    : size_(size), one_(one_shot_shape(size, count)), two_(two_shot_shape(size, count)),
      two_at_(static_cast<size_t>(one_.bytes())), state_at_(two_at_ + static_cast<size_t>(two_.bytes())), position_(position),
      count_(count), whole_lines_(whole_lines), memory_(state_at_ + 2 * kStateBytes, "the inboxes of sums"), given_up_(sizeof(uint32_t)), at_(at) {
  *given_up() = 0;
}

bool PushedSums::takes(const DevicePart &data, const PushLimits &limits) const {
  const uint64_t bytes = static_cast<uint64_t>(data.rows * data.cols * data.size());
  return bytes <= limits.most() && data.rows <= (bytes <= limits.one_shot_bytes ? size_.one_rows : size_.two_rows) &&
         k::one_shot_takes(data.cols, data.ld, data.type) && reinterpret_cast<uintptr_t>(data.data) % 16 == 0;
}

void PushedSums::all_reduce(const DevicePart &data, const PushLimits &limits, uint32_t seq, const SumNorm &norm,
                            cudaStream_t stream) {
  const bool twice = static_cast<uint64_t>(data.rows * data.cols * data.size()) > limits.one_shot_bytes;
  k::RankSum call{};
  call.data = data.data, call.ld = data.ld, call.T = data.rows, call.H = data.cols, call.act = data.type;
  call.rank = position_, call.count = count_;
  for (size_t i = 0; i < inboxes_.size(); ++i)
    call.inbox[i] = inboxes_[i] + (twice ? two_at_ : 0);
  call.state = reinterpret_cast<uint32_t *>(memory_.data() + state_at_ + (twice ? kStateBytes : 0));
  call.number = seq;
  call.norm = {norm.out, norm.residual, norm.weight, norm.ld_out, norm.ld_residual, norm.eps, norm.weight_offset};
  call.host.at = at_;
  call.host.given_up = given_up();
  if (twice)
    k::two_shot_all_reduce({call, two_}, stream);
  else
    k::one_shot_all_reduce({call, one_, whole_lines_}, stream);
}

} // namespace llmrt::exec::cuda
