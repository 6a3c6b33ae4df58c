// Steps of one known shape, run on an executor without a scheduler: the same step again and again over caches that were
// filled by real prefills.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/sample/sampler.h"
#include "tools/llmrt/profile_recorder.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace llmrt::tool {

// `batch` sequences of `fresh` new tokens each, after which each has `context` tokens in its cache.
struct StepSpec {
  int batch = 1, fresh = 1, context = 1;
};

// One step's way through the host: submitted, results there (tokens drawn where the executor draws none itself).
struct StepTimes {
  uint64_t id = 0;
  int64_t submitted_ns = 0, done_ns = 0;
  double seconds() const { return static_cast<double>(done_ns - submitted_ns) * 1e-9; }
};

class StepRunner {
public:
  // Throws llmrt::Error where the steps do not fit the plan.
  StepRunner(const plan::LoadedPlan &plan, const StepSpec &spec);

  // The executor's callback.
  exec::Executor::StepDone on_done();
  // Checks the pages that the executor has, and fills the caches up to the step's new tokens.
  void prepare(exec::Executor &executor);
  // Runs the step once and waits for its results, and with a recorder (always the same one) for all ranks. Throws llmrt::Error when it fails.
  StepTimes run(Recorder *recorder);
  // Seconds from one step's results to the next one's, while as many are under way as the executor takes: a mean over `steps`.
  double interval(int steps);
  // The step that run() runs.
  const exec::StepBatch &step() const { return step_; }

private:
  void add(exec::StepBatch &batch, int seq, int fresh, int context);
  StepTimes submit(exec::StepBatch batch);
  void wait_for(uint64_t id, std::unique_lock<std::mutex> &lock);
  void finish(const exec::StepBatch &batch, const exec::LogitsView &logits, const std::string &error);

  const plan::LoadedPlan &plan_;
  const StepSpec spec_;
  const uint32_t output_rank_;
  exec::Executor *executor_ = nullptr;
  exec::StepBatch step_;
  std::mt19937 random_{1};
  uint64_t last_id_ = 0, observed_ = 0;
  sample::Scratch scratch_;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t done_ = 0;
  int64_t done_ns_ = 0;
  std::vector<int64_t> ends_; // of all steps since interval() began
  std::string error_;
};

} // namespace llmrt::tool
