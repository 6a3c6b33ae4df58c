// A request inside the engine: its tokens so far, its pages, and where it stands.
//
// Ownership. While `in_flight` is set the request belongs to the step that carries it: only the step's
// completion may touch it (`cancelled` apart). Otherwise it is guarded by the engine's lock.
#pragma once

#include "runtime/kv/page_table.h"
#include "runtime/sample/sampler.h"
#include "runtime/sched/engine.h"

#include <atomic>
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

  uint32_t pending() const {
    return static_cast<uint32_t>(tokens.size()) - computed;
  } // tokens not in the cache yet
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
  uint32_t computed = 0;  // tokens in the cache, those of the step in flight included
  uint32_t cached = 0;    // prompt tokens that the first admission found in the prefix cache
  uint64_t admission = 0; // rank among admissions; 0: waits. The largest is the youngest
  uint64_t last_step = 0;
  bool was_admitted = false;
  bool prompt_counted = false;
  bool in_flight = false;
  std::atomic<bool> cancelled = false;
};

using RequestPtr = std::shared_ptr<Request>;

} // namespace llmrt::sched
