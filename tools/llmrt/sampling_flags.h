// The sampling options of `llmrt run`. What is not given comes from the plan (generation_config.json).
#pragma once

#include "runtime/plan/loaded_plan.h"
#include "runtime/sample/params.h"

#include <CLI/CLI.hpp>

#include <optional>

namespace llmrt::tool {

struct SamplingFlags {
  std::optional<float> temperature, top_p, min_p, presence_penalty, frequency_penalty, repetition_penalty;
  std::optional<int32_t> top_k, logprobs;
  std::optional<uint32_t> max_tokens, min_tokens;
  std::optional<uint64_t> seed;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;

  void add_to(CLI::App &command);
  // For a prompt of this many tokens; max_tokens defaults to 256, or less where the context ends.
  SamplingParams resolve(const plan::Plan &plan, size_t prompt_tokens) const;
};

} // namespace llmrt::tool
