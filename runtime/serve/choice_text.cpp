// Text and log-probabilities of a choice (see choice_text.h).
#include "runtime/serve/choice_text.h"

#include "runtime/text/jinja/unicode.h"

#include <algorithm>
#include <cmath>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

ChoiceText::ChoiceText(const Model &model, const GenerationRequest &request, const Prompt &prompt,
                       text::StopMatcher matcher)
    : model_(model), request_(request), prompt_(prompt), matcher_(std::move(matcher)) {
  if (!model.tokenizer)
    return;
  decoder_.emplace(model.tokenizer, request.skip_special_tokens);
  decoder_->prime(prompt.ids);
}

// Characters are counted where they begin, so a token with the rest of one adds nothing.
static size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void ChoiceText::advance_offset(int32_t id) {
  if (model_.tokenizer && !(request_.skip_special_tokens && model_.tokenizer->is_special(id)))
    offset_ += characters(model_.tokenizer->token_bytes(id));
}

// The bytes at the beginning of `rest`, a part of the prompt's text, that are a token's. The text may have special tokens and may
// not, and of the first one's space nothing.
size_t ChoiceText::bytes_of_prompt(std::string_view rest, int32_t id) const {
  if (!model_.tokenizer)
    return 0;
  const std::string bytes = model_.tokenizer->token_bytes(id);
  if (rest.starts_with(bytes))
    return bytes.size();
  if (bytes.starts_with(' ') && rest.starts_with(std::string_view(bytes).substr(1)))
    return bytes.size() - 1;
  return model_.tokenizer->is_special(id) ? 0 : std::min(bytes.size(), rest.size());
}

void ChoiceText::log_prompt(const std::vector<std::optional<TokenLogprobs>> &logprobs, Piece &piece) {
  std::string_view rest = prompt_.text;
  for (size_t i = 0; i < prompt_.ids.size(); ++i) {
    piece.logged.push_back({prompt_.ids[i], i < logprobs.size() ? logprobs[i] : std::nullopt, offset_});
    const size_t n = bytes_of_prompt(rest, prompt_.ids[i]);
    offset_ += characters(rest.substr(0, n));
    rest.remove_prefix(n);
  }
  offset_ += characters(rest);
}

void ChoiceText::push_text(const std::string &text, Piece &piece) {
  if (matcher_.stopped())
    return;
  auto result = matcher_.push(text);
  piece.text += result.text;
  if (result.stopped) {
    stop_string_ = result.stop_index;
    finish_ = FinishReason::Stop;
  }
}

void ChoiceText::push(const TokenOutput &token, Piece &piece) {
  ++tokens_;
  piece.token_ids.push_back(token.id);
  if (request_.logprobs) {
    piece.logged.push_back({token.id, token.logprobs, offset_});
    advance_offset(token.id);
  }
  if (decoder_)
    push_text(decoder_->push(token.id), piece);
}

Piece ChoiceText::take(RequestEvent &&event) {
  Piece piece;
  if (finished())
    return piece; // produced before the cancellation arrived
  if (request_.echo && !echoed_) {
    echoed_ = true;
    piece.text = prompt_.text;
    if (request_.logprobs)
      log_prompt(event.prompt_logprobs, piece);
  }
  cached_tokens_ = std::max(cached_tokens_, event.cached_tokens);
  for (const TokenOutput &token : event.tokens) {
    push(token, piece);
    if (finished())
      return piece;
  }
  if (!event.finish)
    return piece;
  stop_token_ = event.stop_token;
  error_ = std::move(event.error);
  if (stop_token_ >= 0) { // produced too, though no text comes of it
    ++tokens_;
    piece.token_ids.push_back(stop_token_);
  }
  Piece tail = finish(*event.finish);
  piece.text += tail.text;
  return piece;
}

