// Answers in OpenAI's form (see replies.h).
#include "runtime/serve/replies.h"

#include "runtime/serve/api_error.h"

#include <random>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

std::string make_id(bool chat) {
  static constexpr char kHex[] = "0123456789abcdef";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id = chat ? "chatcmpl-" : "cmpl-";
  for (int i = 0; i < 24; ++i)
    id += kHex[random() & 15];
  return id;
}

Json usage_json(const Usage &usage) {
  Json out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  out["prompt_tokens_details"] = {{"cached_tokens", usage.cached_tokens}};
  return out;
}

const char *finish_name(FinishReason reason) {
  switch (reason) {
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  default:
    return "abort";
  }
}

static Json logprobs_json(const Model &model, const GenerationRequest &request, const Piece &piece) {
  if (!request.logprobs)
    return nullptr;
  auto top = static_cast<size_t>(std::max(request.sampling.logprobs, 0));
  return request.chat ? chat_logprobs(model, piece.logged, top) : completion_logprobs(model, piece.logged, top);
}

Json choice_json(const Model &model, const GenerationRequest &request, size_t index, const Prompt &prompt,
                 const ChoiceText &choice, const Piece &everything) {
  Json out;
  out["index"] = index;
  if (request.chat)
    out["message"] = {{"role", "assistant"}, {"content", everything.text}, {"refusal", nullptr}};
  else
    out["text"] = everything.text;
  out["logprobs"] = logprobs_json(model, request, everything);
  out["finish_reason"] = finish_name(choice.reason());
  out["stop_reason"] = choice.stop_reason();
  if (request.return_token_ids) {
    out["token_ids"] = everything.token_ids;
    if (!request.chat)
      out["prompt_token_ids"] = prompt.ids;
  }
  return out;
}

Json answer_json(const ReplyHead &head, const GenerationRequest &request, Json choices, const Usage &usage) {
  Json out;
  out["id"] = head.id;
  out["object"] = head.chat ? "chat.completion" : "text_completion";
  out["created"] = head.created;
  out["model"] = head.model;
  out["choices"] = std::move(choices);
  out["usage"] = usage_json(usage);
  if (request.return_token_ids && request.chat)
    out["prompt_token_ids"] = request.prompts.front().ids;
  return out;
}

static std::string chunk(const ReplyHead &head, Json choices, const Json *usage, const Prompt *prompt = nullptr) {
  Json out;
  out["id"] = head.id;
  out["object"] = head.chat ? "chat.completion.chunk" : "text_completion";
  out["created"] = head.created;
  out["model"] = head.model;
  out["choices"] = std::move(choices);
  if (usage)
    out["usage"] = *usage;
  if (prompt)
    out["prompt_token_ids"] = prompt->ids;
  return "data: " + dump(out) + "\n\n";
}

// Chunks before the last say "usage": null when usage was asked for.
static std::string choice_chunk(const ReplyHead &head, const GenerationRequest &request, Json choice,
                                const Prompt *prompt = nullptr) {
  static const Json kNull;
  return chunk(head, Json::array({std::move(choice)}), request.include_usage ? &kNull : nullptr, prompt);
}

std::string role_event(const ReplyHead &head, const GenerationRequest &request, size_t index, const Prompt &prompt) {
  Json choice;
  choice["index"] = index;
  choice["delta"] = {{"role", "assistant"}, {"content", ""}};
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  return choice_chunk(head, request, std::move(choice), request.return_token_ids && index == 0 ? &prompt : nullptr);
}

std::string piece_event(const Model &model, const ReplyHead &head, const GenerationRequest &request, size_t index,
                        const Piece &piece, const ChoiceText *finished, const Prompt *prompt) {
  Json choice;
  choice["index"] = index;
  if (!request.chat)
    choice["text"] = piece.text;
  else if (piece.text.empty() && finished)
    choice["delta"] = Json::object();
  else
    choice["delta"] = {{"content", piece.text}};
  choice["logprobs"] = piece.logged.empty() ? Json() : logprobs_json(model, request, piece);
  choice["finish_reason"] = finished ? Json(finish_name(finished->reason())) : Json();
  if (finished)
    choice["stop_reason"] = finished->stop_reason();
  if (request.return_token_ids) {
    choice["token_ids"] = piece.token_ids;
    if (prompt)
      choice["prompt_token_ids"] = prompt->ids;
  }
  return choice_chunk(head, request, std::move(choice));
}

std::string usage_event(const ReplyHead &head, const Usage &usage) {
  Json json = usage_json(usage);
  return chunk(head, Json::array(), &json);
}

std::string error_event(int status, const std::string &message) {
  return "data: " + error_body(status, message, {}, {}) + "\n\n";
}

} // namespace llmrt::serve
