// From a plan's path to a running engine, with what a user wants to see meanwhile: progress on a terminal,
// then the memory measured beside the memory planned.
#pragma once

#include "runtime/plan/loaded_plan.h"
#include "runtime/sched/engine.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace llmrt::tool {

// Options that `run` and `serve` share.
struct StartFlags {
  std::string plan_path;
  std::string model_dir;
  unsigned threads = 0;
  bool no_prefix_cache = false;
  std::string backend = "auto";
  bool share_devices = false;
  exec::Collectives collectives = exec::Collectives::Auto;
  bool check_collectives = false;
  double collective_timeout_s = 60;
  bool eager = false;
  bool no_algorithm_cache = false;
  bool no_run_ahead = false;

  void add_to(CLI::App &command);
};

struct Started {
  std::shared_ptr<const plan::LoadedPlan> plan;
  std::unique_ptr<Engine> engine;
  double seconds = 0; // that it took
};

// The same, without an engine around the executor.
struct StartedExecutor {
  std::shared_ptr<const plan::LoadedPlan> plan;
  std::unique_ptr<exec::Executor> executor;
};

// The plan of the flags, proven. Throws llmrt::Error.
std::shared_ptr<const plan::LoadedPlan> load_plan(const StartFlags &flags);
StartedExecutor start_executor(const StartFlags &flags, std::shared_ptr<const plan::LoadedPlan> plan,
                               exec::Executor::StepDone on_done);

// `report`: also on a stderr that is no terminal, print the memory table and the line that says all is ready.
Started start(const StartFlags &flags, uint32_t max_queued_requests, bool report);

} // namespace llmrt::tool
