// Normalisation over utf8proc's data. utf8proc's own driver reorders marks in quadratic time, so
// decomposition, reordering and composition are driven from here; for NFC only the stretches around
// suspicious code points are touched at all.
#include "runtime/text/normalize.h"

#include "runtime/support/error.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <utf8proc.h>
#include <vector>

namespace llmrt::text {
namespace {

using Points = std::vector<utf8proc_int32_t>;

// U+11A7 stands one before the first Hangul tail; utf8proc 2.8 takes it for one and loses it.
bool frozen(char32_t cp) {
  return (code_point_props()[cp] & kPropFrozen) || cp == 0x11A7;
}
bool nfc_unsafe(char32_t cp) {
  return code_point_props()[cp] & kPropNfcUnsafe;
}

void decompose(char32_t cp, bool compatible, Points &out) {
  utf8proc_int32_t buffer[32];
  int last_boundclass = 0;
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                (compatible ? UTF8PROC_COMPAT : 0));
  utf8proc_ssize_t n =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(cp), buffer, 32, options, &last_boundclass);
  if (n < 0 || n > 32)
    throw Error("Unicode normalisation failed on one code point; the text holds one that utf8proc refuses.");
  out.insert(out.end(), buffer, buffer + n);
}

// Marks between two starters, sorted by combining class and otherwise left in order.
void reorder(Points &points) {
  auto ccc = [](utf8proc_int32_t cp) { return utf8proc_get_property(cp)->combining_class; };
  for (size_t i = 0; i < points.size();) {
    if (ccc(points[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < points.size() && ccc(points[end]) != 0)
      ++end;
    std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(i),
                     points.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](auto a, auto b) { return ccc(a) < ccc(b); });
    i = end;
  }
}

// Normalises a stretch that holds no frozen code point.
void flush(Points &points, bool compose, std::string &out) {
  if (points.empty())
    return;
  reorder(points);
  auto n = static_cast<utf8proc_ssize_t>(points.size());
  if (compose)
    n = utf8proc_normalize_utf32(points.data(), n,
                                 static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    append_code_point(out, static_cast<char32_t>(points[static_cast<size_t>(i)]));
  points.clear();
}

std::string normalize_all(std::string_view text, bool compatible, bool compose) {
  std::string out;
  out.reserve(text.size());
  Points points;
  for (size_t pos = 0; pos < text.size();) {
    char32_t cp = next_code_point(text, pos);
    if (frozen(cp)) {
      flush(points, compose, out);
      append_code_point(out, cp);
    } else {
      decompose(cp, compatible, points);
    }
  }
  flush(points, compose, out);
  return out;
}

// A stretch to normalise runs from the safe character before an unsafe one to the next safe one.
std::string normalize_nfc(std::string_view text) {
  std::string out;
  size_t copied = 0, safe = 0; // `safe`: start of the last safe character
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<unsigned char>(text[pos]) < 0x80) {
      safe = pos++;
      continue;
    }
    size_t start = pos;
    char32_t cp = next_code_point(text, pos);
    if (!nfc_unsafe(cp)) {
      safe = start;
      continue;
    }
    while (pos < text.size()) {
      size_t next = pos;
      if (!nfc_unsafe(next_code_point(text, next)))
        break;
      pos = next;
    }
    out += text.substr(copied, safe - copied);
    out += normalize_all(text.substr(safe, pos - safe), false, true);
    copied = safe = pos;
  }
  if (copied == 0)
    return std::string(text);
  out += text.substr(copied);
  return out;
}

} // namespace

std::string normalize(std::string_view text, Form form) {
  bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
  if (ascii)
    return std::string(text);
  if (form == Form::kNfc)
    return normalize_nfc(text);
  return normalize_all(text, form == Form::kNfkc || form == Form::kNfkd, form == Form::kNfkc);
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    char32_t cp = next_code_point(text, pos);
    if (cp < 0x80) {
      out += static_cast<char>(cp >= 'A' && cp <= 'Z' ? cp + 32 : cp);
    } else if (cp == 0x130) { // the one letter whose lower case is two code points
      out += "i\xCC\x87";
    } else if (char32_t lower = new_lowercase(cp)) {
      append_code_point(out, lower);
    } else {
      append_code_point(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(cp))));
    }
  }
  return out;
}

std::string strip_accents(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    size_t start = pos;
    char32_t cp = next_code_point(text, pos);
    if (!(code_point_props()[cp] & kPropAccent))
      out += text.substr(start, pos - start);
  }
  return out;
}

} // namespace llmrt::text
