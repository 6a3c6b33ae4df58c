// Follows one request to its end.
#include "tools/llmrt/answer.h"

#include "runtime/support/error.h"
#include "tools/llmrt/npy.h"

#include <nlohmann/json.hpp>

#include <chrono>

namespace llmrt::tool {

static uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Answer::Answer(std::vector<int32_t> prompt, std::shared_ptr<const text::Tokenizer> tokenizer,
               const std::vector<std::string> &stops, std::function<void(std::string_view)> on_text)
    : prompt_(std::move(prompt)), stops_(stops), on_text_(std::move(on_text)), matcher_(stops) {
  if (tokenizer) {
    decoder_.emplace(std::move(tokenizer), true);
    decoder_->prime(prompt_);
  } else if (!stops.empty()) {
    throw Error("the plan carries no tokenizer, so stop strings cannot be found: give --stop-token-ids");
  }
}

void Answer::submit(Engine &engine, const SamplingParams &sampling, bool keep_logits) {
  engine_ = &engine;
  EngineRequest request;
  request.prompt = prompt_;
  request.sampling = sampling;
  request.on_event = [this](RequestEvent &&event) { on_event(std::move(event)); };
  if (keep_logits)
    request.on_logits = [this](const float *logits, size_t vocab) {
      vocab_ = vocab;
      logits_.insert(logits_.end(), logits, logits + vocab);
    };
  started_ns_ = now_ns();
  SubmitError error;
  std::string message;
  const uint64_t id = engine.submit(std::move(request), error, message);
  if (error != SubmitError::None)
    throw Error(message);
  std::lock_guard lock(mutex_);
  id_ = id;
  if (stop_index_) // it stopped before its id was known
    engine.cancel(id);
}

void Answer::emit(const std::string &piece) {
  if (matcher_.stopped())
    return;
  const auto result = matcher_.push(piece);
  text_ += result.text;
  if (on_text_ && !result.text.empty())
    on_text_(result.text);
  if (!result.stopped)
    return;
  std::lock_guard lock(mutex_);
  stop_index_ = result.stop_index;
  if (id_ != 0)
    engine_->cancel(id_);
}

void Answer::on_event(RequestEvent &&event) {
  const double elapsed = static_cast<double>(now_ns() - started_ns_) * 1e-9;
  for (const TokenOutput &token : event.tokens) {
    if (matcher_.stopped())
      break; // produced before the cancellation arrived
    if (token_ids_.empty())
      first_token_s_ = elapsed;
    token_ids_.push_back(token.id);
    if (token.logprobs)
      logprobs_.push_back(*token.logprobs);
    if (decoder_)
      emit(decoder_->push(token.id));
  }
  cached_tokens_ = event.cached_tokens;
  if (!event.finish)
    return;
  if (decoder_) {
    emit(decoder_->finish());
    const std::string tail = matcher_.stopped() ? std::string() : matcher_.finish();
    text_ += tail;
    if (on_text_ && !tail.empty())
      on_text_(tail);
  }
  total_s_ = elapsed;
  error_ = event.error;
  stop_token_ = event.stop_token;
  std::lock_guard lock(mutex_);
  finish_ = stop_index_ ? FinishReason::Stop : *event.finish;
  done_ = true;
  changed_.notify_all();
}

void Answer::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
  if (*finish_ == FinishReason::Error)
    throw Error(error_);
  if (*finish_ == FinishReason::Cancelled)
    throw Error("the request was cancelled");
}

std::string Answer::finish_reason() const {
  return finish_ == FinishReason::Stop ? "stop" : "length";
}

nlohmann::ordered_json Answer::to_json() const {
  nlohmann::ordered_json json;
  json["prompt_ids"] = prompt_;
  json["token_ids"] = token_ids_;
  json["text"] = decoder_ ? nlohmann::ordered_json(text_) : nlohmann::ordered_json(nullptr);
  json["finish_reason"] = finish_reason();
  json["stop_token"] =
      stop_token_ >= 0 ? nlohmann::ordered_json(stop_token_) : nlohmann::ordered_json(nullptr);
  json["stop"] =
      stop_index_ ? nlohmann::ordered_json(stops_.at(*stop_index_)) : nlohmann::ordered_json(nullptr);
  json["cached_tokens"] = cached_tokens_;
  if (!logprobs_.empty()) {
    auto &list = json["logprobs"] = nlohmann::ordered_json::array();
    for (const TokenLogprobs &lp : logprobs_) {
      nlohmann::ordered_json top = nlohmann::ordered_json::array();
      for (auto [id, value] : lp.top)
        top.push_back({{"id", id}, {"logprob", value}});
      list.push_back({{"logprob", lp.logprob}, {"rank", lp.rank}, {"top", std::move(top)}});
    }
  }
  json["seconds"] = {{"first_token", first_token_s_}, {"total", total_s_}};
  return json;
}

void Answer::write_logits(const std::string &path) const {
  write_npy(path, logits_, vocab_ ? logits_.size() / vocab_ : 0, vocab_);
}

} // namespace llmrt::tool
