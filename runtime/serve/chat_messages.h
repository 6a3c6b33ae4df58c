// The messages of a chat request: checked, and brought into the form that chat templates expect.
#pragma once

#include "runtime/serve/fields.h"
#include "runtime/serve/model.h"

namespace llmrt::serve {

/// Checks roles and contents; joins the text parts of a content with newlines; parses tool call arguments, which
/// clients send as JSON text and templates want as objects. Throws ApiError(400).
nlohmann::ordered_json read_messages(const nlohmann::ordered_json &messages);

/// The prompt text of a request with `messages` (and tools, tool_choice, chat_template_kwargs, documents,
/// add_generation_prompt). Throws ApiError(400), with the template's own message when it raises one.
std::string render_chat(const Model &model, Fields &fields);

} // namespace llmrt::serve
