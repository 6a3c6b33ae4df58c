// Reading of generation requests (see request_fields.h).
#include "runtime/serve/request_fields.h"

#include "runtime/serve/api_error.h"
#include "runtime/serve/chat_messages.h"

#include <algorithm>
#include <charconv>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kMaxChoices = 128;   // n
constexpr size_t kMaxPrompts = 1024;   // in a list
constexpr size_t kMaxRequests = 1024;  // n times prompts
constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 4096; // of each stop string
constexpr int64_t kMaxTopLogprobs = 20;
constexpr uint32_t kDefaultMaxTokens = 16; // of /v1/completions, as OpenAI has it

void read_logit_bias(const Model &model, Fields &fields, SamplingParams &p) {
  const Json *bias = fields.get("logit_bias");
  if (!bias)
    return;
  if (!bias->is_object())
    throw bad_field("logit_bias", std::string("'logit_bias' must be an object from token ids to numbers, not ") +
                                      bias->type_name());
  if (bias->size() > kMaxLogitBias)
    throw bad_field("logit_bias", "'logit_bias' has " + std::to_string(bias->size()) + " entries; at most " +
                                      std::to_string(kMaxLogitBias) + " are allowed");
  for (const auto &[key, value] : bias->items()) {
    int32_t id = -1;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || static_cast<size_t>(id) >= model.vocab)
      throw bad_field("logit_bias", "'logit_bias' names token '" + key + "'; the vocabulary has ids 0 to " +
                                        std::to_string(model.vocab - 1));
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100))
      throw bad_field("logit_bias",
                      "'logit_bias' of token " + key + " is " + value.dump() + "; it must be a number from -100 to 100");
    p.logit_bias.emplace_back(id, value.get<float>());
  }
}

void read_sampling(const Model &model, Fields &fields, SamplingParams &p) {
  p = model.defaults;
  auto set = [](float &out, std::optional<double> v) {
    if (v)
      out = static_cast<float>(*v);
  };
  set(p.temperature, fields.number("temperature", 0, 2));
  set(p.top_p, fields.number("top_p", 0, 1, true));
  set(p.min_p, fields.number("min_p", 0, 1));
  set(p.presence_penalty, fields.number("presence_penalty", -2, 2));
  set(p.frequency_penalty, fields.number("frequency_penalty", -2, 2));
  set(p.repetition_penalty, fields.number("repetition_penalty", 0, 100, true));
  if (p.top_p <= 0) // below what a float holds
    p.top_p = 1e-30f;
  if (p.repetition_penalty <= 0)
    p.repetition_penalty = 1e-30f;
  if (auto k = fields.integer("top_k", -1, INT32_MAX))
    p.top_k = static_cast<int32_t>(*k);
  if (auto seed = fields.integer("seed", INT64_MIN, INT64_MAX))
    p.seed = static_cast<uint64_t>(*seed);
  read_logit_bias(model, fields, p);
  p.stop_token_ids = fields.token_ids("stop_token_ids", kMaxLogitBias);
  check_vocabulary(model, p.stop_token_ids, "stop_token_ids");
  p.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  if (auto n = fields.integer("min_tokens", 0, model.max_model_len))
    p.min_tokens = static_cast<uint32_t>(*n);
}

void read_stops(const Model &model, Fields &fields, GenerationRequest &r) {
  r.stops = fields.strings("stop", kMaxStops);
  for (const auto &stop : r.stops) {
    if (stop.empty())
      throw bad_field("stop", "'stop' holds an empty string");
    if (stop.size() > kMaxStopBytes)
      throw bad_field("stop", "a string of 'stop' has " + std::to_string(stop.size()) + " bytes; at most " +
                                  std::to_string(kMaxStopBytes) + " are allowed");
  }
  if (!r.stops.empty() && !model.tokenizer)
    throw bad_field("stop", "the plan carries no tokenizer, so stop strings cannot be found: use 'stop_token_ids'");
  r.include_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  r.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
  fields.boolean("spaces_between_special_tokens"); // no effect: fast tokenizers put none
}

void read_stream(Fields &fields, GenerationRequest &r) {
  r.stream = fields.boolean("stream").value_or(false);
  const Json *options = fields.get("stream_options");
  if (!options)
    return;
  if (!options->is_object())
    throw bad_field("stream_options", std::string("'stream_options' must be an object, not ") + options->type_name());
  if (!r.stream)
    throw bad_field("stream_options", "'stream_options' goes with 'stream': true");
  Fields inner(*options, "stream_options.");
  r.include_usage = inner.boolean("include_usage").value_or(false);
  fields.add_unknown(inner);
}

