// Which backend executes a plan. Backends for devices are libraries of their own, loaded here and now, so that llmrt
// starts on machines that lack what they need.
#pragma once

#include "runtime/exec/executor.h"

namespace llmrt::exec {

// An executor on the plan's own devices; null where the plan is for CPUs, or where the options ask for the CPU, or (with
// backend "auto") where this machine has no such devices. Throws llmrt::Error where "cuda" was asked for and cannot be had, or the
// machine has GPUs that cannot be used, saying what is missing.
std::unique_ptr<Executor> create_on_devices(const std::shared_ptr<const plan::LoadedPlan> &plan,
                                            const ExecutorOptions &options, const Executor::StepDone &on_done);

} // namespace llmrt::exec
