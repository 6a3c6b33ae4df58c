// What the CUDA backend library gives to llmrt, which loads it late so that it starts on machines without CUDA.
#pragma once

#include "runtime/exec/executor.h"

namespace llmrt::exec::cuda {

// The name of the library, beside the llmrt binary or in ../lib, and of its one function.
inline constexpr const char *kLibrary = "libllmrt_cuda.so";
inline constexpr const char *kEntry = "llmrt_cuda_create_executor";

// CUDA devices of this machine; 0 where the driver has none.
using CountDevices = int (*)();
inline constexpr const char *kCountEntry = "llmrt_cuda_count_devices";

// As Executor::create(); the plan passed verification. Throws llmrt::Error.
using CreateExecutor = Executor *(*)(const std::shared_ptr<const plan::LoadedPlan> &plan, const ExecutorOptions &options,
                                     const Executor::StepDone &on_done);

} // namespace llmrt::exec::cuda
