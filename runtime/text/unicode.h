// Properties of code points as the `tokenizers` package sees them (its regex engine carries Unicode
// 16, its normaliser Unicode 9), so that our splits do not depend on the Unicode version of a library.
// The data is unicode_ranges.inc, written by make_unicode_ranges.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace llmrt::text {

// General categories, in the order of the generated table.
enum class Category : uint8_t {
  Cn,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Co,
  Cs
};

// One byte per code point: bits 0-4 category; bit 5: normalisation forms leave it alone; bit 6: text
// that holds it may not be in NFC; bit 7: StripAccents removes it.
inline constexpr uint8_t kPropCategory = 31, kPropFrozen = 32, kPropNfcUnsafe = 64, kPropAccent = 128;

// 0x110000 bytes, built on first use.
const uint8_t *code_point_props();

// Coarse classes that the hand-written scanners work with.
enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

// 0x110000 entries, built on first use.
const CharClass *code_point_classes();

// White_Space of Unicode: \s of Oniguruma and of Rust's regex.
bool is_space(char32_t cp);
// \w of Oniguruma.
bool is_word(char32_t cp);
// Rust's char::is_numeric, which the Digits pre-tokenizer uses.
bool is_numeric(char32_t cp);
// What the Punctuation pre-tokenizer takes for punctuation.
bool is_punctuation(char32_t cp);
// Rust's char::to_lowercase where it is one letter and utf8proc 2.8 does not know it; 0 elsewhere.
char32_t new_lowercase(char32_t cp);

using CodePointRanges = std::vector<std::pair<uint32_t, uint32_t>>; // inclusive, ascending, disjoint

// Code points of a category ("Lu") or group of categories ("L"); empty if there is no such name.
CodePointRanges ranges_of_category(std::string_view name);
CodePointRanges ranges_of_space();
CodePointRanges ranges_of_word();
CodePointRanges ranges_of_han();
CodePointRanges complement(const CodePointRanges &ranges); // within U+0000..U+10FFFF

} // namespace llmrt::text
