// The text of one choice as its tokens arrive: decoded incrementally, watched for stop strings, with the
// log-probabilities in the form that answers carry them.
#pragma once

#include "runtime/sched/engine.h"
#include "runtime/serve/model.h"
#include "runtime/serve/request_fields.h"
#include "runtime/text/stop_matcher.h"
#include "runtime/text/stream_decoder.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace llmrt::serve {

/// One token in an answer's logprobs.
struct LoggedToken {
  int32_t id = 0;
  std::optional<TokenLogprobs> logprobs; ///< none for the first of an echoed prompt
  size_t offset = 0;                     ///< in characters of the choice's text
};

/// What became ready with one event.
struct Piece {
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<LoggedToken> logged;
};

class ChoiceText {
public:
  /// `matcher` watches for the request's stop strings.
  ChoiceText(const Model &model, const GenerationRequest &request, const Prompt &prompt, text::StopMatcher matcher);

  /// Takes in an event; after the last one, or a stop string, `finished()`.
  Piece take(RequestEvent &&event);
  /// Ends it with what is held back; for a request that needed no engine.
  Piece finish(FinishReason reason);

  bool finished() const { return finish_.has_value(); }
  FinishReason reason() const { return *finish_; }
  bool stopped_by_string() const { return stop_string_.has_value(); }
  /// The stop string, the id of the stop token, or null.
  nlohmann::ordered_json stop_reason() const;
  const std::string &error() const { return error_; }
  size_t completion_tokens() const { return tokens_; }
  uint32_t cached_tokens() const { return cached_tokens_; }

private:
  void push(const TokenOutput &token, Piece &piece);
  void push_text(const std::string &text, Piece &piece);
  void log_prompt(const std::vector<std::optional<TokenLogprobs>> &logprobs, Piece &piece);
  void advance_offset(int32_t id);
  size_t bytes_of_prompt(std::string_view rest, int32_t id) const;

  const Model &model_;
  const GenerationRequest &request_;
  const Prompt &prompt_;
  std::optional<text::StreamDecoder> decoder_; ///< none without a tokenizer
  text::StopMatcher matcher_;
  bool echoed_ = false;
  size_t tokens_ = 0;
  size_t offset_ = 0;
  uint32_t cached_tokens_ = 0;
  int32_t stop_token_ = -1;
  std::optional<size_t> stop_string_;
  std::optional<FinishReason> finish_;
  std::string error_;
};

/// The text that a token stands for by itself, repaired where it is not UTF-8.
std::string token_text(const Model &model, int32_t id);

/// Bytes that are not UTF-8 become U+FFFD.
std::string repair_utf8(const std::string &bytes);

/// Chat's form: {content: [{token, logprob, bytes, top_logprobs}]}.
nlohmann::ordered_json chat_logprobs(const Model &model, const std::vector<LoggedToken> &tokens, size_t top);
/// Completions' form: {tokens, token_logprobs, top_logprobs, text_offset}.
nlohmann::ordered_json completion_logprobs(const Model &model, const std::vector<LoggedToken> &tokens, size_t top);

} // namespace llmrt::serve
