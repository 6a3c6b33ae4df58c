// A request inside the engine: its tokens so far, its pages, and where it stands.
//
// Ownership. All of it is guarded by the engine's lock, but for what reading a step's logits touches without it:
// `cancelled`, and, while a step in flight has rows of the request that the host reads, the tokens, the sampler and
// the prompt's log-probabilities. Such a request is not scheduled again before that step has returned.
#pragma once

#include "runtime/kv/page_table.h"
#include "runtime/sample/sampler.h"
#include "runtime/sched/engine.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace llmrt::sched {

struct Request {
  Request(uint64_t id, EngineRequest &&given, uint64_t seed, std::span<const int32_t> end_tokens)
      : id(id), prompt_len(static_cast<uint32_t>(given.prompt.size())), sampling(std::move(given.sampling)),
        on_event(std::move(given.on_event)), on_logits(std::move(given.on_logits)),
        tokens(std::move(given.prompt)), end_tokens(end_tokens.begin(), end_tokens.end()),
        sampler(sampling, seed, tokens, end_tokens) {
    if (sampling.prompt_logprobs >= 0)
      prompt_logprobs.resize(prompt_len);
  }

  // Tokens so far, those included whose ids only the device knows yet.
  uint32_t length() const { return static_cast<uint32_t>(tokens.size()) + unknown; }
  uint32_t pending() const { return length() - computed; } // tokens not in the cache yet
  bool wants_prompt_logprobs() const { return sampling.prompt_logprobs >= 0; }

  const uint64_t id;
  const uint32_t prompt_len;
  const SamplingParams sampling;
  std::function<void(RequestEvent &&)> on_event;
  const std::function<void(const float *, size_t)> on_logits;

  std::vector<int32_t> tokens;           // prompt, then output
  const std::vector<int32_t> end_tokens; // ids that end it
  sample::Sampler sampler;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs; // [prompt_len] if wanted
  uint32_t prompt_logprobs_done = 0;                         // rows scheduled so far, of prompt_len - 1

  kv::PageTable pages;
  uint32_t computed = 0;  // tokens in the cache, those of the steps in flight included
  uint32_t cached = 0;    // prompt tokens that the first admission found in the prefix cache
  uint64_t admission = 0; // rank among admissions; 0: waits. The largest is the youngest
  uint64_t last_step = 0;
  uint64_t gives_way = 0;  // the step that leaves it out, so that an older request gets its pages soon
  uint32_t in_flight = 0;  // steps in flight that carry it; two only while the scheduler runs ahead
  uint32_t unknown = 0;    // tokens that these steps draw on the device
  uint32_t drawn_row = 0;  // row of logits of the last of them
  bool was_admitted = false;
  bool prompt_counted = false;
  bool over = false; // its last event is sent; what a step in flight still does for it is dropped
  std::atomic<bool> cancelled = false;

  // When it was submitted, first part of a step, given its first and its last token; the default: not yet.
  using Time = std::chrono::steady_clock::time_point;
  Time arrived, started, first_token, last_token;
};

using RequestPtr = std::shared_ptr<Request>;

} // namespace llmrt::sched
