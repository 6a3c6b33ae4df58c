// See test_model.h.
#include "test/unit/serve/test_model.h"

#include "runtime/text/jinja/unicode.h"

namespace llmrt::test {

using Json = nlohmann::ordered_json;

// Byte-level BPE without merges: token b is byte b, spelled as GPT-2 spells it; 256 and up are special.
static std::string tokenizer_json() {
  Json vocab = Json::object();
  char32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
    std::string spelled;
    text::jinja::append_code_point(spelled, plain ? static_cast<char32_t>(b) : next++);
    vocab[spelled] = b;
  }
  auto special = [](int id, const char *content) {
    return Json{{"id", id}, {"content", content}, {"single_word", false}, {"lstrip", false}, {"rstrip", false},
                {"normalized", false}, {"special", true}};
  };
  Json out;
  out["version"] = "1.0";
  out["added_tokens"] = Json::array({special(256, "<eos>"), special(257, "<|im_start|>"), special(258, "<|im_end|>")});
  out["normalizer"] = nullptr;
  out["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  out["post_processor"] = nullptr;
  out["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  out["model"] = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"continuing_subword_prefix", nullptr},
                  {"end_of_word_suffix", nullptr}, {"fuse_unk", false}, {"byte_fallback", false}, {"vocab", vocab},
                  {"merges", Json::array()}};
  return out.dump();
}

std::shared_ptr<serve::Model> make_model() {
  auto model = std::make_shared<serve::Model>();
  model->name = "test-model";
  model->max_model_len = 512;
  model->vocab = 260;
  model->created = 1'700'000'000;
  model->tokenizer = text::Tokenizer::from_json(tokenizer_json());
  model->chat_template = std::make_shared<const text::ChatTemplate>(
      "{% for m in messages %}{% if m.role == 'wizard' %}{{ raise_exception('No wizards here ☃') }}{% endif %}"
      "{{ '<|im_start|>' + m.role + '\\n' + (m.content or '') }}"
      "{% for c in m.tool_calls or [] %}{{ c.function.name ~ c.function.arguments.city }}{% endfor %}"
      "{{ '<|im_end|>' }}{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}{{ extra }}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
  return model;
}

} // namespace llmrt::test
