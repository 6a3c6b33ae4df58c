// A profile's arithmetic: from spans to the time of every op in a step, set beside what the op must do, and added up over
// layers and ranks.
#pragma once

#include "runtime/exec/op_cost.h"
#include "tools/llmrt/profile_recorder.h"
#include "tools/llmrt/profile_steps.h"

#include <string>
#include <vector>

namespace llmrt::tool {

// One op, or one phase beside the ops, of one rank.
struct OpResult {
  uint32_t rank = 0;
  int64_t op = -1; // index into Program.ops; -1: not an op of the plan
  int layer = -1;
  std::string title;
  double seconds = 0; // in a step
  double kernels = 0; // launched in a step
  std::vector<std::string> kernel_names; // distinct
  exec::OpCost cost;
  double floor_s = 0; // bytes over the rank's read bandwidth, or operations over its product rate
};

// Ops of one title, all layers and ranks.
struct TitleResult {
  std::string title;
  double calls = 0, kernels = 0; // over all ranks
  double seconds = 0, floor_s = 0; // mean over the ranks, so that the titles add up to a rank's step
  exec::OpCost cost;               // over all ranks
  std::vector<std::string> kernel_names;
};

struct Profile {
  StepSpec spec;
  uint32_t ranks = 1;
  std::string backend;
  bool graph = false;         // whether step_s was reached with graphs, possibly
  int steps = 0;
  std::vector<int> placement; // exec::Executor::placement()
  exec::Ceilings ceilings;    // of all devices together
  double step_s = 0;          // the step as it is run when nobody looks: submitted to results there
  double observed_s = 0;      // while looked at
  int in_flight = 1;          // steps that stages can work on at once
  double interval_s = 0;      // from step to step while so many are under way; 0: there is one stage
  double slowest_stage_s = 0; // the busy time of the stage that has most to do: no interval is shorter
  std::vector<OpResult> ops;  // by rank, in the order of the program
  std::vector<TitleResult> titles; // in the order of first appearance
  double sum_s = 0, floor_s = 0; // over the titles
};

// Steps are disturbed now and then (another process, a clock that drops). Figures are means over the faster half, so that
// ops still add up to steps.
std::vector<StepTimes> faster_half(std::vector<StepTimes> steps);
double mean_seconds(const std::vector<StepTimes> &steps);

// Fills `ops`, `titles`, and their sums: means over the `observed` steps. `kernels`: what the tracer collected, by
// start; used in place of the recorder's spans where `traced`.
void attribute(Profile &profile, const plan::LoadedPlan &plan, const exec::StepBatch &step, const std::vector<StepTimes> &observed,
               const Recorder &recorder, bool traced, const std::vector<exec::KernelSpan> &kernels);

// The demangled name of a kernel without return type, template arguments and parameters.
std::string short_kernel_name(const std::string &mangled);

// The title of an op or phase.
std::string title_of(const plan::Program &program, uint32_t op);

} // namespace llmrt::tool
