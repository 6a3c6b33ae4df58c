// Renders a model's chat template: a Jinja program that turns messages and tools into the prompt text. The result is
// byte-equal to jinja2's ImmutableSandboxedEnvironment(trim_blocks, lstrip_blocks, loopcontrols) as transformers'
// apply_chat_template sets it up (tojson, raise_exception, strftime_now, the generation block included).
#pragma once

#include "runtime/support/error.h"

#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace llmrt::text {

/// A template that cannot be parsed or rendered: "chat template, line N: what".
class TemplateError : public Error {
public:
  TemplateError(const std::string &message, int line);
  int line() const { return line_; } ///< 1-based; 0 where no line applies

protected:
  struct Verbatim {};
  TemplateError(Verbatim, const std::string &message, int line);

private:
  int line_;
};

/// The template called raise_exception(message): the request does not fit the model. what() is the template's
/// message, word for word.
class TemplateRaised : public TemplateError {
public:
  TemplateRaised(const std::string &message, int line);
};

/// Bounds on one rendering, so that a hostile template can neither hang nor exhaust memory.
struct TemplateLimits {
  size_t output_bytes = 64u << 20;
  size_t memory_bytes = 256u << 20; ///< live values
  int64_t steps = 20'000'000;       ///< nodes evaluated, plus one per 64 bytes of text handled
};

class ChatTemplate {
public:
  /// Parses `source` (UTF-8). The tokens become `bos_token` and `eos_token` in the template; an empty one stays
  /// undefined there, as in transformers when the tokenizer has none. Throws TemplateError.
  explicit ChatTemplate(std::string source, std::string bos_token = {}, std::string eos_token = {},
                        TemplateLimits limits = {});
  ~ChatTemplate();
  ChatTemplate(ChatTemplate &&) noexcept;
  ChatTemplate &operator=(ChatTemplate &&) noexcept;

  /// Renders with the members of the object `context` as variables: messages, tools, add_generation_prompt and
  /// whatever else the request passes. `now` replaces the local time that strftime_now() prints.
  /// Thread-safe. Throws TemplateRaised or TemplateError.
  std::string render(const nlohmann::ordered_json &context, const std::optional<std::tm> &now = {}) const;

  const std::string &source() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The variables that transformers' apply_chat_template passes: messages (null members dropped, reasoning available
/// under its usual names), tools and documents (null when absent), add_generation_prompt, then the members of
/// `kwargs`. `messages` is an array of objects; anything else throws Error.
nlohmann::ordered_json make_chat_context(const nlohmann::ordered_json &messages, const nlohmann::ordered_json &tools,
                                         bool add_generation_prompt,
                                         const nlohmann::ordered_json &kwargs = nlohmann::ordered_json::object());

} // namespace llmrt::text
