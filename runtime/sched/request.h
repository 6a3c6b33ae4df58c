// A request inside the engine: its tokens so far, its pages, and where it stands.
//
// Ownership. All of it is guarded by the engine's lock, but for what reading a step's logits touches without it:
// `cancelled`, and, while a step in flight has rows of the request that the host reads, the tokens, the sampler and
// the prompt's log-probabilities. Such a request is not scheduled again before that step has returned. `on_event` is
// the delivery thread's.
#pragma once

#include "runtime/exec/executor.h" // RowSampling
#include "runtime/kv/page_table.h"
#include "runtime/sample/sampler.h"
#include "runtime/sched/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace llmrt::sched {

// What every step of every request touches comes first, and of that, in a pair of cache lines, what steps that follow others touch;
// what a step does for hundreds of requests takes as long as those lines take to come.
struct alignas(128) Request {
  using Time = std::chrono::steady_clock::time_point;

  Request(uint64_t id, EngineRequest &&given, uint64_t seed, std::span<const int32_t> end_tokens)
      : prompt_len(static_cast<uint32_t>(given.prompt.size())), max_tokens(given.sampling.max_tokens),
        wants_prompt_logprobs(given.sampling.prompt_logprobs >= 0), tokens(std::move(given.prompt)),
        end_tokens(end_tokens.begin(), end_tokens.end()), sampler(given.sampling, seed, tokens, end_tokens), id(id),
        sampling(std::move(given.sampling)), on_logits(std::move(given.on_logits)), on_event(std::move(given.on_event)) {
    if (wants_prompt_logprobs)
      prompt_logprobs.resize(prompt_len);
    for (const int32_t end : end_tokens)
      end_bits |= end_bit(end);
    const auto device = sampler.device_draw();
    if (device && sampling.logprobs < 0 && !wants_prompt_logprobs && !on_logits)
      draw = {true, device->temperature, device->top_p, device->min_p, device->top_k, device->seed, 0};
  }

  // Tokens so far, those included whose ids only the device knows yet.
  uint32_t length() const { return static_cast<uint32_t>(tokens.size()) + unknown; }
  uint32_t pending() const { return length() - computed; } // tokens not in the cache yet
  uint32_t output_tokens() const { return static_cast<uint32_t>(tokens.size()) - prompt_len; }
  bool ends_at(int32_t token) const {
    return end_bits & end_bit(token) && std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
  }

  // Asks for what taking a result or composing a step that follows touches; what composing a whole step does; and then for where its
  // lists go on.
  void prefetch_results() const { prefetch(this), prefetch(&tokens); }
  void prefetch_compose() const { prefetch_results(), prefetch(&draw); }
  void prefetch_tokens() const { prefetch(tokens.data() + tokens.size()); }
  void prefetch_pages() const {
    const auto *page = pages.pages().data();
    prefetch(page), prefetch(page + 16), prefetch(page + pages.pages().size());
  }

  uint32_t computed = 0;  // tokens in the cache, those of the steps in flight included
  uint32_t unknown = 0;   // tokens that the steps in flight draw on the device
  uint32_t drawn_row = 0; // row of logits of the last of them
  uint32_t in_flight = 0; // steps in flight that carry it; two only while the scheduler runs ahead
  uint64_t admission = 0; // rank among admissions; 0: waits. The largest is the youngest
  uint64_t last_step = 0;
  Time last_token; // when it was given; the default: none was
  const uint32_t prompt_len, max_tokens;
  uint32_t end_bits = 0; // which ids may end it
  const bool wants_prompt_logprobs;
  bool was_admitted = false, was_started = false;
  bool prompt_counted = false;
  bool over = false; // its last event is sent; what a step in flight still does for it is dropped
  std::atomic<bool> cancelled = false;

  std::vector<int32_t> tokens; // prompt, then output
  uint64_t gives_way = 0; // the step that leaves it out, so that an older request gets its pages soon
  kv::PageTable pages;
  exec::RowSampling draw; // as of its first token; draw.draw false: the host draws

  uint32_t prompt_logprobs_done = 0;     // rows scheduled so far, of prompt_len - 1
  const std::vector<int32_t> end_tokens; // ids that end it
  sample::Sampler sampler;               // for tokens that the host draws

  const uint64_t id;
  const SamplingParams sampling;
  const std::function<void(const float *, size_t)> on_logits;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs; // [prompt_len] if wanted
  // When it was submitted, first part of a step, given its first token; the default: not yet.
  Time arrived, started, first_token;

  // What the delivery thread uses.
  alignas(128) std::function<void(RequestEvent &&)> on_event;
  uint32_t cached = 0; // prompt tokens that the first admission found in the prefix cache

private:
  static uint32_t end_bit(int32_t token) { return 1u << (token & 31); }
  static void prefetch(const void *at) { __builtin_prefetch(at, 1); }
};

using RequestPtr = std::shared_ptr<Request>;

} // namespace llmrt::sched
