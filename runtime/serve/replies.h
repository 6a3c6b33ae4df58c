// The JSON of answers: whole completions and chats, chunks of streams, usage.
#pragma once

#include "runtime/serve/choice_text.h"

namespace llmrt::serve {

/// What every answer to one request shares.
struct ReplyHead {
  std::string id;
  int64_t created = 0;
  std::string model;
  bool chat = false;
};

/// "cmpl-" or "chatcmpl-" and 24 random hexadecimal digits.
std::string make_id(bool chat);

struct Usage {
  size_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};
nlohmann::ordered_json usage_json(const Usage &usage);

const char *finish_name(FinishReason reason); ///< "stop", "length", or "abort" for one that was cancelled

/// A choice of a whole answer.
nlohmann::ordered_json choice_json(const Model &model, const GenerationRequest &request, size_t index,
                                   const Prompt &prompt, const ChoiceText &choice, const Piece &everything);
nlohmann::ordered_json answer_json(const ReplyHead &head, const GenerationRequest &request,
                                   nlohmann::ordered_json choices, const Usage &usage);

/// Server-sent events, each complete with its blank line.
std::string role_event(const ReplyHead &head, const GenerationRequest &request, size_t index, const Prompt &prompt);
/// `finished`: the choice that ends with this piece, or null. `prompt`: given with a completion's first piece, for
/// clients that want the prompt's ids.
std::string piece_event(const Model &model, const ReplyHead &head, const GenerationRequest &request, size_t index,
                        const Piece &piece, const ChoiceText *finished, const Prompt *prompt);
std::string usage_event(const ReplyHead &head, const Usage &usage);
std::string error_event(int status, const std::string &message);
inline const char *done_event() { return "data: [DONE]\n\n"; }

} // namespace llmrt::serve
