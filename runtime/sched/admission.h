// What an engine cannot run at all, known before anything is queued.
#pragma once

#include "runtime/sched/engine.h"
#include "runtime/sched/engine_model.h"

#include <string>

namespace llmrt::sched {

// Throws llmrt::Error for a model without room for anything, or whose end-of-text tokens are none of its vocabulary.
void check_model(const EngineModel &model);

// Why the request can never run, as a sentence; empty if it can.
std::string why_never(const EngineModel &model, const EngineRequest &request);

} // namespace llmrt::sched