void read_logprobs(Fields &fields, GenerationRequest &r) {
  if (r.chat) {
    r.logprobs = fields.boolean("logprobs").value_or(false);
    auto top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
    if (top.value_or(0) > 0 && !r.logprobs)
      throw bad_field("top_logprobs", "'top_logprobs' goes with 'logprobs': true");
    r.sampling.logprobs = r.logprobs ? static_cast<int32_t>(top.value_or(0)) : -1;
    return;
  }
  auto top = fields.integer("logprobs", 0, kMaxTopLogprobs);
  r.logprobs = top.has_value();
  r.sampling.logprobs = top ? static_cast<int32_t>(*top) : -1;
  r.echo = fields.boolean("echo").value_or(false);
  if (r.echo && r.logprobs)
    r.sampling.prompt_logprobs = r.sampling.logprobs;
}

void refuse_unsupported(Fields &fields) {
  if (const Json *format = fields.get("response_format")) {
    if (!format->is_object() || !format->contains("type") || !(*format)["type"].is_string())
      throw bad_field("response_format", "'response_format' must be an object with a type");
    if ((*format)["type"] != "text")
      throw bad_field("response_format", "'response_format' of type " + (*format)["type"].dump() +
                                             " is not supported yet: leave it out, or make it \"text\"");
  }
  if (auto suffix = fields.string("suffix"); suffix && !suffix->empty())
    throw bad_field("suffix", "'suffix' (filling in the middle) is not supported");
  fields.string("user");
  for (const char *ignored : {"parallel_tool_calls", "store", "metadata", "service_tier"})
    fields.get(ignored); // about other things than the text
}

// The output's bound for a prompt of that many tokens, which must fit the context together with it.
uint32_t output_tokens(const Model &model, const GenerationRequest &r, size_t prompt_tokens,
                       std::optional<int64_t> asked) {
  const size_t context = model.max_model_len;
  auto too_long = [&](const std::string &what) {
    return ApiError(400,
                    "This model's maximum context length is " + std::to_string(context) + " tokens. " + what +
                        " Shorten the prompt or ask for fewer tokens.",
                    r.chat ? "messages" : "prompt", "context_length_exceeded");
  };
  if (asked) {
    if (prompt_tokens + static_cast<size_t>(*asked) > context)
      throw too_long("The request has " + std::to_string(prompt_tokens) + " prompt tokens and asks for " +
                     std::to_string(*asked) + " more, " +
                     std::to_string(prompt_tokens + static_cast<size_t>(*asked)) + " together.");
    return static_cast<uint32_t>(*asked);
  }
  if (prompt_tokens >= context)
    throw too_long("The request has " + std::to_string(prompt_tokens) + " prompt tokens, which leaves no room.");
  auto room = static_cast<uint32_t>(context - prompt_tokens);
  return r.chat ? room : std::min(room, kDefaultMaxTokens);
}

Prompt text_prompt(const Model &model, std::string text, bool add_special_tokens) {
  Prompt prompt;
  prompt.ids = encode(model, text, add_special_tokens);
  if (prompt.ids.empty())
    throw bad_field("prompt", "the prompt is empty; it must have at least one token");
  prompt.text = std::move(text);
  return prompt;
}

Prompt ids_prompt(const Model &model, const Json &array, const GenerationRequest &r) {
  Prompt prompt;
  prompt.ids = read_token_ids(array, "prompt");
  if (prompt.ids.empty())
    throw bad_field("prompt", "the prompt is an empty list; it must have at least one token");
  check_vocabulary(model, prompt.ids, "prompt");
  if (r.echo && model.tokenizer)
    prompt.text = model.tokenizer->decode(prompt.ids, r.skip_special_tokens);
  return prompt;
}

