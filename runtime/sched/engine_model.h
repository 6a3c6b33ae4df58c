// What the engine needs to know of a plan, and how it gets its executor. Tests make both up; Engine::create()
// takes them from a plan.
#pragma once

#include "runtime/exec/executor.h"
#include "runtime/sched/engine.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace llmrt {

struct EngineModel {
  uint32_t max_model_len = 0;      // tokens of prompt and output of one request
  uint32_t max_num_seqs = 0;       // requests running at once, all steps in flight together
  uint32_t max_batched_tokens = 0; // tokens of one step
  uint32_t max_logits_rows = 0;    // rows of logits of one step
  uint32_t page_size = 0;          // tokens
  uint32_t num_pages = 0;
  size_t vocab = 0;
  std::vector<int32_t> eos_token_ids;
};

using ExecutorFactory = std::function<std::unique_ptr<exec::Executor>(exec::Executor::StepDone)>;

// Throws llmrt::Error when a limit is 0, and whatever the factory throws.
std::unique_ptr<Engine> create_engine(const EngineModel &model, const EngineOptions &options,
                                      const ExecutorFactory &make_executor);

} // namespace llmrt
