// What /metrics says, in Prometheus' text format. Names and meanings are vLLM's where it has them, so that dashboards need
// another prefix at most.
#pragma once

#include "runtime/serve/generation.h"

#include <string>

namespace llmrt::serve {

/// Every line is labelled with the model's name and the engine's number. `prefix` is put in front of every name.
std::string metrics_text(const std::string &prefix, const std::string &model, const EngineStats &stats, const EngineMetrics &metrics,
                         const GenerationCounts &counts);

/// Whether names that begin so are names of metrics: letters, digits, _ and :, no digit first.
bool is_metrics_prefix(const std::string &prefix);

} // namespace llmrt::serve
