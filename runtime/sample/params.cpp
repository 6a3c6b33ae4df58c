// Ranges of the sampling parameters; comparisons are written so that NaN fails them.
#include "runtime/sample/params.h"

#include <cmath>
#include <cstdio>

namespace llmrt {

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

static std::string out_of_range(const char *name, double value, const char *range) {
  return std::string(name) + " is " + number(value) + "; it must be " + range;
}

static std::string bad_token(const char *name, int32_t id, size_t vocab) {
  return std::string(name) + " names token " + std::to_string(id) + "; the vocabulary has ids 0 to " +
         std::to_string(vocab - 1);
}

std::string check_sampling(const SamplingParams &p, size_t vocab) {
  if (!(p.temperature >= 0) || !std::isfinite(p.temperature))
    return out_of_range("temperature", p.temperature, "a finite number of at least 0");
  if (p.top_k < -1)
    return out_of_range("top_k", p.top_k, "at least 1, or 0 or -1 for off");
  if (!(p.top_p > 0 && p.top_p <= 1))
    return out_of_range("top_p", p.top_p, "above 0 and at most 1");
  if (!(p.min_p >= 0 && p.min_p <= 1))
    return out_of_range("min_p", p.min_p, "from 0 to 1");
  if (!(p.presence_penalty >= -2 && p.presence_penalty <= 2))
    return out_of_range("presence_penalty", p.presence_penalty, "from -2 to 2");
  if (!(p.frequency_penalty >= -2 && p.frequency_penalty <= 2))
    return out_of_range("frequency_penalty", p.frequency_penalty, "from -2 to 2");
  if (!(p.repetition_penalty > 0) || !std::isfinite(p.repetition_penalty))
    return out_of_range("repetition_penalty", p.repetition_penalty, "a finite number above 0");
  if (p.min_tokens > p.max_tokens)
    return "min_tokens is " + std::to_string(p.min_tokens) + " and max_tokens " +
           std::to_string(p.max_tokens) + "; min_tokens must not be the larger";
  if (p.logprobs < -1 || p.logprobs > kMaxLogprobs)
    return out_of_range("logprobs", p.logprobs, "from 0 to 256, or -1 for none");
  if (p.prompt_logprobs < -1 || p.prompt_logprobs > kMaxLogprobs)
    return out_of_range("prompt_logprobs", p.prompt_logprobs, "from 0 to 256, or -1 for none");
  if (p.logit_bias.size() > kMaxLogitBias)
    return "logit_bias has " + std::to_string(p.logit_bias.size()) + " entries; at most " +
           std::to_string(kMaxLogitBias) + " are allowed";
  for (auto [id, bias] : p.logit_bias) {
    if (id < 0 || static_cast<size_t>(id) >= vocab)
      return bad_token("logit_bias", id, vocab);
    if (std::isnan(bias) || bias == INFINITY)
      return out_of_range("logit_bias", bias, "a number, or -infinity to ban the token");
  }
  if (p.stop_token_ids.size() > kMaxLogitBias)
    return "stop_token_ids has " + std::to_string(p.stop_token_ids.size()) + " entries; at most " +
           std::to_string(kMaxLogitBias) + " are allowed";
  for (int32_t id : p.stop_token_ids)
    if (id < 0 || static_cast<size_t>(id) >= vocab)
      return bad_token("stop_token_ids", id, vocab);
  return {};
}

} // namespace llmrt
