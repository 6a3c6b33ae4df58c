// Ranges are checked by the engine, for the server and for `run` alike.
#include "tools/llmrt/sampling_flags.h"

#include "runtime/sched/defaults.h"

#include <algorithm>

namespace llmrt::tool {

static constexpr uint32_t kDefaultMaxTokens = 256;

void SamplingFlags::add_to(CLI::App &command) {
  command.add_option("--max-tokens", max_tokens,
                     "Most tokens to produce (default: 256, or what the context leaves)");
  command.add_option("--min-tokens", min_tokens, "No end of text before so many tokens");
  command.add_option("--temperature", temperature, "0: always the best token; higher: more varied");
  command.add_option("--top-k", top_k, "Draw from the k best tokens; 0: off");
  command.add_option("--top-p", top_p, "Draw from the fewest tokens whose probabilities reach this");
  command.add_option("--min-p", min_p, "Drop tokens less likely than this share of the likeliest");
  command.add_option("--presence-penalty", presence_penalty,
                     "Subtracted from the logits of tokens in the output");
  command.add_option("--frequency-penalty", frequency_penalty,
                     "The same, for each time a token occurs there");
  command.add_option("--repetition-penalty", repetition_penalty,
                     "Divides the logits of tokens seen in prompt or output");
  command.add_option("--seed", seed, "Same seed, same text");
  command.add_option("--stop-token-ids", stop_token_ids, "Token ids that end the output, as 1,2,3")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos, "Go on after the end of text, up to --max-tokens");
  command.add_option("--logprobs", logprobs, "With --json: log-probability of each token, and of the N best");
}

SamplingParams SamplingFlags::resolve(const plan::Plan &plan, size_t prompt_tokens) const {
  SamplingParams p = default_sampling(plan);
  p.temperature = temperature.value_or(p.temperature);
  p.top_k = top_k.value_or(p.top_k);
  p.top_p = top_p.value_or(p.top_p);
  p.min_p = min_p.value_or(p.min_p);
  p.presence_penalty = presence_penalty.value_or(p.presence_penalty);
  p.frequency_penalty = frequency_penalty.value_or(p.frequency_penalty);
  p.repetition_penalty = repetition_penalty.value_or(p.repetition_penalty);
  p.seed = seed;
  p.stop_token_ids = stop_token_ids;
  p.ignore_eos = ignore_eos;
  p.logprobs = logprobs.value_or(-1);
  const size_t context = plan.limits()->max_model_len();
  const size_t room = context > prompt_tokens ? context - prompt_tokens : 1;
  p.max_tokens = max_tokens.value_or(static_cast<uint32_t>(std::min<size_t>(kDefaultMaxTokens, room)));
  p.min_tokens = min_tokens.value_or(0);
  return p;
}

} // namespace llmrt::tool
