// Runs the splitting steps over a list of spans. The five split behaviours are those of the
// `tokenizers` package, whose documentation gives the examples quoted below.
#include "runtime/text/pre_tokenizer.h"

#include "runtime/text/byte_level.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/utf8.h"

namespace llmrt::text {
namespace {

constexpr std::string_view kSupported = "ByteLevel, Split, Digits, Punctuation, Metaspace and Sequence";
constexpr int kMaxNesting = 16;

void emit(size_t base, size_t begin, size_t end, std::vector<Span> &out) {
  if (begin != end)
    out.push_back({base + begin, base + end});
}

// "the-final--countdown" split at "-":
//   Removed            the final countdown
//   Isolated           the - final - - countdown
//   MergedWithPrevious the- final- - countdown
//   MergedWithNext     the -final - -countdown
//   Contiguous         the - final -- countdown
void apply_behavior(const std::vector<Stretch> &parts, SplitBehavior behavior, bool invert, size_t base,
                    std::vector<Span> &out) {
  auto is_match = [&](const Stretch &s) { return s.is_match != invert; };
  switch (behavior) {
  case SplitBehavior::kRemoved:
    for (const Stretch &s : parts)
      if (!is_match(s))
        emit(base, s.begin, s.end, out);
    return;
  case SplitBehavior::kIsolated:
    for (const Stretch &s : parts)
      emit(base, s.begin, s.end, out);
    return;
  case SplitBehavior::kContiguous:
  case SplitBehavior::kMergedWithPrevious: {
    bool previous = false;
    size_t begin = 0, end = 0;
    bool open = false;
    for (const Stretch &s : parts) {
      bool match = is_match(s);
      bool joins = behavior == SplitBehavior::kContiguous ? match == previous : match && !previous;
      if (!open || !joins) {
        if (open)
          emit(base, begin, end, out);
        begin = s.begin;
        open = true;
      }
      end = s.end;
      previous = match;
    }
    if (open)
      emit(base, begin, end, out);
    return;
  }
  case SplitBehavior::kMergedWithNext: {
    // Read from the right: a match joins the stretch behind it unless that one is a match as well.
    size_t first = out.size();
    bool previous = false, open = false;
    size_t begin = 0, end = 0;
    for (size_t i = parts.size(); i-- > 0;) {
      bool match = is_match(parts[i]);
      if (!open || !(match && !previous)) {
        if (open)
          emit(base, begin, end, out);
        end = parts[i].end;
        open = true;
      }
      begin = parts[i].begin;
      previous = match;
    }
    if (open)
      emit(base, begin, end, out);
    for (size_t i = first, j = out.size(); i < j && i < --j; ++i)
      std::swap(out[i], out[j]);
    return;
  }
  }
}

// Each character for which `matches` holds is a match of its own.
template <typename Predicate>
void character_stretches(std::string_view text, Predicate matches, std::vector<Stretch> &out) {
  size_t covered = 0;
  for (size_t pos = 0; pos < text.size();) {
    size_t start = pos;
    if (!matches(next_code_point(text, pos)))
      continue;
    if (covered != start)
      out.push_back({covered, start, false});
    out.push_back({start, pos, true});
    covered = pos;
  }
  if (covered != text.size())
    out.push_back({covered, text.size(), false});
}

// Replaces the text of every span by what `rewrite` appends to `out`; spans follow.
template <typename Rewrite> void rewrite_spans(Words &words, Rewrite rewrite) {
  words.next_storage.clear();
  words.next_spans.clear();
  for (size_t i = 0; i < words.spans.size(); ++i) {
    size_t begin = words.next_storage.size();
    rewrite(i, words.text.substr(words.spans[i].begin, words.spans[i].end - words.spans[i].begin),
            words.next_storage);
    words.next_spans.push_back({begin, words.next_storage.size()});
  }
  words.storage.swap(words.next_storage);
  words.spans.swap(words.next_spans);
  words.text = words.storage;
}

// Replaces every span by the spans that `cut` makes of it.
template <typename Cut> void cut_spans(Words &words, Cut cut) {
  words.next_spans.clear();
  for (Span span : words.spans)
    cut(words.text.substr(span.begin, span.end - span.begin), span.begin, words.next_spans);
  words.spans.swap(words.next_spans);
}

SplitBehavior behavior_from_json(const JsonView &json) {
  std::string_view name = json.string();
  if (name == "Removed")
    return SplitBehavior::kRemoved;
  if (name == "Isolated")
    return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious")
    return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext")
    return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous")
    return SplitBehavior::kContiguous;
  json.fail("is \"" + std::string(name) +
            "\"; it must be Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous.");
}

} // namespace

PrependScheme prepend_scheme_from_json(const JsonView &json) {
  std::string_view name = json.string_or("prepend_scheme", "always");
  if (!json.boolean_or("add_prefix_space", true)) {
    if (json.find("prepend_scheme") && name != "never")
      json.fail("has add_prefix_space false and prepend_scheme \"" + std::string(name) +
                "\"; they contradict.");
    return PrependScheme::kNever;
  }
  if (name == "first")
    return PrependScheme::kFirst;
  if (name == "never")
    return PrependScheme::kNever;
  if (name == "always")
    return PrependScheme::kAlways;
  json.fail("has prepend_scheme \"" + std::string(name) + "\"; it must be first, never or always.");
}

PreTokenizer PreTokenizer::from_json(const JsonView &json) {
  PreTokenizer p;
  p.add(json, 0);
  if (!p.steps_.empty() && std::holds_alternative<MapBytes>(p.steps_.back())) {
    p.steps_.pop_back();
    p.yields_bytes_ = true;
  }
  return p;
}

void PreTokenizer::add(const JsonView &json, int depth) {
  if (depth > kMaxNesting)
    json.fail("nests more than " + std::to_string(kMaxNesting) + " sequences.");
  std::string_view type = json.type();
  if (type == "Sequence") {
    for (const JsonView &item : json.at("pretokenizers").items())
      add(item, depth + 1);
  } else if (type == "ByteLevel") {
    add_byte_level(json);
  } else if (type == "Split") {
    add_split(json);
  } else if (type == "Digits") {
    steps_.emplace_back(Digits{json.boolean_or("individual_digits", false)});
  } else if (type == "Punctuation") {
    auto behavior = json.find("behavior");
    steps_.emplace_back(Punctuation{behavior ? behavior_from_json(*behavior) : SplitBehavior::kIsolated});
  } else if (type == "Metaspace") {
    add_metaspace(json);
  } else {
    json.unsupported_type(kSupported);
  }
}

void PreTokenizer::add_byte_level(const JsonView &json) {
  if (json.boolean_or("add_prefix_space", true))
    steps_.emplace_back(PrefixSpace{});
  if (json.boolean_or("use_regex", true))
    steps_.emplace_back(Scan{WordScanner::gpt2(), SplitBehavior::kIsolated, false});
  steps_.emplace_back(MapBytes{});
}

void PreTokenizer::add_split(const JsonView &json) {
  SplitBehavior behavior = behavior_from_json(json.at("behavior"));
  bool invert = json.at("invert").boolean();
  JsonView pattern = json.at("pattern");
  if (auto regex = pattern.find("Regex"))
    if (auto scanner = WordScanner::for_pattern(regex->string())) {
      steps_.emplace_back(Scan{*scanner, behavior, invert});
      return;
    }
  steps_.emplace_back(Split{pattern_from_json(pattern), behavior, invert});
}

void PreTokenizer::add_metaspace(const JsonView &json) {
  std::string replacement(json.at("replacement").string());
  size_t one = 0;
  if (!replacement.empty())
    next_code_point(replacement, one);
  if (replacement.empty() || one != replacement.size())
    json.at("replacement").fail("must be exactly one character.");
  steps_.emplace_back(Metaspace{Pattern::literal(std::move(replacement)), prepend_scheme_from_json(json),
                                json.boolean_or("split", true)});
}

// Cuts every span into stretches and joins them as the behaviour says.
template <typename Find> void split_spans(Words &words, SplitBehavior behavior, bool invert, Find find) {
  cut_spans(words, [&](std::string_view part, size_t base, std::vector<Span> &out) {
    words.stretches.clear();
    find(part, words.stretches);
    apply_behavior(words.stretches, behavior, invert, base, out);
  });
}

void PreTokenizer::run(const Scan &scan, bool, Words &words) {
  // Usually every word is kept as it is.
  if (scan.behavior == SplitBehavior::kIsolated || (scan.behavior == SplitBehavior::kRemoved && scan.invert))
    return cut_spans(words, [&](std::string_view part, size_t base, std::vector<Span> &out) {
      for (size_t pos = 0, end; pos < part.size(); pos = end) {
        end = scan.scanner.word_end(part, pos);
        out.push_back({base + pos, base + end});
      }
    });
  split_spans(words, scan.behavior, scan.invert, [&](std::string_view part, std::vector<Stretch> &out) {
    for (size_t pos = 0, end; pos < part.size(); pos = end) {
      end = scan.scanner.word_end(part, pos);
      out.push_back({pos, end, true});
    }
  });
}

void PreTokenizer::run(const Split &split, bool, Words &words) {
  split_spans(words, split.behavior, split.invert,
              [&](std::string_view part, std::vector<Stretch> &out) { split.pattern.stretches(part, out); });
}

void PreTokenizer::run(const Digits &digits, bool, Words &words) {
  split_spans(
      words, digits.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false,
      [](std::string_view part, std::vector<Stretch> &out) { character_stretches(part, is_numeric, out); });
}

void PreTokenizer::run(const Punctuation &punctuation, bool, Words &words) {
  split_spans(words, punctuation.behavior, false, [](std::string_view part, std::vector<Stretch> &out) {
    character_stretches(part, is_punctuation, out);
  });
}

void PreTokenizer::run(const PrefixSpace &, bool, Words &words) {
  rewrite_spans(words, [](size_t, std::string_view part, std::string &out) {
    if (part[0] != ' ')
      out += ' ';
    out += part;
  });
}

void PreTokenizer::run(const MapBytes &, bool, Words &words) {
  rewrite_spans(words, [](size_t, std::string_view part, std::string &out) { append_byte_chars(part, out); });
}

void PreTokenizer::run(const Metaspace &meta, bool at_start, Words &words) {
  rewrite_spans(words, [&](size_t i, std::string_view part, std::string &out) {
    bool wants =
        meta.scheme == PrependScheme::kAlways || (meta.scheme == PrependScheme::kFirst && at_start && i == 0);
    if (wants && part[0] != ' ' && !part.starts_with(meta.replacement.text()))
      out += meta.replacement.text();
    for (char c : part) {
      if (c == ' ')
        out += meta.replacement.text();
      else
        out += c;
    }
  });
  if (meta.split)
    split_spans(
        words, SplitBehavior::kMergedWithNext, false,
        [&](std::string_view part, std::vector<Stretch> &out) { meta.replacement.stretches(part, out); });
}

void PreTokenizer::split(std::string_view text, bool at_start, Words &words) const {
  words.text = text;
  words.spans.assign(1, {0, text.size()});
  for (const Step &step : steps_) {
    if (words.spans.empty())
      return;
    // The first span may still be the one that starts the user's text.
    at_start = at_start && words.spans.front().begin == 0;
    std::visit([&](const auto &s) { run(s, at_start, words); }, step);
  }
}

} // namespace llmrt::text
