// Chooses the tokens of one request. A Sampler knows the request's parameters and the tokens so far; the n-th
// token is a pure function of (parameters, seed, tokens so far, logits), so neither batching nor preemption
// can change it.
#pragma once

#include "runtime/sample/params.h"
#include "runtime/sample/select.h"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace llmrt::sample {

class Sampler {
public:
  // `params` passed check_sampling(). `end_tokens` are those that end the request and are barred before
  // min_tokens; `seed` is params.seed, or a random one where the user gave none.
  Sampler(const SamplingParams &params, uint64_t seed, std::span<const int32_t> prompt,
          std::span<const int32_t> end_tokens);

  // Chooses the next token from logits [vocab]. Throws llmrt::Error when they are NaN or infinite, or when
  // nothing may be chosen; the request cannot go on then.
  int32_t sample(std::span<const float> logits, Scratch &scratch) const;

  // The token was taken into the output.
  void accept(int32_t token);

  uint32_t output_tokens() const { return output_tokens_; }

  // What a device needs to draw the next token by itself; nothing for a request whose logits a penalty, a bias or a ban
  // may change. The same answer for all of a request's tokens, so that one generator draws them all.
  struct Draw {
    float temperature, top_p, min_p;
    int32_t top_k;
    uint64_t seed, counter;
  };
  std::optional<Draw> device_draw() const;

private:
  bool changes_logits() const;
  void apply_penalties(std::span<float> row) const;

  struct Seen {
    int32_t id;
    uint32_t in_output;
  };

  uint32_t output_tokens_ = 0;
  bool counts_; // a penalty is on
  float temperature_, top_p_, min_p_, presence_, frequency_, repetition_;
  int32_t top_k_;
  uint32_t min_tokens_;
  uint64_t seed_;
  std::vector<std::pair<int32_t, float>> bias_;
  std::vector<int32_t> end_tokens_;
  std::vector<Seen> seen_;                      // distinct tokens of prompt and output
  std::unordered_map<int32_t, uint32_t> index_; // into seen_
};

// Log-probability and rank of `token` under the raw logits, and the `top` best. Throws as sample() does.
TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token, int32_t top, Scratch &scratch);

} // namespace llmrt::sample
