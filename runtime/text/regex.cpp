// PCRE2 matching with JIT, and the Pattern type that hides literals and expressions behind one face.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/regex.h"

#include "runtime/support/error.h"
#include "runtime/text/utf8.h"

#include <pcre2.h>

namespace llmrt::text {
namespace {

constexpr size_t kMaxReplaced = size_t{1} << 30;

std::string pcre2_message(int code) {
  unsigned char buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char *>(buffer);
}

// Per thread: PCRE2's match state is not shareable, and its JIT stack is too large to make per call.
struct MatchState {
  pcre2_match_data *data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context *context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack *stack = pcre2_jit_stack_create(32 << 10, 8 << 20, nullptr);
  MatchState() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~MatchState() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  MatchState(const MatchState &) = delete;
  MatchState &operator=(const MatchState &) = delete;
};

} // namespace

bool pcre2_knows_script(std::string_view name) {
  if (name.empty() ||
      name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") != name.npos)
    return false;
  std::string pattern = "\\p{sc:" + std::string(name) + "}";
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code *code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  bool known = code != nullptr;
  pcre2_code_free(code);
  return known;
}

struct Regex::Compiled {
  pcre2_code *code = nullptr;
  bool jit = false;
  ~Compiled() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern) : compiled_(std::make_unique<Compiled>()) {
  std::string translated = translate_oniguruma(pattern);
  pcre2_compile_context *context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!compiled_->code)
    throw Error("tokenizer.json: the regular expression " + std::string(pattern) +
                " does not compile: " + pcre2_message(error) + ".");
  compiled_->jit = pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;

void Regex::stretches(std::string_view text, std::vector<Stretch> &out) const {
  static thread_local MatchState state;
  if (text.empty())
    return;
  auto match_at = [&](size_t start) {
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int rc = pcre2_match(compiled_->code, subject, text.size(), start, PCRE2_NO_UTF_CHECK, state.data,
                         state.context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
      rc = pcre2_match(compiled_->code, subject, text.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       state.data, state.context);
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
      throw Error("A regular expression of the tokenizer gave up at byte " + std::to_string(start) + " of " +
                  std::to_string(text.size()) + " (" + pcre2_message(rc) + "); shorten the text.");
    return rc >= 0;
  };
  const PCRE2_SIZE *ovector = pcre2_get_ovector_pointer(state.data);
  size_t covered = 0, search = 0;
  bool any = false;
  size_t last_end = 0;
  while (search <= text.size() && match_at(search)) {
    size_t begin = ovector[0], end = ovector[1];
    // An empty match right behind the previous match does not count.
    if (begin == end && any && end == last_end) {
      if (search >= text.size())
        break;
      next_code_point(text, search);
      continue;
    }
    any = true;
    search = last_end = end;
    if (begin < covered) // \K or look-behind tricks: never go back
      continue;
    if (begin != covered)
      out.push_back({covered, begin, false});
    out.push_back({begin, end, true});
    covered = end;
  }
  if (covered != text.size())
    out.push_back({covered, text.size(), false});
}

Pattern Pattern::literal(std::string text) {
  if (text.empty())
    throw Error(
        "tokenizer.json: a pattern to split or replace is the empty string; it must have at least one "
        "character.");
  Pattern p;
  p.text_ = std::move(text);
  return p;
}

Pattern Pattern::regex(std::string_view oniguruma_pattern) {
  Pattern p;
  p.regex_ = std::make_shared<const Regex>(oniguruma_pattern);
  return p;
}

void Pattern::stretches(std::string_view text, std::vector<Stretch> &out) const {
  if (regex_)
    return regex_->stretches(text, out);
  size_t covered = 0;
  for (size_t at; (at = text.find(text_, covered)) != std::string_view::npos; covered = at + text_.size()) {
    if (at != covered)
      out.push_back({covered, at, false});
    out.push_back({at, at + text_.size(), true});
  }
  if (covered != text.size())
    out.push_back({covered, text.size(), false});
}

size_t Pattern::match_at_start(std::string_view text) const {
  std::vector<Stretch> parts;
  stretches(text, parts);
  size_t bytes = 0;
  for (size_t i = 0; i < parts.size() && parts[i].is_match; ++i)
    bytes = parts[i].end;
  return bytes;
}

std::string Pattern::replace(std::string_view text, std::string_view content) const {
  std::vector<Stretch> parts;
  stretches(text, parts);
  size_t size = 0;
  for (const Stretch &part : parts)
    size += part.is_match ? content.size() : part.end - part.begin;
  if (size > kMaxReplaced)
    throw Error("Replacing a pattern would make a text of " + std::to_string(size) +
                " bytes, more than the limit of " + std::to_string(kMaxReplaced) +
                "; shorten the text, or the replacement in tokenizer.json.");
  std::string out;
  out.reserve(size);
  for (const Stretch &part : parts)
    out += part.is_match ? content : text.substr(part.begin, part.end - part.begin);
  return out;
}

} // namespace llmrt::text
