// Reading and rendering chat messages (see chat_messages.h).
#include "runtime/serve/chat_messages.h"

#include "runtime/serve/api_error.h"

#include <optional>
#include <vector>

namespace llmrt::serve {

using Json = nlohmann::ordered_json;

namespace {

std::string at(size_t i, const char *member = "") { return "messages[" + std::to_string(i) + "]" + member; }

// A string, or a list of text parts.
std::string read_content(const Json &content, const std::string &where) {
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array())
    throw bad_field("messages", where + " must be a string or a list of parts, not " + content.type_name());
  std::string text;
  bool first = true;
  for (const Json &part : content) {
    if (!part.is_object())
      throw bad_field("messages", where + " has a part that is not an object");
    auto type = part.find("type");
    if (type == part.end() || !type->is_string())
      throw bad_field("messages", where + " has a part without a type");
    if (*type != "text" && *type != "refusal")
      throw bad_field("messages", where + " has a part of type " + type->dump() + "; this model takes text only");
    auto value = part.find(type->get_ref<const std::string &>());
    if (value == part.end() || !value->is_string())
      throw bad_field("messages", where + " has a text part without a text");
    text += (first ? "" : "\n") + value->get<std::string>();
    first = false;
  }
  return text;
}

Json read_tool_calls(const Json &calls, const std::string &where) {
  if (!calls.is_array())
    throw bad_field("messages", where + " must be a list, not " + calls.type_name());
  Json out = Json::array();
  for (const Json &call : calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object() ||
        !call["function"].contains("name") || !call["function"]["name"].is_string())
      throw bad_field("messages", where + " must hold objects with a function that has a name");
    Json copy = call;
    Json &function = copy["function"];
    auto arguments = function.find("arguments");
    if (arguments == function.end() || arguments->is_null()) {
      function["arguments"] = Json::object();
    } else if (arguments->is_string()) {
      const auto &text = arguments->get_ref<const std::string &>();
      if (text.empty()) {
        *arguments = Json::object();
      } else {
        Json parsed;
        try {
          parsed = Json::parse(text, [](int depth, Json::parse_event_t, Json &) {
            if (depth > 64)
              throw bad_field("messages", "the arguments of a tool call are nested deeper than 64 levels");
            return true;
          });
        } catch (const Json::exception &) {
          throw bad_field("messages", where + " has arguments that are not valid JSON");
        }
        *arguments = std::move(parsed);
      }
    }
    out.push_back(std::move(copy));
  }
  return out;
}

} // namespace

Json read_messages(const Json &messages) {
  if (!messages.is_array() || messages.empty())
    throw bad_field("messages", "'messages' must be a list of at least one message");
  Json out = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json &message = messages[i];
    if (!message.is_object())
      throw bad_field("messages", at(i) + " must be an object, not " + message.type_name());
    auto role = message.find("role");
    if (role == message.end() || !role->is_string() || role->get_ref<const std::string &>().empty())
      throw bad_field("messages", at(i, ".role") + " must be a string such as \"user\"");
    Json copy = message;
    auto content = message.find("content");
    if (content != message.end() && !content->is_null())
      copy["content"] = read_content(*content, at(i, ".content"));
    else if (*role != "assistant")
      throw bad_field("messages", at(i, ".content") + " is missing");
    if (auto calls = message.find("tool_calls"); calls != message.end() && !calls->is_null()) {
      if (*role != "assistant")
        throw bad_field("messages", at(i, ".tool_calls") + " goes with the role \"assistant\" only");
      copy["tool_calls"] = read_tool_calls(*calls, at(i, ".tool_calls"));
      if (copy["tool_calls"].empty())
        copy.erase("tool_calls");
    }
    out.push_back(std::move(copy));
  }
  return out;
}

namespace {

// What tools the template is shown. Calls are left to the model's own words: forcing one is not supported yet.
Json read_tools(Fields &fields) {
  Json tools;
  if (const Json *given = fields.get("tools")) {
    if (!given->is_array())
      throw bad_field("tools", std::string("'tools' must be a list, not ") + given->type_name());
    for (const Json &tool : *given)
      if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object() ||
          !tool["function"].contains("name") || !tool["function"]["name"].is_string())
        throw bad_field("tools", "each of 'tools' must be an object with a function that has a name");
    if (!given->empty())
      tools = *given;
  }
  if (const Json *choice = fields.get("tool_choice")) {
    if (*choice == "none")
      tools = nullptr;
    else if (*choice == "required" || choice->is_object())
      throw bad_field("tool_choice", "forcing a tool call is not supported yet: leave 'tool_choice' out, or make it "
                                     "\"auto\" or \"none\"");
    else if (*choice != "auto")
      throw bad_field("tool_choice", "'tool_choice' must be \"none\", \"auto\", \"required\" or a named function");
  }
  return tools;
}

