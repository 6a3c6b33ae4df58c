// Parses the normalizer chain and applies it step by step.
#include "runtime/text/normalizer.h"

#include "runtime/support/error.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

#include <algorithm>

namespace llmrt::text {
namespace {

constexpr std::string_view kSupported =
    "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace and Sequence";
constexpr size_t kMaxText = size_t{1} << 30;
constexpr int kMaxNesting = 16;

std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    size_t next = 0;
    if (!is_space(next_code_point(text, next)))
      break;
    text.remove_prefix(next);
  }
  while (right && !text.empty()) {
    size_t last = previous_border(text, text.size()), next = last;
    if (!is_space(next_code_point(text, next)))
      break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

// Bytes of the first character.
size_t first_length(std::string_view text) {
  size_t next = 0;
  if (!text.empty())
    next_code_point(text, next);
  return next;
}

template <class... Ts> struct Overloaded : Ts... { using Ts::operator()...; };
template <class... Ts> Overloaded(Ts...) -> Overloaded<Ts...>;

} // namespace

Pattern pattern_from_json(const JsonView &json) {
  if (auto literal = json.find("String"))
    return Pattern::literal(std::string(literal->string()));
  if (auto regex = json.find("Regex"))
    return Pattern::regex(regex->string());
  json.fail("must be {\"String\": …} or {\"Regex\": …}.");
}

Normalizer Normalizer::from_json(const JsonView &json) {
  Normalizer n;
  n.add(json, 0);
  return n;
}

void Normalizer::add(const JsonView &json, int depth) {
  if (depth > kMaxNesting)
    json.fail("nests more than " + std::to_string(kMaxNesting) + " sequences.");
  std::string_view type = json.type();
  if (type == "Sequence") {
    for (const JsonView &item : json.at("normalizers").items())
      add(item, depth + 1);
  } else if (type == "NFC") {
    steps_.emplace_back(Form::kNfc);
  } else if (type == "NFD") {
    steps_.emplace_back(Form::kNfd);
  } else if (type == "NFKC") {
    steps_.emplace_back(Form::kNfkc);
  } else if (type == "NFKD") {
    steps_.emplace_back(Form::kNfkd);
  } else if (type == "Lowercase") {
    steps_.emplace_back(Lowercase{});
  } else if (type == "StripAccents") {
    steps_.emplace_back(StripAccents{});
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{json.at("strip_left").boolean(), json.at("strip_right").boolean()});
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{std::string(json.at("prepend").string())});
  } else if (type == "Replace") {
    steps_.emplace_back(
        Replace{pattern_from_json(json.at("pattern")), std::string(json.at("content").string())});
  } else {
    json.unsupported_type(kSupported);
  }
}

std::string Normalizer::apply(std::string_view input, bool *keeps_start) const {
  std::string text(input);
  size_t prepended = 0; // bytes in front of the text's own first character
  auto dropped = [&](size_t bytes) {
    if (keeps_start && bytes > prepended)
      *keeps_start = false;
    prepended -= std::min(prepended, bytes);
  };
  for (const Step &step : steps_) {
    std::visit(Overloaded{
                   [&](Form form) { text = normalize(text, form); },
                   [&](Lowercase) { text = lowercase(text); },
                   [&](StripAccents) {
                     if (strip_accents(text.substr(0, first_length(text))).empty())
                       dropped(first_length(text));
                     text = strip_accents(text);
                   },
                   [&](Strip s) {
                     if (s.left)
                       dropped(text.size() - strip(text, true, false).size());
                     text = strip(text, s.left, s.right);
                   },
                   [&](const Prepend &p) {
                     if (text.empty())
                       return;
                     text.insert(0, p.content);
                     prepended += p.content.size();
                   },
                   [&](const Replace &r) {
                     if (keeps_start && r.content.empty())
                       dropped(r.pattern.match_at_start(text));
                     text = r.pattern.replace(text, r.content);
                   },
               },
               step);
    if (text.size() > kMaxText)
      throw Error("The normalised text has " + std::to_string(text.size()) +
                  " bytes, more than the limit of " + std::to_string(kMaxText) + "; send a shorter text.");
  }
  return text;
}

} // namespace llmrt::text
