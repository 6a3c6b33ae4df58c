// Reads templates into frames of token ids.
#include "runtime/text/post_processor.h"

#include <string>

namespace llmrt::text {
namespace {

constexpr std::string_view kSupported =
    "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence";
constexpr int kMaxNesting = 16;

int32_t token_id(const JsonView &json) {
  int64_t id = json.integer();
  if (id < 0 || id >= (1 << 22))
    json.fail("is " + std::to_string(id) + "; token ids run from 0 to " + std::to_string((1 << 22) - 1) +
              ".");
  return static_cast<int32_t>(id);
}

// ["<s>", 1]
int32_t named_token(const JsonView &json) {
  auto items = json.items();
  if (items.size() != 2)
    json.fail("must be a pair of a token and its id.");
  return token_id(items[1]);
}

} // namespace

PostProcessor PostProcessor::from_json(const JsonView &json) {
  PostProcessor p;
  p.add(json, 0);
  return p;
}

void PostProcessor::add(const JsonView &json, int depth) {
  if (depth > kMaxNesting)
    json.fail("nests more than " + std::to_string(kMaxNesting) + " sequences.");
  std::string_view type = json.type();
  if (type == "Sequence") {
    for (const JsonView &item : json.at("processors").items())
      add(item, depth + 1);
  } else if (type == "TemplateProcessing") {
    set_frame(json, template_frame(json));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    set_frame(json, {{named_token(json.at("cls"))}, {named_token(json.at("sep"))}});
  } else if (type != "ByteLevel") {
    json.unsupported_type(kSupported);
  }
}

// The `tokenizers` package hands what the first has made to the second as several texts.
void PostProcessor::set_frame(const JsonView &json, Frame frame) {
  if (frame.before.empty() && frame.after.empty())
    return;
  if (!frame_.before.empty() || !frame_.after.empty())
    json.fail(
        "is the second post-processor that adds tokens; only one is supported: put all into one template.");
  frame_ = std::move(frame);
}

PostProcessor::Frame PostProcessor::template_frame(const JsonView &json) {
  Frame frame;
  bool seen_text = false;
  for (const JsonView &piece : json.at("single").items()) {
    if (auto sequence = piece.find("Sequence")) {
      if (sequence->at("id").string() != "A" || seen_text)
        piece.fail("must be the first sequence, once; other templates for a single text are not supported.");
      seen_text = true;
      continue;
    }
    JsonView token = piece.at("SpecialToken").at("id");
    auto &side = seen_text ? frame.after : frame.before;
    for (const JsonView &id : json.at("special_tokens").at(token.string()).at("ids").items())
      side.push_back(token_id(id));
  }
  if (!seen_text)
    json.at("single").fail("never places the text; it needs one {\"Sequence\": {\"id\": \"A\"}}.");
  return frame;
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> ids) const {
  ids.insert(ids.begin(), frame_.before.begin(), frame_.before.end());
  ids.insert(ids.end(), frame_.after.begin(), frame_.after.end());
  return ids;
}

} // namespace llmrt::text