// Gives the arguments of calls as texts, the client's own where it sent texts.
void put_argument_texts(Json &messages, const Json &given) {
  for (size_t i = 0; i < messages.size(); ++i) {
    auto calls = messages[i].find("tool_calls");
    for (size_t k = 0; calls != messages[i].end() && k < calls->size(); ++k) {
      Json &arguments = (*calls)[k]["function"]["arguments"];
      const Json &function = given[i]["tool_calls"][k]["function"];
      const auto sent = function.find("arguments");
      arguments = sent != function.end() && sent->is_string() && *sent != "" ? *sent : Json(arguments.dump());
    }
  }
}

// Messages that call tools have forms that templates disagree about: their content may be absent (what transformers gives
// templates), null (DeepSeek's ask for that) or empty (those that know of no tools add it to other text), their arguments an
// object or, in DeepSeek's, a text. The first form that the template takes is the one. `given`: the messages as the client sent them.
std::string render(const text::ChatTemplate &chat_template, const Json &context, const Json &given) {
  struct Form {
    std::optional<Json> content; // of messages that have none
    bool texts;                  // for arguments
  };
  bool without = false, calls = false;
  for (const Json &message : context["messages"]) {
    without = without || !message.contains("content");
    calls = calls || message.contains("tool_calls");
  }
  std::optional<text::TemplateError> first;
  for (const Form &form : {Form{{}, false}, Form{Json(), false}, Form{{}, true}, Form{Json(), true}, Form{Json(""), false}, Form{Json(""), true}}) {
    if ((form.content && !without) || (form.texts && !calls))
      continue;
    Json changed;
    if (form.content || form.texts)
      changed = context;
    if (form.content)
      for (Json &message : changed["messages"])
        if (!message.contains("content"))
          message["content"] = *form.content;
    if (form.texts)
      put_argument_texts(changed["messages"], given);
    try {
      return chat_template.render(changed.is_null() ? context : changed);
    } catch (const text::TemplateRaised &) {
      throw;
    } catch (const text::TemplateError &e) {
      if (!first)
        first = e;
    }
  }
  throw *first;
}

} // namespace

std::string render_chat(const Model &model, Fields &fields) {
  const Json *given = fields.get("messages");
  if (!given)
    throw bad_field("messages", "'messages' is missing");
  Json messages = read_messages(*given), tools = read_tools(fields), kwargs = Json::object();
  if (fields.has("chat_template"))
    throw bad_field("chat_template", "a chat template from the request is not accepted; the model's own is used");
  if (fields.boolean("continue_final_message").value_or(false))
    throw bad_field("continue_final_message", "continuing the final message is not supported yet");
  if (const Json *documents = fields.get("documents")) {
    if (!documents->is_array())
      throw bad_field("documents", std::string("'documents' must be a list, not ") + documents->type_name());
    kwargs["documents"] = *documents;
  }
  if (const Json *more = fields.get("chat_template_kwargs")) {
    if (!more->is_object())
      throw bad_field("chat_template_kwargs",
                      std::string("'chat_template_kwargs' must be an object, not ") + more->type_name());
    for (const char *reserved : {"messages", "tools", "chat_template"})
      if (more->contains(reserved))
        throw bad_field("chat_template_kwargs",
                        std::string("'chat_template_kwargs' must not contain '") + reserved + "'");
    for (const auto &[key, value] : more->items())
      kwargs[key] = value;
  }
  bool generate = fields.boolean("add_generation_prompt").value_or(true);
  if (!model.chat_template)
    throw ApiError(400, model.no_chat_reason, "messages");
  try {
    return render(*model.chat_template, text::make_chat_context(messages, tools, generate, kwargs), *given);
  } catch (const text::TemplateRaised &e) {
    throw bad_field("messages", e.what());
  } catch (const text::TemplateError &e) {
    throw bad_field("messages", std::string("the messages cannot be put into the model's form: ") + e.what());
  }
}

} // namespace llmrt::serve
