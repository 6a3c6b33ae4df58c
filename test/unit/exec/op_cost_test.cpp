// What ops must do, against numbers worked out by hand for a small plan.
#include <gtest/gtest.h>

#include "runtime/exec/op_cost.h"
#include "runtime/plan/access.h"
#include "test/unit/plan/plan_builder.h"

#include <map>

using namespace llmrt;
using namespace llmrt::exec;
using plan::testing::TinySpec;

namespace {

// hidden 32, q 4 × 8, kv 2 × 8, ffn 48, vocab 50, f32 unless said.
TinySpec spec(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp;
  spec.pp = pp;
  spec.layers = 2;
  return spec;
}

// Two sequences: 3 new tokens up to a context of 10, 1 new token at 6; logits of both ends.
StepBatch batch() {
  StepBatch step;
  step.ids = {7, 7, 40, 9};
  step.seq_starts = {0, 3, 4};
  step.context_lens = {10, 6};
  step.logits_rows = {2, 3};
  return step;
}

// By title, of layer 0 or outside the layers; the first of each.
std::map<std::string, OpCost> costs(const plan::LoadedPlan &plan, uint32_t rank, const StepBatch &step) {
  std::map<std::string, OpCost> result;
  const plan::Program &program = plan.program(rank);
  for (uint32_t op = 0; op < plan::size_of(program.ops()); ++op)
    result.try_emplace(op_title(program, op), cost_of(plan, rank, op, step));
  return result;
}

OpCost find(const std::map<std::string, OpCost> &costs, const std::string &title) {
  const auto at = costs.find(title);
  if (at != costs.end())
    return at->second;
  std::string all;
  for (const auto &[name, cost] : costs)
    all += name + ", ";
  ADD_FAILURE() << "no op '" << title << "' among " << all;
  return {};
}

void expect(const OpCost &cost, uint64_t weights, uint64_t activations, uint64_t kv, uint64_t flops, uint64_t link = 0) {
  EXPECT_EQ(cost.weight_bytes, weights);
  EXPECT_EQ(cost.activation_bytes, activations);
  EXPECT_EQ(cost.kv_bytes, kv);
  EXPECT_EQ(cost.flops, flops);
  EXPECT_EQ(cost.link_bytes, link);
  EXPECT_EQ(cost.bytes(), weights + activations + kv);
}

constexpr uint64_t T = 4, R = 2, H = 32, F = sizeof(float);

TEST(OpCost, OneRank) {
  const auto plan = plan::testing::load(plan::testing::build_tiny_plan(spec(1, 1)));
  const auto all = costs(*plan, 0, batch());
  // Ids 7, 40 and 9: three rows of the table.
  expect(find(all, "embedding embed"), 3 * H * F, T * H * F, 0, 0);
  expect(find(all, "rms_norm input_layernorm"), H * F, 2 * T * H * F, 0, 0);
  // q and k, 32 and 16 columns, read and written.
  expect(find(all, "rope"), 0, 2 * T * (32 + 16) * F, 0, 0);
  // k and v, 16 columns each, to pages of the same type.
  expect(find(all, "kv_append"), 0, T * 32 * F, T * 32 * F, 0);
  // Keys: 10 + 6 tokens of 2 × 2 heads × 8. Pairs: positions 7, 8, 9 see 8 + 9 + 10, position 5 sees 6.
  expect(find(all, "attention"), 0, 2 * T * 32 * F, 16 * 32 * F, 4 * 33 * 4 * 8);
  // residual read and written, input read, out written.
  expect(find(all, "add_rms_norm post_attention_layernorm"), H * F, 4 * T * H * F, 0, 0);
  expect(find(all, "gated_act"), 0, 3 * T * 48 * F, 0, 0);
  expect(find(all, "linear down"), 48 * H * F, T * (48 + H) * F, 0, 2 * T * 48 * H);
  expect(find(all, "select_rows"), 0, 2 * R * H * F, 0, 0);
  expect(find(all, "linear lm_head"), 50 * H * F, R * (H + 50) * F, 0, 2 * R * 50 * H);
}

TEST(OpCost, WindowsLimitWhatAttentionReads) {
  TinySpec windowed = spec(1, 1);
  windowed.window = 4;
  const auto plan = plan::testing::load(plan::testing::build_tiny_plan(windowed));
  // Keys: 3 new tokens see 4 + 2, one sees 4. Pairs: 4 each.
  expect(find(costs(*plan, 0, batch()), "attention"), 0, 2 * T * 32 * F, 10 * 32 * F, 4 * 16 * 4 * 8);
}

TEST(OpCost, HalfPrecisionHalves) {
  TinySpec half = spec(1, 1);
  half.weight_dtype = half.activation_dtype = half.kv_dtype = plan::DType::BF16;
  const auto plan = plan::testing::load(plan::testing::build_tiny_plan(half));
  const auto all = costs(*plan, 0, batch());
  expect(find(all, "linear down"), 48 * H * 2, T * (48 + H) * 2, 0, 2 * T * 48 * H);
  expect(find(all, "attention"), 0, 2 * T * 32 * 2, 16 * 32 * 2, 4 * 33 * 4 * 8);
}

TEST(OpCost, RanksAndStagesShareTheWork) {
  const auto plan = plan::testing::load(plan::testing::build_tiny_plan(spec(2, 2)));
  const auto first = costs(*plan, 0, batch()), last = costs(*plan, 3, batch());
  // A ring of two sends the payload once: 2 × (2 - 1) / 2.
  expect(find(first, "all_reduce down"), 0, 2 * T * H * F, 0, 0, T * H * F);
  EXPECT_EQ(find(first, "linear down").flops, 2 * T * 24 * H);
  expect(find(first, "send"), 0, T * H * F, 0, 0, T * H * F);
  expect(find(last, "recv"), 0, T * H * F, 0, 0);
  // Rank 0 of the group gathers the logits; rank 3 sends its own 25 columns.
  expect(find(last, "gather lm_head"), 0, R * 25 * F, 0, 0, R * 25 * F);
  const auto root = costs(*plan, 2, batch());
  expect(find(root, "gather lm_head"), 0, R * (25 + 50) * F, 0, 0, 0);
  // Nothing is counted twice or lost: the products of all ranks are the model's.
  uint64_t flops = 0, whole = 0;
  const auto one = plan::testing::load(plan::testing::build_tiny_plan(spec(1, 1)));
  for (uint32_t rank = 0; rank < plan->num_ranks(); ++rank)
    for (uint32_t op = 0; op < plan::size_of(plan->program(rank).ops()); ++op)
      flops += cost_of(*plan, rank, op, batch()).flops;
  for (uint32_t op = 0; op < plan::size_of(one->program(0).ops()); ++op)
    whole += cost_of(*one, 0, op, batch()).flops;
  EXPECT_EQ(flops, whole);
}

TEST(OpCost, NothingWithoutRows) {
  const auto plan = plan::testing::load(plan::testing::build_tiny_plan(spec(1, 1)));
  StepBatch step = batch();
  step.logits_rows.clear();
  expect(find(costs(*plan, 0, step), "linear lm_head"), 0, 0, 0, 0);
}

TEST(OpCost, RolesOfWeights) {
  EXPECT_EQ(weight_role("model.layers.3.mlp.down_proj.weight"), "down_proj");
  EXPECT_EQ(weight_role("layer.0.qkv"), "qkv");
  EXPECT_EQ(weight_role("lm_head.weight"), "lm_head");
  EXPECT_EQ(weight_role("weight"), "weight");
  EXPECT_EQ(weight_role(""), "");
}

} // namespace
