#include "runtime/sched/admission.h"

#include "runtime/sample/sampler.h"
#include "runtime/support/error.h"

#include <algorithm>
#include <utility>

namespace llmrt::sched {

void check_model(const EngineModel &model) {
  const std::pair<const char *, uint64_t> limits[] = {{"max_model_len", model.max_model_len},
                                                      {"max_num_seqs", model.max_num_seqs},
                                                      {"max_batched_tokens", model.max_batched_tokens},
                                                      {"max_logits_rows", model.max_logits_rows},
                                                      {"page_size", model.page_size},
                                                      {"num_pages", model.num_pages},
                                                      {"vocab", model.vocab}};
  for (auto [name, value] : limits)
    if (value == 0)
      throw Error(std::string("the plan's limit ") + name + " is 0; it must be at least 1");
  for (int32_t id : model.eos_token_ids)
    if (id < 0 || static_cast<size_t>(id) >= model.vocab)
      throw Error("the plan's end-of-text token " + std::to_string(id) + " is outside its vocabulary of " +
                  std::to_string(model.vocab) + " tokens");
}

std::string why_never(const EngineModel &model, const EngineRequest &r) {
  if (!r.on_event)
    return "the request has no on_event callback";
  if (r.prompt.empty())
    return "the prompt is empty; it must have at least one token";
  const uint64_t prompt = r.prompt.size(), total = prompt + r.sampling.max_tokens;
  if (total > model.max_model_len)
    return "the prompt has " + std::to_string(prompt) + " tokens and max_tokens is " +
           std::to_string(r.sampling.max_tokens) + ", together " + std::to_string(total) +
           "; the maximum context length is " + std::to_string(model.max_model_len) + " tokens";
  // The last token of the output is never written to the cache.
  const uint64_t slots = std::max(prompt, total - 1), pages = (slots + model.page_size - 1) / model.page_size;
  if (pages > model.num_pages)
    return "prompt and max_tokens together need " + std::to_string(pages) + " KV pages of " +
           std::to_string(model.page_size) + " tokens; the plan has " + std::to_string(model.num_pages) +
           ", so at most " + std::to_string(uint64_t{model.num_pages} * model.page_size + 1) +
           " tokens fit in all";
  for (size_t i = 0; i < r.prompt.size(); ++i)
    if (r.prompt[i] < 0 || static_cast<size_t>(r.prompt[i]) >= model.vocab)
      return "token " + std::to_string(i) + " of the prompt is " + std::to_string(r.prompt[i]) +
             "; the vocabulary has ids 0 to " + std::to_string(model.vocab - 1);
  return check_sampling(r.sampling, model.vocab);
}

} // namespace llmrt::sched
