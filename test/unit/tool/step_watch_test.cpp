// What lies between a device's steps, from kernels of known times; and what a watch keeps of a run.
#include <gtest/gtest.h>

#include "tools/llmrt/profile_recorder.h" // SpanTag
#include "tools/llmrt/step_watch.h"

using namespace llmrt;
using namespace llmrt::tool;

namespace {

using exec::KernelSpan;

KernelSpan kernel(uint64_t step, uint32_t phase, int64_t start, int64_t end, uint32_t rank = 0, bool copy = false) {
  KernelSpan span;
  span.tag = SpanTag{step, rank, phase}.pack();
  span.start_ns = start, span.end_ns = end;
  span.copy = copy;
  return span;
}

constexpr uint32_t kOps = exec::kPhaseLaunch, kInputs = exec::kPhaseInputs, kSampling = exec::kPhaseSampling;

TEST(IdleBetweenSteps, WithoutSamplingInputsAndCopies) {
  const std::vector<KernelSpan> kernels = {
      kernel(4, kInputs, 0, 10),      kernel(4, kOps, 100, 1000),  kernel(4, kOps, 1500, 2000), // within a step: not counted
      kernel(4, kSampling, 2100, 2500), kernel(4, kSampling, 2500, 2600, 0, true),                // a copy
      kernel(5, kInputs, 2700, 3000), kernel(5, kOps, 3050, 9000)};
  const std::vector<double> idle = idle_between_steps(kernels, 0);
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_NEAR(idle[0], (100 + 200 + 50) * 1e-9, 1e-15);
}

TEST(IdleBetweenSteps, OverlapsAreNotIdle) {
  // The next step's inputs are laid out while the last op still runs, which outlasts the sampling.
  const std::vector<KernelSpan> kernels = {kernel(1, kOps, 0, 5000), kernel(1, kSampling, 4000, 4500),
                                           kernel(2, kInputs, 4600, 4700), kernel(2, kOps, 5300, 6000)};
  const std::vector<double> idle = idle_between_steps(kernels, 0);
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_NEAR(idle[0], 300e-9, 1e-15);
}

TEST(IdleBetweenSteps, OnlyOfThisRankAndOfStepsInARow) {
  std::vector<KernelSpan> kernels = {kernel(1, kOps, 0, 10, 0), kernel(1, kOps, 5, 15, 1), kernel(2, kOps, 20, 30, 1),
                                     kernel(3, kOps, 40, 50, 0), kernel(4, kOps, 57, 60, 0)};
  kernels.push_back({}); // launched by nobody that is known
  kernels.back().start_ns = 55, kernels.back().end_ns = 1000;
  ASSERT_EQ(idle_between_steps(kernels, 0).size(), 1u); // 3 to 4; 1 to 3 is not
  EXPECT_NEAR(idle_between_steps(kernels, 0)[0], 7e-9, 1e-15);
  ASSERT_EQ(idle_between_steps(kernels, 1).size(), 1u);
  EXPECT_NEAR(idle_between_steps(kernels, 1)[0], 5e-9, 1e-15);
}

TEST(Quantile, OfFewAndNone) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({3}, 0.95), 3);
  EXPECT_EQ(quantile({5, 1, 3}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 3}, 1), 5);
}

// Remembers what is pushed and popped.
class FakeTracer final : public exec::KernelTracer {
public:
  void push(uint64_t tag) override { tags.push_back(tag), ++depth; }
  void pop() override { --depth; }
  std::vector<KernelSpan> collect() override { return {}; }
  std::vector<uint64_t> tags;
  int depth = 0;
};

// Launches of steps that overlap, as they do when a step is scheduled ahead.
TEST(StepWatch, TagsLaunchesAndTakesMedians) {
  StepWatch watch(2);
  FakeTracer tracer;
  watch.restart(&tracer);
  EXPECT_FALSE(watch.sees_ops());
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint64_t step = 7; step < 9; ++step) {
      watch.begin(step, rank, exec::kPhaseStep);
      watch.begin(step, rank, exec::kPhaseLaunch);
      watch.begin(step, rank, exec::kPhaseInputs);
      watch.end(step, rank, exec::kPhaseInputs);
      watch.begin(step, rank, 3); // an op, where the step is no graph: its launch is what counts
      watch.end(step, rank, 3);
      watch.end(step, rank, exec::kPhaseLaunch);
    }
  EXPECT_THROW(watch.wait(std::chrono::milliseconds(1)), std::exception) << "no step has ended";
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint64_t step = 7; step < 9; ++step)
      watch.end(step, rank, exec::kPhaseStep);
  watch.wait();
  EXPECT_EQ(tracer.depth, 0);
  ASSERT_EQ(tracer.tags.size(), 8u);
  const SpanTag tag = SpanTag::unpack(tracer.tags[5]);
  EXPECT_EQ(tag.step, 7u);
  EXPECT_EQ(tag.rank, 1u);
  EXPECT_EQ(tag.op, static_cast<uint32_t>(exec::kPhaseInputs));
  for (const double seconds : {1.0, 5.0, 2.0})
    watch.engine_worked(1, exec::EngineWork::Compose, seconds);
  watch.engine_worked(1, exec::EngineWork::Results, 0.5);
  watch.engine_worked(1, exec::EngineWork::Deliver, 100);
  EXPECT_EQ(watch.host_times().compose, 2.0);
  EXPECT_EQ(watch.host_times().deliver, 100.0);
  EXPECT_LT(watch.host_times().total(), 100.0);
  EXPECT_EQ(watch.host_times().results, 0.5);
  EXPECT_GT(watch.host_times().launch.inputs, 0);
  EXPECT_GT(watch.host_times().launch.ops, 0);
  EXPECT_EQ(watch.host_times().launch.draws, 0);
  watch.restart(nullptr);
  EXPECT_EQ(watch.host_times().total(), 0);
}

} // namespace
