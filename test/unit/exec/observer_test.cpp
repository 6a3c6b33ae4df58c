// A step that names an observer shows it every op of every rank, in order, and computes the same.
#include <gtest/gtest.h>

#include "runtime/exec/step_observer.h"
#include "runtime/plan/access.h"
#include "test/unit/exec/driver.h"

#include <algorithm>

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;

namespace {

struct Call {
  uint64_t step;
  uint32_t op;
  bool begins;
};

class Keeper final : public StepObserver {
public:
  explicit Keeper(uint32_t ranks) : calls(ranks) {}
  void begin(uint64_t step, uint32_t rank, uint32_t op) override { calls[rank].push_back({step, op, true}); }
  void end(uint64_t step, uint32_t rank, uint32_t op) override { calls[rank].push_back({step, op, false}); }
  std::vector<std::vector<Call>> calls; // by rank
};

TEST(Observer, SeesEveryOpInOrder) {
  plan::testing::TinySpec spec;
  spec.activation_dtype = plan::DType::BF16; // conversions around ops belong to the op
  const TinyModel model(spec);
  const auto plan = plan::testing::load(model.plan);
  Keeper keeper(plan->num_ranks());
  Driver driver(model), plain(model);
  Sequence one, other;
  const auto ids = some_ids(9, spec.vocab);
  const std::vector<float> expected = plain.step({{&other, ids}}).logits;

  auto batch = driver.batch({{&one, ids}});
  batch->observer = &keeper;
  driver.executor->submit(batch);
  const auto result = driver.wait(batch->id);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.logits, expected);
  ASSERT_EQ(driver.step({{&one, {1}}}).error, ""); // nobody looks
  driver.executor.reset();                         // the rank threads are done

  for (uint32_t rank = 0; rank < plan->num_ranks(); ++rank) {
    std::vector<uint32_t> open, met;
    for (const Call &call : keeper.calls[rank]) {
      EXPECT_EQ(call.step, batch->id);
      if (call.begins) {
        EXPECT_LE(open.size(), 1u) << "only the step holds other spans";
        open.push_back(call.op);
        if (call.op < kPhaseFirst && (met.empty() || met.back() != call.op))
          met.push_back(call.op);
      } else {
        ASSERT_FALSE(open.empty());
        EXPECT_EQ(open.back(), call.op);
        open.pop_back();
      }
    }
    EXPECT_TRUE(open.empty());
    ASSERT_FALSE(keeper.calls[rank].empty());
    EXPECT_EQ(keeper.calls[rank].front().op, static_cast<uint32_t>(kPhaseStep));
    EXPECT_EQ(keeper.calls[rank].back().op, static_cast<uint32_t>(kPhaseStep));
    ASSERT_EQ(met.size(), plan::size_of(plan->program(rank).ops())) << "rank " << rank;
    for (uint32_t op = 0; op < met.size(); ++op)
      EXPECT_EQ(met[op], op);
  }
}

} // namespace
