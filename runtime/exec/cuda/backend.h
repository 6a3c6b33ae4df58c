// What the CUDA backend library gives to llmrt, which loads it late so that it starts on machines without CUDA.
#pragma once

#include "runtime/exec/executor.h"

namespace llmrt::exec::cuda {

// The name of the library, beside the llmrt binary or in ../lib, and of its functions.
inline constexpr const char *kLibrary = "libllmrt_cuda.so";
inline constexpr const char *kEntry = "llmrt_cuda_create_executor";

// Why this machine has no CUDA device to use, as half a sentence with the remedy, until the next call; null where it has one.
using WhyNoDevices = const char *(*)();
inline constexpr const char *kWhyEntry = "llmrt_cuda_why_no_devices";

// As Executor::create(); the plan passed verification. Throws llmrt::Error.
using CreateExecutor = Executor *(*)(const std::shared_ptr<const plan::LoadedPlan> &plan, const ExecutorOptions &options,
                                     const Executor::StepDone &on_done);

} // namespace llmrt::exec::cuda
