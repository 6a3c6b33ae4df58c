// A profile as a table, as JSON, and as a trace that chrome://tracing and ui.perfetto.dev open.
#pragma once

#include "tools/llmrt/profile_result.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace llmrt::tool {

// On stdout. `per_op`: every op of every rank, too.
void print_profile(const Profile &profile, const plan::LoadedPlan &plan, bool per_op);

nlohmann::ordered_json profile_json(const Profile &profile, const plan::LoadedPlan &plan, bool per_op);

// Throws llmrt::Error where no file can be written.
void check_trace_path(const std::string &path);

// Chrome's trace event format: a process for each rank, with threads for the host and for each stream of its device, and one
// for llmrt's own thread. Throws llmrt::Error where the file cannot be written.
void write_trace(const std::string &path, const plan::LoadedPlan &plan, const std::vector<StepTimes> &observed,
                 const Recorder &recorder, bool traced, const std::vector<exec::KernelSpan> &kernels);

} // namespace llmrt::tool
