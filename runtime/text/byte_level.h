// GPT-2's bijection between the 256 bytes and printable characters, in which byte-level vocabularies
// spell their tokens (space is "Ġ", newline "Ċ"). Source: Radford et al. 2019, "Language Models are
// Unsupervised Multitask Learners"; printable Latin-1 stands for itself, the rest for U+0100 onwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmrt::text {

// The character that stands for a byte.
char32_t byte_to_char(uint8_t byte);

// The byte that a character stands for, or -1.
int char_to_byte(char32_t cp);

// Appends the characters that stand for `bytes`.
void append_byte_chars(std::string_view bytes, std::string &out);

// The bytes that `chars` (valid UTF-8) stands for, or nothing if some character stands for none.
std::optional<std::string> byte_chars_to_bytes(std::string_view chars);

} // namespace llmrt::text
