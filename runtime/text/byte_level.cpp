// Tables for the byte-level alphabet, built once.
#include "runtime/text/byte_level.h"

#include "runtime/text/utf8.h"

#include <array>

namespace llmrt::text {
namespace {

constexpr bool stands_for_itself(unsigned b) {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

struct Tables {
  std::array<char16_t, 256> to_char{};
  std::array<int16_t, 512> to_byte{};
  constexpr Tables() {
    for (auto &b : to_byte)
      b = -1;
    char16_t next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      to_char[b] = stands_for_itself(b) ? static_cast<char16_t>(b) : next++;
      to_byte[to_char[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr Tables kTables;

} // namespace

char32_t byte_to_char(uint8_t byte) {
  return kTables.to_char[byte];
}

int char_to_byte(char32_t cp) {
  return cp < 512 ? kTables.to_byte[cp] : -1;
}

void append_byte_chars(std::string_view bytes, std::string &out) {
  for (char c : bytes)
    append_code_point(out, byte_to_char(static_cast<uint8_t>(c)));
}

std::optional<std::string> byte_chars_to_bytes(std::string_view chars) {
  std::string out;
  out.reserve(chars.size());
  for (size_t pos = 0; pos < chars.size();) {
    int byte = char_to_byte(next_code_point(chars, pos));
    if (byte < 0)
      return std::nullopt;
    out += static_cast<char>(byte);
  }
  return out;
}

} // namespace llmrt::text
