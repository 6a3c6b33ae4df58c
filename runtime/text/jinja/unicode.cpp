// Python's string semantics over UTF-8 (see the header). Case mapping is utf8proc's simple mapping plus the
// multi-character rows of case_table.inc and the final-sigma rule of str.lower().
#include "runtime/text/jinja/unicode.h"

#include <algorithm>
#include <utf8proc.h>
#include <utility>

namespace llmrt::text::jinja {

namespace {

struct SpecialCase {
  char32_t code;
  const char *upper, *lower, *title;
};

constexpr SpecialCase kSpecialCases[] = {
#include "runtime/text/jinja/case_table.inc"
};

const SpecialCase *find_special(char32_t c) {
  const auto *end = std::end(kSpecialCases);
  const auto *it =
      std::lower_bound(std::begin(kSpecialCases), end, c, [](const SpecialCase &s, char32_t v) { return s.code < v; });
  return it != end && it->code == c ? it : nullptr;
}

using Range = std::pair<char32_t, char32_t>;

template <size_t N> bool in_ranges(const Range (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](Range r) { return c >= r.first && c <= r.second; });
}

// Digits outside category Nd (superscripts, circled digits ...).
constexpr Range kOtherDigits[] = {{0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
                                  {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
                                  {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
                                  {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
                                  {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
// Characters with the Unicode property Other_Lowercase, and with Other_Uppercase.
constexpr Range kOtherLower[] = {{0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
                                 {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
                                 {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
                                 {0x2090, 0x209c},   {0x2170, 0x217f},   {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},
                                 {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
                                 {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
constexpr Range kOtherUpper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

// Word_Break classes and signs that the final-sigma rule looks through.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    return c == 0x27 || c == 0x2e || c == 0x3a || c == 0xb7 || c == 0x387 || c == 0x2018 || c == 0x2019 ||
           c == 0x2024 || c == 0x2027 || c == 0xfe13 || c == 0xfe52 || c == 0xfe55 || c == 0xff07 || c == 0xff0e ||
           c == 0xff1a || c == 0x5f4 || c == 0x55f;
  }
}

void append_upper(std::string &out, char32_t c) {
  if (c < 0x80)
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  else if (const auto *special = find_special(c))
    out += special->upper;
  else
    append_code_point(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string &out, char32_t c) {
  if (c < 0x80)
    append_upper(out, c);
  else if (const auto *special = find_special(c))
    out += special->title;
  else
    append_code_point(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

char32_t previous_code_point(std::string_view s, size_t &offset) {
  do
    --offset;
  while (offset > 0 && (static_cast<unsigned char>(s[offset]) & 0xc0) == 0x80);
  size_t at = offset;
  return next_code_point(s, at);
}

// Greek capital sigma at `begin` (ending at `end`) becomes a final sigma after a cased letter and before none.
bool is_final_sigma(std::string_view s, size_t begin, size_t end) {
  bool after_cased = false;
  for (size_t at = begin; at > 0;) {
    char32_t c = previous_code_point(s, at);
    if (is_case_ignorable(c))
      continue;
    after_cased = is_cased(c);
    break;
  }
  if (!after_cased)
    return false;
  for (size_t at = end; at < s.size();) {
    char32_t c = next_code_point(s, at);
    if (is_case_ignorable(c))
      continue;
    return !is_cased(c);
  }
  return true;
}

// `s` is the whole string, for the context of a sigma; the character spans [begin, end).
void append_lower(std::string &out, char32_t c, std::string_view s, size_t begin, size_t end) {
  if (c < 0x80)
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else if (c == 0x3a3)
    out += is_final_sigma(s, begin, end) ? "\xcf\x82" : "\xcf\x83";
  else if (const auto *special = find_special(c))
    out += special->lower;
  else
    append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

} // namespace

size_t find_invalid_utf8(std::string_view s) {
  const auto *p = reinterpret_cast<const unsigned char *>(s.data());
  size_t n = s.size();
  for (size_t i = 0; i < n;) {
    unsigned char c = p[i];
    if (c < 0x80) {
      ++i;
      continue;
    }
    size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || i + length > n)
      return i;
    for (size_t k = 1; k < length; ++k)
      if ((p[i + k] & 0xc0) != 0x80)
        return i;
    unsigned char d = p[i + 1];
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f))
      return i;
    i += length;
  }
  return std::string_view::npos;
}

size_t count_code_points(std::string_view s) {
  size_t n = 0;
  for (char c : s)
    n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return n;
}

char32_t next_code_point(std::string_view s, size_t &offset) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(i < s.size() ? s[i] : 0); };
  unsigned char c = byte(offset);
  char32_t value = 0;
  if (c < 0x80) {
    value = c;
    offset += 1;
  } else if (c < 0xe0) {
    value = (char32_t(c & 0x1f) << 6) | (byte(offset + 1) & 0x3f);
    offset += 2;
  } else if (c < 0xf0) {
    value = (char32_t(c & 0x0f) << 12) | (char32_t(byte(offset + 1) & 0x3f) << 6) | (byte(offset + 2) & 0x3f);
    offset += 3;
  } else {
    value = (char32_t(c & 0x07) << 18) | (char32_t(byte(offset + 1) & 0x3f) << 12) |
            (char32_t(byte(offset + 2) & 0x3f) << 6) | (byte(offset + 3) & 0x3f);
    offset += 4;
  }
  offset = std::min(offset, s.size());
  return value;
}

void append_code_point(std::string &out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

size_t offset_of(std::string_view s, size_t position) {
  size_t offset = 0;
  while (position > 0 && offset < s.size()) {
    ++offset;
    while (offset < s.size() && (static_cast<unsigned char>(s[offset]) & 0xc0) == 0x80)
      ++offset;
    --position;
  }
  return offset;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c < 0x7f)
    return c >= 0x20;
  switch (category(c)) {
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
  case UTF8PROC_CATEGORY_ZS:
    return false;
  default:
    return true;
  }
}

bool is_alpha(char32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || in_ranges(kOtherDigits, c); }

bool is_numeric(char32_t c) {
  auto k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t c) {
  if (c < 0x80)
    return c >= 'a' && c <= 'z';
  return category(c) == UTF8PROC_CATEGORY_LL || in_ranges(kOtherLower, c);
}

bool is_upper(char32_t c) {
  if (c < 0x80)
    return c >= 'A' && c <= 'Z';
  return category(c) == UTF8PROC_CATEGORY_LU || in_ranges(kOtherUpper, c);
}

bool is_title(char32_t c) { return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT; }

bool is_identifier_start(char32_t c) {
  return c == '_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c) || is_decimal(c))
    return true;
  auto k = category(c);
  return c >= 0x80 && (k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC);
}

std::string to_upper(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();)
    append_upper(out, next_code_point(s, at));
  return out;
}

std::string to_lower(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();) {
    size_t begin = at;
    char32_t c = next_code_point(s, at);
    append_lower(out, c, s, begin, at);
  }
  return out;
}

std::string to_title(std::string_view s) {
  std::string out;
  bool previous_cased = false;
  for (size_t at = 0; at < s.size();) {
    size_t begin = at;
    char32_t c = next_code_point(s, at);
    if (previous_cased)
      append_lower(out, c, s, begin, at);
    else
      append_title(out, c);
    previous_cased = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view s) {
  std::string out;
  for (size_t at = 0; at < s.size();) {
    size_t begin = at;
    char32_t c = next_code_point(s, at);
    if (begin == 0)
      append_title(out, c);
    else
      append_lower(out, c, s, begin, at);
  }
  return out;
}

std::string swap_case(std::string_view s) {
  std::string out;
  for (size_t at = 0; at < s.size();) {
    size_t begin = at;
    char32_t c = next_code_point(s, at);
    if (is_upper(c))
      append_lower(out, c, s, begin, at);
    else if (is_lower(c))
      append_upper(out, c);
    else
      append_code_point(out, c);
  }
  return out;
}

std::string case_fold(std::string_view s) {
  utf8proc_uint8_t *folded = nullptr;
  auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(s.data()), static_cast<utf8proc_ssize_t>(s.size()),
                        &folded, UTF8PROC_CASEFOLD);
  if (n < 0)
    return to_lower(s);
  std::string out(reinterpret_cast<const char *>(folded), static_cast<size_t>(n));
  free(folded); // allocated by utf8proc with malloc
  return out;
}

std::string_view strip(std::string_view s, Side side, const std::string_view *chars) {
  auto matches = [&](char32_t c) {
    if (!chars)
      return is_space(c);
    for (size_t at = 0; at < chars->size();)
      if (next_code_point(*chars, at) == c)
        return true;
    return false;
  };
  size_t begin = 0, end = s.size();
  if (side != Side::right) {
    while (begin < end) {
      size_t at = begin;
      if (!matches(next_code_point(s, at)))
        break;
      begin = at;
    }
  }
  if (side != Side::left) {
    while (end > begin) {
      size_t at = end;
      if (!matches(previous_code_point(s, at)))
        break;
      end = at;
    }
  }
  return s.substr(begin, end - begin);
}

} // namespace llmrt::text::jinja
