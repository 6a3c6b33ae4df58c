// Fuzzes the chat template engine: any bytes are a template. It may fail with a TemplateError, and must neither crash,
// nor hang, nor use more than its limits. The context has a conversation with tools and values of every kind.
#include "runtime/text/jinja/chat_template.h"

#include <cstdint>

namespace {

const char *const kContext = R"({
  "messages": [{"role": "system", "content": "be ☃"}, {"role": "user", "content": "hi </think> there\n"},
               {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function",
                "function": {"name": "f", "arguments": {"a": 1, "b": [1.5, null, true]}}}]},
               {"role": "tool", "name": "f", "content": "{\"x\": 1}"}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters":
             {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}],
  "add_generation_prompt": true, "s": "Hello World", "u": "日本 👩‍👩‍👧 é", "l": [3, 1, 2], "d": {"b": 1, "a": 2}, "f": 2.5,
  "n": null, "t": true, "i": -7, "big": 18446744073709551615
})";

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const auto context = nlohmann::ordered_json::parse(kContext);
  if (size > 16384)
    return 0;
  llmrt::text::TemplateLimits limits;
  limits.output_bytes = 1 << 20;
  limits.memory_bytes = 16 << 20;
  limits.steps = 200'000;
  try {
    llmrt::text::ChatTemplate t(std::string(reinterpret_cast<const char *>(data), size), "<s>", "</s>", limits);
    t.render(context);
  } catch (const llmrt::text::TemplateError &) {
  }
  return 0;
}
