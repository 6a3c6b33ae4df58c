// What `llmrt run` is asked: a text, a chat message, token ids, or a file of many of these.
#pragma once

#include "runtime/plan/loaded_plan.h"
#include "runtime/text/tokenizer.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace llmrt::tool {

struct PromptFlags {
  std::string text, ids, file, system;
  bool chat = false, raw = false;

  void add_to(CLI::App &command);
  // Throws CLI::Error unless exactly one source is given, and the rest goes together.
  void check() const;
};

// The plan's tokenizer; null when it has none.
std::shared_ptr<const text::Tokenizer> load_tokenizer(const plan::Plan &plan);

// Token ids of every prompt. Throws llmrt::Error for malformed input, or text without a tokenizer.
std::vector<std::vector<int32_t>> read_prompts(const PromptFlags &flags, const plan::Plan &plan,
                                               const text::Tokenizer *tokenizer);

} // namespace llmrt::tool
