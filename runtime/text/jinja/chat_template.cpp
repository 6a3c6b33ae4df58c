// The public face of the template engine: parsing once, converting a JSON context, rendering within limits.
#include "runtime/text/jinja/chat_template.h"

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/parser.h"
#include "runtime/text/jinja/unicode.h"

namespace llmrt::text {

namespace jinja {
namespace {

// A context arrives as JSON; its strings must be UTF-8, since JSON text is.
Value from_json(const nlohmann::ordered_json &json, int depth) {
  constexpr int kMaxDepth = 150;
  if (depth > kMaxDepth)
    fail("the messages or tools are nested deeper than " + std::to_string(kMaxDepth) + " levels");
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
  case Type::null:
    return {};
  case Type::boolean:
    return Value::boolean(json.get<bool>());
  case Type::number_integer:
    return Value::integer(json.get<int64_t>());
  case Type::number_unsigned:
    return Value::integer(json.get<uint64_t>());
  case Type::number_float:
    return Value::floating(json.get<double>());
  case Type::string: {
    const auto &text = json.get_ref<const std::string &>();
    if (find_invalid_utf8(text) != std::string::npos)
      fail("a string of the messages or tools is not valid UTF-8");
    return Value::string(text);
  }
  case Type::array: {
    std::vector<Value> items;
    items.reserve(json.size());
    for (const auto &item : json)
      items.push_back(from_json(item, depth + 1));
    return Value::list(std::move(items));
  }
  case Type::object: {
    auto dict = std::make_shared<Dict>();
    for (const auto &[key, item] : json.items())
      dict->set(Value::string(key), from_json(item, depth + 1));
    return Value(Kind::dict, dict);
  }
  default:
    fail("binary JSON values cannot be passed to a template");
  }
}

// Makes a budget current for this thread, and restores the one before.
class BudgetScope {
public:
  explicit BudgetScope(const TemplateLimits &limits) : saved_(Budget::current) {
    budget_.steps = limits.steps;
    budget_.memory_limit = static_cast<int64_t>(limits.memory_bytes);
    budget_.memory_base = Budget::live_bytes;
    Budget::current = &budget_;
  }
  ~BudgetScope() { Budget::current = saved_; }
  BudgetScope(const BudgetScope &) = delete;
  BudgetScope &operator=(const BudgetScope &) = delete;

private:
  Budget budget_;
  Budget *saved_;
};

} // namespace
} // namespace jinja

TemplateError::TemplateError(const std::string &message, int line)
    : Error(line > 0 ? "chat template, line " + std::to_string(line) + ": " + message : "chat template: " + message),
      line_(line) {}

TemplateError::TemplateError(Verbatim, const std::string &message, int line) : Error(message), line_(line) {}

TemplateRaised::TemplateRaised(const std::string &message, int line) : TemplateError(Verbatim{}, message, line) {}

struct ChatTemplate::Impl {
  std::string source;
  std::string bos_token, eos_token;
  TemplateLimits limits;
  jinja::Tree tree;
};

ChatTemplate::ChatTemplate(std::string source, std::string bos_token, std::string eos_token, TemplateLimits limits)
    : impl_(std::make_unique<Impl>()) {
  impl_->source = std::move(source);
  impl_->bos_token = std::move(bos_token);
  impl_->eos_token = std::move(eos_token);
  impl_->limits = limits;
  jinja::parse(impl_->source, impl_->tree);
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate &&) noexcept = default;
ChatTemplate &ChatTemplate::operator=(ChatTemplate &&) noexcept = default;

const std::string &ChatTemplate::source() const { return impl_->source; }

std::string ChatTemplate::render(const nlohmann::ordered_json &context, const std::optional<std::tm> &now) const {
  using namespace jinja;
  BudgetScope budget(impl_->limits);
  if (!context.is_object())
    fail("the context must be a JSON object");
  auto variables = std::make_shared<Dict>();
  if (!impl_->bos_token.empty())
    variables->set(Value::string("bos_token"), Value::string(impl_->bos_token));
  if (!impl_->eos_token.empty())
    variables->set(Value::string("eos_token"), Value::string(impl_->eos_token));
  for (const auto &[key, value] : context.items())
    variables->set(Value::string(key), from_json(value, 0));
  Interpreter interpreter(impl_->tree, Value(Kind::dict, variables), impl_->limits.output_bytes, now);
  return interpreter.run();
}

nlohmann::ordered_json make_chat_context(const nlohmann::ordered_json &messages, const nlohmann::ordered_json &tools,
                                         bool add_generation_prompt, const nlohmann::ordered_json &kwargs) {
  using Json = nlohmann::ordered_json;
  if (!messages.is_array())
    throw Error("messages must be an array of objects");
  Json chat = Json::array();
  for (const auto &message : messages) {
    if (!message.is_object())
      throw Error("each of the messages must be an object");
    // An absent member and a null one mean the same to the client, but not to templates.
    Json entry = Json::object();
    for (const auto &[key, value] : message.items())
      if (!value.is_null())
        entry[key] = value;
    for (const char *name : {"reasoning_content", "thinking", "reasoning"}) {
      if (!entry.contains(name))
        continue;
      const Json reasoning = entry[name];
      Json aliased = Json::object();
      aliased["thinking"] = reasoning;
      for (const auto &[key, value] : entry.items())
        aliased[key] = value;
      aliased["reasoning_content"] = reasoning;
      entry = std::move(aliased);
      break;
    }
    chat.push_back(std::move(entry));
  }
  Json context = Json::object();
  context["messages"] = std::move(chat);
  context["tools"] = tools;
  context["documents"] = nullptr;
  context["add_generation_prompt"] = add_generation_prompt;
  if (kwargs.is_object())
    for (const auto &[key, value] : kwargs.items())
      context[key] = value;
  return context;
}

} // namespace llmrt::text
