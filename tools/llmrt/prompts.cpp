// Reading prompts, and turning them into token ids.
#include "tools/llmrt/prompts.h"

#include "runtime/support/error.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>

#ifdef LLMRT_HAVE_TEMPLATE
#include "runtime/text/jinja/chat_template.h"
#endif

namespace llmrt::tool {

// A file of prompts is read whole; this bounds the memory.
static constexpr size_t kMaxPromptFile = 256u << 20;

void PromptFlags::add_to(CLI::App &command) {
  command.add_option("--prompt", text,
                     "The question to a chat model, or the text to continue; - reads it from stdin");
  command.add_option("--prompt-ids", ids, "The prompt as token ids, as 1,2,3; no tokenizer is needed");
  command.add_option("--prompt-file", file,
                     "A JSON file with a list of prompts: texts, or lists of token ids");
  command.add_flag(
      "--chat", chat,
      "Take texts as a user's message, in the model's chat template (default where the model has one)");
  command.add_flag("--raw", raw, "Continue texts as they are, without the chat template");
  command.add_option("--system", system, "The system message to go before the user's");
}

void PromptFlags::check() const {
  const int given = !text.empty() + !ids.empty() + !file.empty();
  if (given != 1)
    throw CLI::ValidationError(given ? "--prompt, --prompt-ids and --prompt-file exclude each other"
                                     : "one of --prompt, --prompt-ids and --prompt-file is required");
  if ((chat || !system.empty()) && !ids.empty())
    throw CLI::ValidationError("--chat and --system need a text: give --prompt");
  if ((chat || !system.empty()) && raw)
    throw CLI::ValidationError("--raw excludes --chat and --system");
}

std::shared_ptr<const text::Tokenizer> load_tokenizer(const plan::Plan &plan) {
  const plan::Text *text = plan.text();
  if (!text || !text->tokenizer_json() || text->tokenizer_json()->size() == 0)
    return nullptr;
  return text::Tokenizer::from_json(text->tokenizer_json()->string_view());
}

static std::vector<int32_t> parse_ids(const std::string &list) {
  std::vector<int32_t> ids;
  const char *at = list.data(), *end = at + list.size();
  while (true) {
    while (at < end && *at == ' ')
      ++at;
    int32_t id = 0;
    auto [next, error] = std::from_chars(at, end, id);
    while (next < end && *next == ' ')
      ++next;
    if (error != std::errc() || (next < end && *next != ','))
      throw Error("--prompt-ids must be numbers with commas between them, as 1,2,3; at character " +
                  std::to_string(at - list.data() + 1) + " it is not");
    ids.push_back(id);
    if (next == end)
      return ids;
    at = next + 1;
  }
}

static bool has_template(const plan::Plan &plan) {
  return plan.text() && plan.text()->chat_template() && plan.text()->chat_template()->size() > 0;
}

static std::string chat_text(const std::string &message, const PromptFlags &flags, const plan::Plan &plan) {
#ifdef LLMRT_HAVE_TEMPLATE
  const plan::Text *text = plan.text();
  auto str = [](const flatbuffers::String *s) { return s ? s->str() : std::string(); };
  if (!text || str(text->chat_template()).empty())
    throw Error("the model has no chat template, so --chat is not possible: leave it out to continue the "
                "text as it is");
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!flags.system.empty())
    messages.push_back({{"role", "system"}, {"content", flags.system}});
  messages.push_back({{"role", "user"}, {"content", message}});
  text::ChatTemplate chat(str(text->chat_template()), str(text->bos_token()), str(text->eos_token()));
  return chat.render(text::make_chat_context(messages, nullptr, true));
#else
  (void)message, (void)flags, (void)plan;
  throw Error("this llmrt was built without chat templates");
#endif
}

static std::vector<int32_t> encode(const std::string &prompt, const PromptFlags &flags,
                                   const plan::Plan &plan, const text::Tokenizer *tokenizer) {
  if (!tokenizer)
    throw Error("the plan carries no tokenizer: give the prompt as --prompt-ids");
  if (flags.chat || !flags.system.empty() || (!flags.raw && has_template(plan)))
    return tokenizer->encode(chat_text(prompt, flags, plan), false);
  return tokenizer->encode(prompt, true);
}

std::vector<std::vector<int32_t>> read_prompts(const PromptFlags &flags, const plan::Plan &plan,
                                               const text::Tokenizer *tokenizer) {
  if (!flags.ids.empty())
    return {parse_ids(flags.ids)};
  if (flags.text == "-")
    return {encode(std::string(std::istreambuf_iterator<char>(std::cin), {}), flags, plan, tokenizer)};
  if (!flags.text.empty())
    return {encode(flags.text, flags, plan, tokenizer)};

  std::ifstream in(flags.file, std::ios::binary | std::ios::ate);
  if (!in)
    throw Error("cannot read the prompt file '" + flags.file + "'");
  const auto size = static_cast<size_t>(std::max<std::streamoff>(0, in.tellg()));
  if (size > kMaxPromptFile)
    throw Error("the prompt file '" + flags.file + "' has " + std::to_string(size) + " bytes; at most " +
                std::to_string(kMaxPromptFile) + " are read");
  std::string bytes(size, '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  nlohmann::json list;
  try {
    list = nlohmann::json::parse(bytes);
  } catch (const nlohmann::json::exception &e) {
    throw Error("the prompt file '" + flags.file + "' is not JSON: " + e.what());
  }
  auto malformed = [&](const std::string &where) {
    return Error("the prompt file '" + flags.file + "' must be a list of texts, or of lists of token ids; " +
                 where + " is neither");
  };
  if (!list.is_array() || list.empty())
    throw malformed("the whole");
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < list.size(); ++i) {
    const nlohmann::json &item = list[i];
    if (item.is_string()) {
      prompts.push_back(encode(item.get<std::string>(), flags, plan, tokenizer));
      continue;
    }
    if (!item.is_array())
      throw malformed("entry " + std::to_string(i));
    auto &ids = prompts.emplace_back();
    for (const nlohmann::json &id : item) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > 0x7fffffff)
        throw malformed("entry " + std::to_string(i));
      ids.push_back(id.get<int32_t>());
    }
  }
  return prompts;
}

} // namespace llmrt::tool
