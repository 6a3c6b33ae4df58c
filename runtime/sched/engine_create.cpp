// Engine::create(): what the engine needs, read from a plan.
#include "runtime/exec/executor.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/verify.h"
#include "runtime/sched/engine_model.h"
#include "runtime/support/error.h"

namespace llmrt {

std::unique_ptr<Engine> Engine::create(std::shared_ptr<const plan::LoadedPlan> plan,
                                       const EngineOptions &options) {
  if (!plan)
    throw Error("an engine needs a plan");
  // The fields read below may be absent from a plan that nobody has proven yet.
  if (const auto problems = plan::verify(plan->root()); !problems.empty())
    throw Error("the plan '" + plan->path() + "' does not hold: " + plan::to_string(problems));
  const plan::Limits &limits = *plan->root().limits();
  EngineModel model;
  model.max_model_len = limits.max_model_len();
  model.max_num_seqs = limits.max_num_seqs();
  model.max_batched_tokens = limits.max_batched_tokens();
  model.max_logits_rows = limits.max_logits_rows();
  model.page_size = limits.page_size();
  model.num_pages = limits.num_pages();
  model.vocab = plan->root().model()->vocab();
  if (const plan::Text *text = plan->root().text(); text && text->eos_token_ids())
    model.eos_token_ids.assign(text->eos_token_ids()->begin(), text->eos_token_ids()->end());

  exec::ExecutorOptions exec;
  exec.plan_folder = options.plan_folder.empty() ? plan->folder() : options.plan_folder;
  exec.threads = options.threads;
  exec.backend = options.backend;
  exec.share_devices = options.share_devices;
  exec.eager = options.eager;
  exec.collectives = options.collectives;
  exec.trace_collectives = options.check_collectives;
  exec.collective_timeout_s = options.collective_timeout_s;
  exec.algorithm_cache = options.algorithm_cache;
  if (options.on_load_progress)
    exec.on_progress = [&options](const exec::LoadProgress &p) {
      options.on_load_progress(p.bytes_done, p.bytes_total);
    };
  exec.on_capture = options.on_capture_progress;
  return create_engine(model, options, [&](exec::Executor::StepDone done) {
    return exec::Executor::create(plan, exec, std::move(done));
  });
}

} // namespace llmrt