Piece ChoiceText::finish(FinishReason reason) {
  Piece piece;
  if (request_.echo && !echoed_) {
    echoed_ = true;
    piece.text = prompt_.text;
  }
  if (decoder_) {
    push_text(decoder_->finish(), piece);
    if (!matcher_.stopped())
      piece.text += matcher_.finish();
  }
  if (!finish_)
    finish_ = reason;
  return piece;
}

Json ChoiceText::stop_reason() const {
  if (stop_string_)
    return request_.stops[*stop_string_];
  const auto &ids = request_.sampling.stop_token_ids;
  if (stop_token_ >= 0 && std::find(ids.begin(), ids.end(), stop_token_) != ids.end())
    return stop_token_;
  return nullptr;
}

std::string repair_utf8(const std::string &bytes) {
  std::string out;
  std::string_view rest = bytes;
  while (true) {
    size_t bad = text::jinja::find_invalid_utf8(rest);
    if (bad == std::string_view::npos)
      return out += rest;
    out += rest.substr(0, bad);
    out += "\xef\xbf\xbd";
    rest.remove_prefix(bad + 1);
    while (!rest.empty() && (static_cast<unsigned char>(rest[0]) & 0xc0) == 0x80)
      rest.remove_prefix(1); // one mark for one broken character
  }
}

std::string token_text(const Model &model, int32_t id) {
  return model.tokenizer ? repair_utf8(model.tokenizer->token_bytes(id)) : "token_id:" + std::to_string(id);
}

namespace {

// JSON has no infinity; a token that cannot be gets the number that clients know for it.
Json shown(float logprob) { return std::isfinite(logprob) ? Json(logprob) : Json(-9999.0); }

Json byte_list(const Model &model, int32_t id) {
  if (!model.tokenizer)
    return nullptr;
  Json bytes = Json::array();
  for (char c : model.tokenizer->token_bytes(id))
    bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Json chat_token(const Model &model, int32_t id, float logprob) {
  Json out;
  out["token"] = token_text(model, id);
  out["logprob"] = shown(logprob);
  out["bytes"] = byte_list(model, id);
  return out;
}

} // namespace

Json chat_logprobs(const Model &model, const std::vector<LoggedToken> &tokens, size_t top) {
  Json content = Json::array();
  for (const LoggedToken &token : tokens) {
    Json entry = chat_token(model, token.id, token.logprobs ? token.logprobs->logprob : -INFINITY);
    Json best = Json::array();
    if (token.logprobs)
      for (size_t i = 0; i < std::min(top, token.logprobs->top.size()); ++i)
        best.push_back(chat_token(model, token.logprobs->top[i].first, token.logprobs->top[i].second));
    entry["top_logprobs"] = std::move(best);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

Json completion_logprobs(const Model &model, const std::vector<LoggedToken> &tokens, size_t top) {
  Json texts = Json::array(), values = Json::array(), bests = Json::array(), offsets = Json::array();
  for (const LoggedToken &token : tokens) {
    texts.push_back(token_text(model, token.id));
    offsets.push_back(token.offset);
    if (!token.logprobs) {
      values.push_back(nullptr);
      bests.push_back(nullptr);
      continue;
    }
    values.push_back(shown(token.logprobs->logprob));
    Json best = Json::object();
    auto add = [&](std::string text, const Json &value) { // of tokens that look the same, the better one
      if (!best.contains(text))
        best[std::move(text)] = value;
    };
    for (size_t i = 0; i < std::min(top, token.logprobs->top.size()); ++i)
      add(token_text(model, token.logprobs->top[i].first), shown(token.logprobs->top[i].second));
    add(texts.back().get<std::string>(), values.back()); // the chosen one, if it is not among the best
    bests.push_back(std::move(best));
  }
  Json out;
  out["text_offset"] = std::move(offsets);
  out["token_logprobs"] = std::move(values);
  out["tokens"] = std::move(texts);
  out["top_logprobs"] = std::move(bests);
  return out;
}

} // namespace llmrt::serve
