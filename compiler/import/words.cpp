// Quoting, units and nearest-word search for the importers' error messages.
#include "compiler/import/words.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace llmc {

std::string quote(std::string_view text) {
  constexpr size_t kMost = 120;
  std::string out = "\"";
  for (size_t i = 0; i < std::min(text.size(), kMost); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", c);
      out += escape;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + (text.size() > kMost ? "\"..." : "\"");
}

bool isPlainText(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size()) &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string humanBytes(uint64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
  return text;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

// Levenshtein distance by rows; words here are short (keys and type names).
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string nearestWord(std::string_view word, const std::vector<std::string> &candidates) {
  if (word.size() > 64)
    return "";
  size_t limit = std::max<size_t>(2, word.size() / 3);
  std::string best;
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(word, candidate);
    if (distance <= limit && distance < word.size()) {
      limit = distance - (distance > 0);
      best = candidate;
      if (distance == 0)
        break;
    }
  }
  return best;
}

std::string listText(const std::vector<std::string> &items, size_t most) {
  std::string out;
  size_t shown = items.size() > most ? most : items.size();
  for (size_t i = 0; i < shown; ++i) {
    bool last = i + 1 == items.size();
    out += (i == 0 ? "" : last ? " and " : ", ") + items[i];
  }
  if (shown < items.size())
    out += " and " + std::to_string(items.size() - shown) + " more";
  return out;
}

uint64_t elementCount(const std::vector<int64_t> &shape) {
  uint64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0)
      return 0;
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count))
      return UINT64_MAX;
  }
  return count;
}

} // namespace llmc
