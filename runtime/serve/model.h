// The model as the server presents it: names, limits, and the ways between text and token ids.
#pragma once

#include "runtime/sample/params.h"
#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/tokenizer.h"

#include <memory>
#include <string>

namespace llmrt::serve {

struct Model {
  std::string name;           ///< what requests call it and /v1/models lists
  uint32_t max_model_len = 0; ///< tokens of prompt and output; the plan's number
  size_t vocab = 0;
  SamplingParams defaults;    ///< for fields that a request leaves out
  int64_t created = 0;        ///< seconds since 1970
  std::shared_ptr<const text::Tokenizer> tokenizer;        ///< null: token ids only
  std::shared_ptr<const text::ChatTemplate> chat_template; ///< null: no chat
  std::string no_chat_reason; ///< a sentence for clients when chat_template is null
};

} // namespace llmrt::serve
