// Builds the chain of decoder steps and runs it. A step sees its input as a sequence of tokens, each of
// which may arrive in several parts once an earlier step has fused tokens; `ends_token` marks the last part.
#include "runtime/text/decoder.h"

#include "runtime/text/byte_level.h"
#include "runtime/text/pre_tokenizer.h"

#include <optional>

namespace llmrt::text {
namespace {

constexpr std::string_view kSupported =
    "ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip and Sequence";
constexpr int kMaxNesting = 16;

char32_t one_character(const JsonView &json) {
  std::string_view text = json.string();
  size_t pos = 0;
  char32_t cp = text.empty() ? 0 : next_code_point(text, pos);
  if (text.empty() || pos != text.size())
    json.fail("must be exactly one character.");
  return cp;
}

size_t count_from_json(const JsonView &json) {
  int64_t n = json.integer();
  if (n < 0)
    json.fail("is " + std::to_string(n) + "; it must not be negative.");
  return static_cast<size_t>(n);
}

// The byte of "<0x0A>" (hexadecimal digits in either case; like the `tokenizers` package, "+A" also counts).
std::optional<unsigned char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>')
    return std::nullopt;
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  if (high < 0 || low < 0)
    return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

} // namespace

Decoder::Decoder() {
  steps_.emplace_back(JoinWithSpaces{});
}

Decoder Decoder::from_json(const JsonView &json) {
  Decoder d;
  d.steps_.clear();
  d.add(json, 0);
  return d;
}

void Decoder::add(const JsonView &json, int depth) {
  if (depth > kMaxNesting)
    json.fail("nests more than " + std::to_string(kMaxNesting) + " sequences.");
  std::string_view type = json.type();
  if (type == "Sequence") {
    for (const JsonView &item : json.at("decoders").items())
      add(item, depth + 1);
  } else if (type == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (type == "Metaspace") {
    steps_.emplace_back(Metaspace{one_character(json.at("replacement")),
                                  prepend_scheme_from_json(json) != PrependScheme::kNever});
  } else if (type == "Replace") {
    JsonView pattern = json.at("pattern");
    if (auto literal = pattern.find("String"))
      steps_.emplace_back(Replace{Pattern::literal(std::string(literal->string())),
                                  std::string(json.at("content").string())});
    else
      steps_.emplace_back(
          Replace{Pattern::regex(pattern.at("Regex").string()), std::string(json.at("content").string())});
  } else if (type == "ByteFallback") {
    steps_.emplace_back(ByteFallback{});
  } else if (type == "Fuse") {
    steps_.emplace_back(Fuse{});
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{one_character(json.at("content")), count_from_json(json.at("start")),
                              count_from_json(json.at("stop"))});
  } else {
    json.unsupported_type(kSupported);
  }
}

std::string Decoder::token_bytes(std::string_view token) const {
  std::string text(token);
  for (const Step &step : steps_) {
    if (std::holds_alternative<ByteLevel>(step)) {
      if (auto bytes = byte_chars_to_bytes(text))
        return *bytes;
      return text;
    }
    if (std::holds_alternative<ByteFallback>(step)) {
      if (auto byte = byte_of(text))
        return std::string(1, static_cast<char>(*byte));
    } else if (auto *meta = std::get_if<Metaspace>(&step)) {
      std::string mark;
      append_code_point(mark, meta->replacement);
      text = Pattern::literal(mark).replace(text, " ");
    } else if (auto *replace = std::get_if<Replace>(&step)) {
      text = replace->pattern.replace(text, replace->content);
    }
  }
  return text;
}

Decoder::Stream::Stream(const Decoder &decoder) : decoder_(&decoder), states_(decoder.steps_.size()) {}

void Decoder::Stream::push(std::string_view token, std::string &out) {
  feed(0, token, true, out);
}

void Decoder::Stream::finish(std::string &out) {
  end_of_stream(0, out);
  states_.assign(states_.size(), StepState{});
}

void Decoder::Stream::drop_held() {
  for (size_t i = 0; i < states_.size(); ++i) {
    StepState &s = states_[i];
    const Step &step = decoder_->steps_[i];
    if (std::holds_alternative<ByteFallback>(step)) {
      std::string dropped; // the steps behind have to see it all the same
      if (s.settled > 0)
        feed(i + 1, std::string_view(s.buffer).substr(0, s.settled), true, dropped);
      s.buffer.erase(0, s.settled);
      s.run = s.buffer.size();
      s.settled = 0;
      s.run_is_bad = false;
    } else if (!std::holds_alternative<ByteLevel>(step)) {
      s.buffer.clear();
      s.run = 0;
    }
  }
}

// One part of a token enters step `step`.
void Decoder::Stream::feed(size_t index, std::string_view text, bool ends_token, std::string &out) {
  if (index == states_.size()) {
    out += text;
    return;
  }
  StepState &s = states_[index];
  const Step &step = decoder_->steps_[index];
  bool starts_token = !s.token_open;
  s.token_open = !ends_token;

  if (std::holds_alternative<JoinWithSpaces>(step)) {
    if (starts_token && !s.first_token)
      feed(index + 1, " ", false, out);
    feed(index + 1, text, ends_token, out);
  } else if (std::holds_alternative<Fuse>(step)) {
    if (!text.empty())
      feed(index + 1, text, false, out);
  } else if (auto *meta = std::get_if<Metaspace>(&step)) {
    std::string plain;
    for (size_t pos = 0; pos < text.size();) {
      char32_t cp = next_code_point(text, pos);
      if (cp != meta->replacement)
        append_code_point(plain, cp);
      else if (!s.first_token || !meta->strips_first)
        plain += ' ';
    }
    feed(index + 1, plain, ends_token, out);
  } else if (auto *strip = std::get_if<Strip>(&step)) {
    if (starts_token) {
      s.start_left = strip->start;
      s.run = 0;
    }
    // Characters that may still be cut at the end are only counted: they are all the same.
    std::string plain, content;
    append_code_point(content, strip->content);
    for (size_t pos = 0; pos < text.size();) {
      char32_t cp = next_code_point(text, pos);
      if (cp == strip->content && s.start_left > 0) {
        --s.start_left;
      } else if (cp == strip->content && strip->stop > 0) {
        s.start_left = 0;
        ++s.run;
      } else {
        s.start_left = 0;
        for (; s.run > 0; --s.run)
          plain += content;
        append_code_point(plain, cp);
      }
    }
    for (; s.run > strip->stop; --s.run)
      plain += content;
    feed(index + 1, plain, ends_token, out);
  } else {
    // The remaining steps judge a token as a whole.
    std::string whole;
    if (!starts_token || !ends_token) {
      s.buffer += text;
      if (!ends_token)
        return;
      whole.swap(s.buffer);
      text = whole;
    }
    if (std::holds_alternative<ByteFallback>(step)) {
      byte_fallback(index, text, out);
    } else if (auto *replace = std::get_if<Replace>(&step)) {
      feed(index + 1, replace->pattern.replace(text, replace->content), true, out);
    } else { // ByteLevel: everything becomes one token
      std::string repaired;
      auto bytes = byte_chars_to_bytes(text);
      s.repair.push(bytes ? std::string_view(*bytes) : text, repaired);
      if (!repaired.empty())
        feed(index + 1, repaired, false, out);
    }
  }
  if (ends_token)
    states_[index].first_token = false;
}

// A run of byte tokens becomes one token if it is valid UTF-8 as a whole, else one U+FFFD per byte; so it
// is held until it ends or until it is certainly invalid.
void Decoder::Stream::byte_fallback(size_t index, std::string_view token, std::string &out) {
  StepState &s = states_[index];
  auto byte = byte_of(token);
  if (!byte) {
    end_byte_run(index, out);
    feed(index + 1, token, true, out);
    return;
  }
  ++s.run;
  if (s.run_is_bad) {
    feed(index + 1, kReplacementChar, true, out);
    return;
  }
  s.buffer += static_cast<char>(*byte);
  std::string_view rest = std::string_view(s.buffer).substr(s.settled);
  size_t good = valid_utf8_prefix(rest);
  s.settled += good;
  if (good == rest.size() || invalid_utf8_part(rest.substr(good)).incomplete)
    return;
  s.run_is_bad = true;
  s.buffer.clear();
  for (size_t i = 0; i < s.run; ++i)
    feed(index + 1, kReplacementChar, true, out);
}

void Decoder::Stream::end_byte_run(size_t index, std::string &out) {
  StepState &s = states_[index];
  if (s.run > 0 && !s.run_is_bad) {
    if (valid_utf8_prefix(s.buffer) == s.buffer.size()) {
      feed(index + 1, s.buffer, true, out);
    } else {
      for (size_t i = 0; i < s.run; ++i)
        feed(index + 1, kReplacementChar, true, out);
    }
  }
  s.buffer.clear();
  s.settled = 0;
  s.run = 0;
  s.run_is_bad = false;
}

void Decoder::Stream::end_of_stream(size_t index, std::string &out) {
  if (index == states_.size())
    return;
  StepState &s = states_[index];
  const Step &step = decoder_->steps_[index];
  if (std::holds_alternative<ByteFallback>(step)) {
    end_byte_run(index, out);
  } else if (std::holds_alternative<ByteLevel>(step)) {
    std::string repaired;
    s.repair.finish(repaired);
    feed(index + 1, repaired, true, out);
  } else if (std::holds_alternative<Fuse>(step)) {
    feed(index + 1, "", true, out);
  }
  end_of_stream(index + 1, out);
}

} // namespace llmrt::text
