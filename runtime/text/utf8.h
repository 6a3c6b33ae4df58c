// UTF-8 primitives for the tokenizer: decoding of known-good text, and the one repair rule that the
// whole of runtime/text follows for bad bytes.
//
// Repair rule: each maximal invalid part becomes one U+FFFD, as in Python's errors="replace", Rust's
// from_utf8_lossy and the Unicode standard ("U+FFFD substitution of maximal subparts").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llmrt::text {

inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";

// One code point at text[pos]; text must be valid UTF-8 and pos a character border. Advances pos.
inline char32_t next_code_point(std::string_view text, size_t &pos) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t lead = byte(pos);
  if (lead < 0x80) {
    ++pos;
    return lead;
  }
  if (lead < 0xE0) {
    uint32_t cp = ((lead & 0x1F) << 6) | (byte(pos + 1) & 0x3F);
    pos += 2;
    return cp;
  }
  if (lead < 0xF0) {
    uint32_t cp = ((lead & 0x0F) << 12) | ((byte(pos + 1) & 0x3F) << 6) | (byte(pos + 2) & 0x3F);
    pos += 3;
    return cp;
  }
  uint32_t cp = ((lead & 0x07) << 18) | ((byte(pos + 1) & 0x3F) << 12) | ((byte(pos + 2) & 0x3F) << 6) |
                (byte(pos + 3) & 0x3F);
  pos += 4;
  return cp;
}

// Start of the character that ends at pos (pos > 0, valid UTF-8).
inline size_t previous_border(std::string_view text, size_t pos) {
  do {
    --pos;
  } while (pos > 0 && (static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80);
  return pos;
}

inline void append_code_point(std::string &out, char32_t cp) {
  if (cp < 0x80) {
    out += static_cast<char>(cp);
  } else if (cp < 0x800) {
    out += static_cast<char>(0xC0 | (cp >> 6));
    out += static_cast<char>(0x80 | (cp & 0x3F));
  } else if (cp < 0x10000) {
    out += static_cast<char>(0xE0 | (cp >> 12));
    out += static_cast<char>(0x80 | ((cp >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (cp & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (cp >> 18));
    out += static_cast<char>(0x80 | ((cp >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((cp >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (cp & 0x3F));
  }
}

// Length of the longest prefix that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view bytes);

// What stands at the front of `bytes`, which valid_utf8_prefix() found to be bad at its first byte:
// `length` bytes form one maximal invalid part, or, if `incomplete`, all of `bytes` is the start of a
// character that further bytes could still complete.
struct InvalidPart {
  size_t length;
  bool incomplete;
};
InvalidPart invalid_utf8_part(std::string_view bytes);

// `bytes` with every maximal invalid part replaced by U+FFFD.
std::string repair_utf8(std::string_view bytes);

// The same repair over a stream: text comes out as soon as its characters are whole.
class Utf8Repair {
public:
  void push(std::string_view bytes, std::string &out);
  void finish(std::string &out); // what is left is an incomplete character: one U+FFFD

private:
  std::string pending_; // at most 3 bytes between calls
};

} // namespace llmrt::text
