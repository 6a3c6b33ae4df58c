// How a request wants its tokens chosen. The order in which the knobs act is fixed, and vLLM's:
//   logit_bias and the ban of end tokens before min_tokens
//   -> repetition, frequency, presence penalty
//   -> temperature (0: the best token, and nothing below matters)
//   -> min_p -> top_k -> top_p (of what the filters before it left, renormalised)
//   -> one draw.
// Of equal logits the lowest id is the better one, everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmrt {

struct SamplingParams {
  float temperature = 1.0f;        // 0 (or below 1e-5): greedy
  int32_t top_k = 0;               // 0 or -1: off
  float top_p = 1.0f;              // the fewest tokens whose probabilities reach it
  float min_p = 0.0f;              // tokens less likely than min_p × the likeliest are out
  float presence_penalty = 0.0f;   // subtracted from each token of the output so far
  float frequency_penalty = 0.0f;  // subtracted once for each time it occurs there
  float repetition_penalty = 1.0f; // over prompt and output: logits > 0 are divided by it, others multiplied
  std::optional<uint64_t> seed;    // same seed, same tokens, whatever else runs
  std::vector<std::pair<int32_t, float>> logit_bias; // added to the logit
  uint32_t max_tokens = 16;
  uint32_t min_tokens = 0; // EOS and stop tokens are barred before
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  int32_t logprobs = -1;        // -1: none; n: the chosen token's and the n best
  int32_t prompt_logprobs = -1; // likewise for each prompt token (the first has none)
};

// Of the raw logits: natural log of the softmax before bias, penalties and temperature (as OpenAI and vLLM
// report it).
struct TokenLogprobs {
  float logprob = 0;
  int32_t rank = 0;                           // 1 = the best
  std::vector<std::pair<int32_t, float>> top; // best first
};

// The most entries that logit_bias and stop_token_ids may have, and the most best tokens that may be
// reported: each costs time or memory at every token.
inline constexpr size_t kMaxLogitBias = 4096;
inline constexpr int32_t kMaxLogprobs = 256;

// A sentence for the user when a value is out of range (NaN included) or a token id outside [0, vocab); else
// empty.
std::string check_sampling(const SamplingParams &params, size_t vocab);

} // namespace llmrt
