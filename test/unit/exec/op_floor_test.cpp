// Floors of ops and of whole steps, against numbers worked out by hand and against what op_cost counts.
#include <gtest/gtest.h>

#include "runtime/exec/op_floor.h"
#include "runtime/plan/access.h"
#include "test/unit/plan/plan_builder.h"

using namespace llmrt;
using namespace llmrt::exec;
using plan::testing::TinySpec;

namespace {

std::shared_ptr<const plan::LoadedPlan> load(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp;
  spec.pp = pp;
  spec.layers = 2;
  return plan::testing::load(plan::testing::build_tiny_plan(spec));
}

OpCost cost(uint64_t bytes, uint64_t flops) {
  OpCost cost;
  cost.weight_bytes = bytes;
  cost.flops = flops;
  return cost;
}

TEST(OpFloor, TheLongerOfBytesAndOperations) {
  const Ceilings ceilings{100, 1000};
  EXPECT_DOUBLE_EQ(floor_seconds(cost(50, 100), ceilings, 1), 0.5);
  EXPECT_DOUBLE_EQ(floor_seconds(cost(50, 2000), ceilings, 1), 2.0);
  EXPECT_DOUBLE_EQ(floor_seconds(cost(50, 100), ceilings, 0.25), 2.0);
}

TEST(OpFloor, DecodeShapeIsOneTokenASequence) {
  const auto plan = load(1, 1);
  const StepBatch step = decode_shape(*plan, 60, 7); // more than the 50 ids of the vocabulary
  EXPECT_EQ(step.ids.size(), 60u);
  EXPECT_EQ(step.ids.back(), 9);
  EXPECT_EQ(step.seq_starts.front(), 0);
  EXPECT_EQ(step.seq_starts.back(), 60);
  EXPECT_EQ(step.context_lens, std::vector<int32_t>(60, 7));
  EXPECT_EQ(step.logits_rows.size(), 60u);
}

// Where reading decides everything, serial and whole are the same; where some ops are bound by reading and others by
// arithmetic, a sum of the longer is more than the longer of the sums.
TEST(OpFloor, SerialIsTheSumOverOps) {
  const auto plan = load(1, 1);
  const StepBatch step = decode_shape(*plan, 8, 20);
  OpCost all;
  for (uint32_t op = 0; op < plan::size_of(plan->program(0).ops()); ++op)
    all += cost_of(*plan, 0, op, step);
  const double bytes = static_cast<double>(all.bytes()), flops = static_cast<double>(all.flops);
  EXPECT_NEAR(serial_floor_seconds(*plan, step, {1, 1e30}, {}), bytes, bytes * 1e-12);
  EXPECT_NEAR(serial_floor_seconds(*plan, step, {1e30, 1}, {}), flops, flops * 1e-12);
  const Ceilings even{bytes, flops};
  EXPECT_GT(serial_floor_seconds(*plan, step, even, {}), 1.001);
  EXPECT_LT(serial_floor_seconds(*plan, step, even, {}), 2.0);
}

// Where all speed is in one device or spread over several, the same bytes take the same time, however ranks are placed.
TEST(OpFloor, AMeanOverDevices) {
  const auto plan = load(2, 2);
  const StepBatch step = decode_shape(*plan, 4, 9);
  double bytes = 0;
  for (uint32_t rank = 0; rank < plan->num_ranks(); ++rank)
    for (uint32_t op = 0; op < plan::size_of(plan->program(rank).ops()); ++op)
      bytes += static_cast<double>(cost_of(*plan, rank, op, step).bytes());
  for (const std::vector<int> &placement : {std::vector<int>{}, {0, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 2, 3}})
    EXPECT_NEAR(serial_floor_seconds(*plan, step, {1, 1e30}, placement), bytes, bytes * 1e-12);
}

} // namespace
