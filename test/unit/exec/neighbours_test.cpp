// What stands next to the products of a small plan, and the changes to it that make a neighbour a stranger.
#include <gtest/gtest.h>

#include "runtime/exec/neighbours.h"
#include "runtime/plan/access.h"
#include "test/unit/plan/plan_builder.h"

#include <functional>
#include <vector>

using namespace llmrt;
using namespace llmrt::exec;
using plan::testing::TinySpec;

namespace {

plan::PlanT tiny(uint32_t tp) {
  TinySpec spec;
  spec.tp = tp, spec.pp = 1, spec.layers = 2;
  return plan::testing::build_tiny_plan(spec);
}

// Indices of rank 0's products, in order: qkv, o, gate_up and down of each layer, then the logits.
std::vector<uint32_t> products(const plan::PlanT &plan) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < plan.programs[0]->ops.size(); ++i)
    if (plan.programs[0]->ops[i]->op.AsLinear())
      result.push_back(i);
  return result;
}

Neighbours find(const plan::PlanT &plan, uint32_t op) { return neighbours_of(*plan::testing::load(plan), 0, op); }

TEST(Neighbours, OneRank) {
  const plan::PlanT plan = tiny(1);
  const std::vector<uint32_t> at = products(plan);
  ASSERT_EQ(at.size(), 9u);
  for (int layer = 0; layer < 2; ++layer) {
    const uint32_t qkv = at[layer * 4], o = at[layer * 4 + 1], gate_up = at[layer * 4 + 2], down = at[layer * 4 + 3];
    const Neighbours a = find(plan, qkv), b = find(plan, o), c = find(plan, gate_up), d = find(plan, down);
    EXPECT_EQ(a.norm, qkv - 1); // rms_norm behind the embedding, add_rms_norm from then on
    EXPECT_EQ(a.rope, qkv + 1);
    EXPECT_FALSE(a.add || a.gate);
    EXPECT_EQ(b.add, o + 1);
    EXPECT_FALSE(b.norm || b.gate || b.rope);
    EXPECT_EQ(c.norm, gate_up - 1);
    EXPECT_EQ(c.gate, gate_up + 1);
    EXPECT_FALSE(c.add || c.rope);
    EXPECT_EQ(d.add, down + 1);
    EXPECT_FALSE(d.norm || d.gate || d.rope);
    for (const Neighbours &n : {a, b, c, d})
      EXPECT_TRUE(n.input_apart);
    EXPECT_TRUE(a.norm_apart && c.norm_apart);
  }
  const Neighbours logits = find(plan, at[8]);
  EXPECT_FALSE(logits.norm || logits.add || logits.gate || logits.rope); // select_rows stands in front
}

// Sums over ranks stand between products and residuals, not in front of norms.
TEST(Neighbours, Shards) {
  const plan::PlanT plan = tiny(2);
  const std::vector<uint32_t> at = products(plan);
  EXPECT_TRUE(find(plan, at[0]).norm && find(plan, at[0]).rope);
  EXPECT_FALSE(find(plan, at[1]).add);
  EXPECT_TRUE(find(plan, at[2]).norm && find(plan, at[2]).gate);
  EXPECT_FALSE(find(plan, at[3]).add);
}

TEST(Neighbours, Strangers) {
  auto changed = [](int product, const std::function<void(std::vector<std::unique_ptr<plan::OpT>> &, uint32_t)> &change) {
    plan::PlanT plan = tiny(1);
    const uint32_t at = products(plan)[product];
    change(plan.programs[0]->ops, at);
    plan::testing::relayout(plan);
    return find(plan, at);
  };
  // Somebody else reads the norm's result.
  Neighbours n = changed(0, [](auto &ops, uint32_t at) {
    auto *attention = ops[at + 3]->op.AsAttention();
    ASSERT_NE(attention, nullptr);
    *attention->q = *ops[at]->op.AsLinear()->input;
  });
  EXPECT_FALSE(n.norm);
  EXPECT_TRUE(n.rope);
  // Or the product's: what follows reads it again.
  n = changed(2, [](auto &ops, uint32_t at) { *ops[at + 2]->op.AsLinear()->input = *ops[at + 1]->op.AsGatedAct()->gate; });
  EXPECT_FALSE(n.gate);
  n = changed(1, [](auto &ops, uint32_t at) { *ops[at + 2]->op.AsLinear()->input = *ops[at]->op.AsLinear()->out; });
  EXPECT_FALSE(n.add);
  // The halves are the other way round.
  n = changed(2, [](auto &ops, uint32_t at) {
    auto *act = ops[at + 1]->op.AsGatedAct();
    std::swap(*act->gate, *act->up);
  });
  EXPECT_FALSE(n.gate);
  // The product reads something else than the norm's result.
  n = changed(0, [](auto &ops, uint32_t at) { *ops[at]->op.AsLinear()->input = plan::View(ops[at - 1]->op.AsRmsNorm()->input->buffer(), 0, 32); });
  EXPECT_FALSE(n.norm);
  // Values do not follow the keys.
  n = changed(0, [](auto &ops, uint32_t at) { *ops[at + 2]->op.AsKvAppend()->v = *ops[at + 2]->op.AsKvAppend()->k; });
  EXPECT_FALSE(n.rope);
}

// Results that share memory with what is not needed any more.
TEST(Neighbours, SharedMemory) {
  plan::PlanT plan = tiny(1);
  const uint32_t gate_up = products(plan)[2];
  auto &program = *plan.programs[0];
  auto &buffers = program.buffers;
  const auto *linear = program.ops[gate_up]->op.AsLinear();
  const auto *act = program.ops[gate_up + 1]->op.AsGatedAct();
  buffers[act->out->buffer()]->offset = buffers[linear->input->buffer()]->offset;
  const Neighbours n = find(plan, gate_up);
  EXPECT_TRUE(n.gate);
  EXPECT_FALSE(n.input_apart);
  EXPECT_TRUE(n.norm_apart);
}

// A product that overwrites what the norm reads or what the sum needs leaves both to themselves.
TEST(Neighbours, ResultOverOperands) {
  for (const int product : {1, 2}) {
    plan::PlanT plan = tiny(1);
    auto &program = *plan.programs[0];
    const uint32_t at = products(plan)[product];
    const auto *sum = program.ops[product == 1 ? at + 1 : at - 1]->op.AsAddRmsNorm();
    ASSERT_NE(sum, nullptr);
    EXPECT_TRUE(product == 1 ? find(plan, at).add : find(plan, at).norm);
    program.buffers[program.ops[at]->op.AsLinear()->out->buffer()]->offset = program.buffers[sum->residual->buffer()]->offset;
    EXPECT_FALSE(product == 1 ? find(plan, at).add : find(plan, at).norm);
  }
}

} // namespace