// A string, token ids, or a list of either.
void read_prompts(const Model &model, Fields &fields, GenerationRequest &r) {
  const Json *given = fields.get("prompt");
  bool special = fields.boolean("add_special_tokens").value_or(true);
  if (!given)
    throw bad_field("prompt", "'prompt' is missing");
  if (given->is_string()) {
    r.prompts.push_back(text_prompt(model, given->get<std::string>(), special));
    return;
  }
  if (!given->is_array() || given->empty())
    throw bad_field("prompt", "'prompt' must be a string, a list of strings, a list of token ids, or a list of those; "
                              "it must not be empty");
  if (given->front().is_number()) {
    r.prompts.push_back(ids_prompt(model, *given, r));
    return;
  }
  if (given->size() > kMaxPrompts)
    throw bad_field("prompt", "'prompt' has " + std::to_string(given->size()) + " entries; at most " +
                                  std::to_string(kMaxPrompts) + " are allowed");
  for (const Json &item : *given) {
    if (item.is_string() && given->front().is_string())
      r.prompts.push_back(text_prompt(model, item.get<std::string>(), special));
    else if (item.is_array() && given->front().is_array())
      r.prompts.push_back(ids_prompt(model, item, r));
    else
      throw bad_field("prompt", "'prompt' mixes strings, token ids and other things: entry " +
                                    std::to_string(r.prompts.size()) + " is " + item.type_name());
  }
}

} // namespace

std::vector<int32_t> encode(const Model &model, const std::string &text, bool add_special_tokens) {
  if (!model.tokenizer)
    throw ApiError(400, "the plan carries no tokenizer: give the prompt as token ids", "prompt");
  return model.tokenizer->encode(text, add_special_tokens);
}

void check_vocabulary(const Model &model, const std::vector<int32_t> &ids, const std::string &param) {
  for (int32_t id : ids)
    if (id < 0 || static_cast<size_t>(id) >= model.vocab)
      throw bad_field(param, "'" + param + "' holds token " + std::to_string(id) + "; the vocabulary has ids 0 to " +
                                 std::to_string(model.vocab - 1));
}

void check_model(const Model &model, Fields &fields) {
  auto name = fields.string("model");
  if (name && *name != model.name)
    throw ApiError(404, "The model '" + (name->size() > 200 ? name->substr(0, 200) + "..." : *name) +
                            "' does not exist; this server has '" + model.name + "'.",
                   "model", "model_not_found");
}

GenerationRequest read_generation(const Model &model, bool chat, Fields &fields) {
  GenerationRequest r;
  r.chat = chat;
  check_model(model, fields);
  read_sampling(model, fields, r.sampling);
  r.n = static_cast<uint32_t>(fields.integer("n", 1, kMaxChoices).value_or(1));
  if (auto best = fields.integer("best_of", 1, kMaxChoices); best && *best != r.n)
    throw bad_field("best_of", "'best_of' is not supported: leave it out, or make it equal to 'n'");
  read_stops(model, fields, r);
  read_stream(fields, r);
  read_logprobs(fields, r);
  r.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  refuse_unsupported(fields);

  const int64_t least = chat ? 1 : 0;
  auto asked = fields.integer("max_tokens", least, INT32_MAX);
  auto newer = fields.integer("max_completion_tokens", least, INT32_MAX);
  if (asked && newer)
    asked = std::min(*asked, *newer);
  else if (newer)
    asked = newer;

  if (chat) {
    std::string text = render_chat(model, fields);
    Prompt prompt;
    prompt.ids = encode(model, text, fields.boolean("add_special_tokens").value_or(false));
    if (prompt.ids.empty())
      throw bad_field("messages", "the messages make an empty prompt; it must have at least one token");
    prompt.text = std::move(text);
    r.prompts.push_back(std::move(prompt));
  } else {
    read_prompts(model, fields, r);
  }
  if (r.prompts.size() * r.n > kMaxRequests)
    throw bad_field("n", std::to_string(r.prompts.size()) + " prompts times " + std::to_string(r.n) +
                             " choices are more than " + std::to_string(kMaxRequests));
  for (Prompt &prompt : r.prompts) {
    // Both limits are checked against the context, though the smaller one counts.
    for (const char *name : {"max_tokens", "max_completion_tokens"})
      if (auto limit = fields.integer(name, least, INT32_MAX))
        output_tokens(model, r, prompt.ids.size(), limit);
    prompt.max_tokens = output_tokens(model, r, prompt.ids.size(), asked);
    if (r.sampling.min_tokens > prompt.max_tokens)
      throw bad_field("min_tokens", "'min_tokens' is " + std::to_string(r.sampling.min_tokens) +
                                        ", more than the " + std::to_string(prompt.max_tokens) +
                                        " tokens that may come at most");
  }
  return r;
}

} // namespace llmrt::serve
