// What the executor refuses, how it ends when a rank or its caller fails, and that it always ends quickly.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "runtime/support/error.h"
#include "test/unit/exec/driver.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using plan::testing::TinySpec;

namespace {

TinySpec spec(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp;
  spec.pp = pp;
  return spec;
}

std::string refusal(const std::function<void(plan::PlanT &)> &harm, uint32_t tp = 2, uint32_t pp = 1) {
  TinyModel model(spec(tp, pp));
  harm(model.plan);
  try {
    model.start([](const StepBatch &, const LogitsView &, const std::string &) {});
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

void expect_parts(const std::string &message, const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(Refusals, TheUnharmedPlanStarts) { EXPECT_EQ(refusal([](plan::PlanT &) {}), ""); }

TEST(Refusals, AKernelThatThisRuntimeLacksIsNamed) {
  // The names that GPUs have for the op would do; these are another op's, none's, and another device's.
  for (const std::string kernel : {"cuda.rms_norm", "cuda.linear_fused", "cuda.", "cpu.linear.packed32", "tpu.linear", ""})
    expect_parts(refusal([&](plan::PlanT &plan) {
                   for (auto &op : plan.programs[1]->ops)
                     if (op->op.type == plan::OpKind::Linear) {
                       op->kernel = kernel;
                       break;
                     }
                 }),
                 kernel.empty() ? std::vector<std::string>{"rank 1"}
                                : std::vector<std::string>{"rank 1", "(linear, layer 0)", "'" + kernel + "'", "cpu.linear.packed16"});
}

TEST(Refusals, AQuantisedWeightInMemoryIsNamed) {
  expect_parts(refusal([](plan::PlanT &plan) {
                 plan.programs[0]->weights[0]->dtype = plan::DType::Q8_0; // the embedding table, 25 × 32
                 plan::testing::relayout(plan);
               }),
               {"q8_0"});
}

TEST(Refusals, APlanThatDoesNotHoldIsNotRun) {
  expect_parts(refusal([](plan::PlanT &plan) { plan.programs[0]->weights[2]->parts[0]->row += 1; }),
               {"does not hold", "rank 0"});
}

TEST(Refusals, AWeightFileThatChangedIsNamed) {
  expect_parts(refusal([](plan::PlanT &plan) { plan.files[0]->header_hash ^= 1; }), {"weights.bin", "has changed"});
}

TEST(Submit, ABadBatchChangesNothing) {
  TinyModel model(spec(2, 2));
  Driver driver(model);
  Sequence sequence;
  const std::vector<int32_t> ids = some_ids(6, model.spec.vocab);
  auto bad = std::make_shared<StepBatch>(*driver.batch({{&sequence, ids, Chunk::Last}}));
  bad->ids[3] = static_cast<int32_t>(model.spec.vocab);
  EXPECT_THROW(driver.executor->submit(bad), Error);
  EXPECT_THROW(driver.executor->submit(nullptr), Error);
  sequence.length = 0;
  const auto result = driver.step({{&sequence, ids, Chunk::Last}});
  EXPECT_EQ(result.error, "");
  const std::vector<double> want = model.reference->logits(ids);
  for (size_t i = 0; i < model.spec.vocab; ++i)
    EXPECT_NEAR(result.logits[i], want[5 * model.spec.vocab + i], 1e-4);
  auto again = std::make_shared<StepBatch>(*driver.batch({{&sequence, {1}, Chunk::Last}}));
  again->id = 1;
  EXPECT_THROW(driver.executor->submit(again), Error) << "step ids must rise";
}

TEST(Failure, OfTheReceiverReachesEveryLaterStep) {
  TinyModel model(spec(2, 2));
  std::mutex mutex;
  std::vector<std::string> errors;
  std::atomic<unsigned> done{0};
  auto executor = model.start([&](const StepBatch &batch, const LogitsView &logits, const std::string &error) {
    {
      std::lock_guard lock(mutex);
      errors.push_back(error);
      EXPECT_EQ(error.empty(), logits.rows == 1);
    }
    ++done;
    if (batch.id == 2)
      throw Error("the sampler is out of dice");
  });
  for (uint64_t id = 1; id <= 6; ++id) {
    auto batch = std::make_shared<StepBatch>();
    *batch = {id, {1}, {0}, {0, 1}, {1}, {0, 1}, {static_cast<int32_t>(id)}, {static_cast<int64_t>(id) * 4}, {0}};
    executor->submit(batch);
  }
  while (done < 6)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  EXPECT_NE(errors[5].find("the sampler is out of dice"), std::string::npos) << errors[5];
}

TEST(Failure, ARankThatStandsStillIsNamed) {
  // The output rank is held up in the callback of step 1 while its neighbour waits for it in step 2.
  TinyModel model(spec(2, 1));
  ExecutorOptions options;
  options.collective_timeout_s = 0.2;
  options.trace_collectives = true;
  std::mutex mutex;
  std::vector<std::string> errors;
  std::atomic<unsigned> done{0};
  auto executor = model.start(
      [&](const StepBatch &batch, const LogitsView &, const std::string &error) {
        if (batch.id == 1)
          std::this_thread::sleep_for(1s);
        std::lock_guard lock(mutex);
        errors.push_back(error);
        ++done;
      },
      options);
  for (uint64_t id = 1; id <= 3; ++id) {
    auto batch = std::make_shared<StepBatch>();
    *batch = {id, {1}, {0}, {0, 1}, {1}, {0, 1}, {static_cast<int32_t>(id)}, {static_cast<int64_t>(id) * 4}, {0}};
    executor->submit(batch);
  }
  while (done < 3)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(errors[0], "");
  expect_parts(errors[1], {"rank 1 waited", "all_reduce 0 of step 2", "'stage0'", "for rank 0"});
  EXPECT_EQ(errors[1], errors[2]);
}

TEST(Ending, IsQuickWithStepsInFlight) {
  TinySpec deep = spec(2, 3);
  deep.layers = 3;
  deep.num_pages = 256;
  TinyModel model(deep);
  for (int round = 0; round < 20; ++round) {
    std::atomic<unsigned> reported{0};
    auto executor = model.start([&](const StepBatch &, const LogitsView &, const std::string &) { ++reported; });
    const unsigned steps = static_cast<unsigned>(round) % 4;
    for (uint64_t id = 1; id <= steps; ++id) {
      auto batch = std::make_shared<StepBatch>();
      *batch = {id, {1}, {0}, {0, 1}, {1}, {0, 1}, {static_cast<int32_t>(id)}, {static_cast<int64_t>(id) * 4}, {0}};
      executor->submit(batch);
    }
    const auto start = Clock::now();
    executor.reset();
    EXPECT_LT(Clock::now() - start, 5s);
    EXPECT_EQ(reported, steps) << "every step is reported, finished or not";
  }
}

TEST(Callbacks, MaySubmitTheNextStep) {
  TinyModel model(spec(2, 1));
  std::atomic<unsigned> done{0};
  std::atomic<Executor *> self{nullptr};
  const auto batch = [](uint64_t id) {
    auto batch = std::make_shared<StepBatch>();
    *batch = {id, {1}, {0}, {0, 1}, {1}, {0, 1}, {3}, {12}, {0}};
    return batch;
  };
  auto executor = model.start([&](const StepBatch &last, const LogitsView &, const std::string &error) {
    EXPECT_EQ(error, "");
    if (last.id < 50)
      self.load()->submit(batch(last.id + 1));
    ++done;
  });
  self = executor.get();
  executor->submit(batch(1));
  const auto start = Clock::now();
  while (done < 50 && Clock::now() - start < 30s)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(done, 50u);
}

} // namespace
