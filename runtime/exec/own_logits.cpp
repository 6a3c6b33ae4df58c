#include "runtime/exec/own_logits.h"

#include "runtime/plan/access.h"

namespace llmrt::exec {

namespace {

const plan::Gather *last_gather(const plan::LoadedPlan &plan, uint32_t rank) {
  const auto *ops = plan.program(rank).ops();
  return plan::size_of(ops) == 0 ? nullptr : ops->Get(plan::size_of(ops) - 1)->op_as_Gather();
}

} // namespace

std::optional<uint64_t> first_own_logit(const plan::LoadedPlan &plan, uint32_t rank) {
  const uint32_t output = plan.root().output_rank();
  const plan::Gather *whole = last_gather(plan, output);
  const plan::View *logits = plan.program(output).logits();
  if (!whole || !whole->out() || !logits || whole->out()->buffer() != logits->buffer() || whole->out()->col() != logits->col())
    return std::nullopt;
  const auto &members = *plan.root().groups()->Get(whole->group())->ranks();
  std::optional<uint64_t> result;
  uint64_t first = 0;
  for (uint32_t i = 0; i < members.size(); ++i) {
    const plan::Gather *part = last_gather(plan, members.Get(i));
    if (!part || part->group() != whole->group() || part->seq() != whole->seq() ||
        plan.buffer(members.Get(i), *part->input()).dtype() != plan::DType::F32)
      return std::nullopt;
    if (members.Get(i) == rank)
      result = first;
    first += whole->counts()->Get(i);
  }
  return result;
}

} // namespace llmrt::exec
