// What a client asks for, read from the body of /v1/completions or /v1/chat/completions and checked.
#pragma once

#include "runtime/sample/params.h"
#include "runtime/serve/fields.h"
#include "runtime/serve/model.h"

#include <string>
#include <vector>

namespace llmrt::serve {

struct Prompt {
  std::vector<int32_t> ids; ///< at least one
  std::string text;         ///< as given, or decoded; for echo
  uint32_t max_tokens = 0;  ///< what this prompt may produce
};

struct GenerationRequest {
  bool chat = false;
  std::vector<Prompt> prompts;
  SamplingParams sampling; ///< max_tokens and seed are set for each choice
  uint32_t n = 1;          ///< choices for each prompt
  std::vector<std::string> stops;
  bool include_stop = false;
  bool skip_special_tokens = true;
  bool stream = false, include_usage = false;
  bool echo = false;
  bool logprobs = false;
  bool return_token_ids = false;
};

/// Reads the request and turns its prompts into token ids. Throws ApiError.
GenerationRequest read_generation(const Model &model, bool chat, Fields &fields);

/// 404 unless the request names this model, or none.
void check_model(const Model &model, Fields &fields);

/// Token ids of a text; 400 if the model has no tokenizer.
std::vector<int32_t> encode(const Model &model, const std::string &text, bool add_special_tokens);

/// 400 if an id is outside the vocabulary.
void check_vocabulary(const Model &model, const std::vector<int32_t> &ids, const std::string &param);

} // namespace llmrt::serve
