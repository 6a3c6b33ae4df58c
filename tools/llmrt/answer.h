// One answer of `llmrt run` as it comes: text decoded piece by piece, stop strings watched for, logits kept
// if wanted.
#pragma once

#include "runtime/sched/engine.h"
#include "runtime/text/stop_matcher.h"
#include "runtime/text/stream_decoder.h"

#include <nlohmann/json_fwd.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace llmrt::tool {

class Answer {
public:
  // `tokenizer` may be null: then there is no text. `on_text` gets text as soon as it is sure, from the
  // engine's thread; it may be empty.
  Answer(std::vector<int32_t> prompt, std::shared_ptr<const text::Tokenizer> tokenizer,
         const std::vector<std::string> &stops, std::function<void(std::string_view)> on_text);

  // Submits the prompt. Throws llmrt::Error when the engine refuses it. The answer must outlive the request.
  void submit(Engine &engine, const SamplingParams &sampling, bool keep_logits);

  // Blocks until the last event. Throws llmrt::Error when the request failed.
  void wait();

  const std::vector<int32_t> &prompt() const { return prompt_; }
  const std::vector<int32_t> &token_ids() const { return token_ids_; }
  const std::string &text() const { return text_; }
  // "stop" or "length".
  std::string finish_reason() const;
  double first_token_seconds() const { return first_token_s_; }
  double seconds() const { return total_s_; }

  // {"prompt_ids", "token_ids", "text", "finish_reason", "stop_token", "stop", "cached_tokens", "logprobs"}
  nlohmann::ordered_json to_json() const;
  // Writes the kept logits, f32 [steps, vocab].
  void write_logits(const std::string &path) const;

private:
  void on_event(RequestEvent &&event);
  void emit(const std::string &piece);

  const std::vector<int32_t> prompt_;
  const std::vector<std::string> stops_;
  std::function<void(std::string_view)> on_text_;
  std::optional<text::StreamDecoder> decoder_;
  text::StopMatcher matcher_;
  Engine *engine_ = nullptr;
  uint64_t started_ns_ = 0;

  // Written by the engine's threads until `done_`.
  std::vector<int32_t> token_ids_;
  std::vector<TokenLogprobs> logprobs_;
  std::string text_, error_;
  std::optional<FinishReason> finish_;
  int32_t stop_token_ = -1;
  std::optional<size_t> stop_index_;
  uint32_t cached_tokens_ = 0;
  double first_token_s_ = 0, total_s_ = 0;
  std::vector<float> logits_;
  size_t vocab_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t id_ = 0; // 0: not known yet
  bool done_ = false;
};

} // namespace llmrt::tool
