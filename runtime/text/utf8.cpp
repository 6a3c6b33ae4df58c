// Validation and repair of UTF-8, whole or streamed; the table of legal second bytes (Unicode 15,
// table 3-7) is the only knowledge here.
#include "runtime/text/utf8.h"

#include <cstring>

namespace llmrt::text {
namespace {

unsigned char at(std::string_view s, size_t i) {
  return static_cast<unsigned char>(s[i]);
}

// Bytes of a character with this lead, 0 for bytes that cannot lead.
int length_of_lead(unsigned char lead) {
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return 2;
  if (lead >= 0xE0 && lead <= 0xEF)
    return 3;
  if (lead >= 0xF0 && lead <= 0xF4)
    return 4;
  return 0;
}

bool second_byte_fits(unsigned char lead, unsigned char second) {
  switch (lead) {
  case 0xE0:
    return second >= 0xA0 && second <= 0xBF;
  case 0xED:
    return second >= 0x80 && second <= 0x9F;
  case 0xF0:
    return second >= 0x90 && second <= 0xBF;
  case 0xF4:
    return second >= 0x80 && second <= 0x8F;
  default:
    return second >= 0x80 && second <= 0xBF;
  }
}

// How many bytes from `pos` belong to a well-formed start of a character of `length` bytes.
size_t well_formed(std::string_view s, size_t pos, int length) {
  size_t n = 1;
  while (n < static_cast<size_t>(length) && pos + n < s.size()) {
    unsigned char b = at(s, pos + n);
    bool fits = n == 1 ? second_byte_fits(at(s, pos), b) : (b & 0xC0) == 0x80;
    if (!fits)
      break;
    ++n;
  }
  return n;
}

} // namespace

size_t valid_utf8_prefix(std::string_view s) {
  size_t pos = 0;
  while (pos < s.size()) {
    if (pos + 8 <= s.size()) {
      uint64_t word;
      std::memcpy(&word, s.data() + pos, 8);
      if ((word & 0x8080808080808080ull) == 0) {
        pos += 8;
        continue;
      }
    }
    int length = length_of_lead(at(s, pos));
    if (length == 0 || well_formed(s, pos, length) != static_cast<size_t>(length))
      return pos;
    pos += static_cast<size_t>(length);
  }
  return pos;
}

InvalidPart invalid_utf8_part(std::string_view s) {
  int length = length_of_lead(at(s, 0));
  if (length == 0)
    return {1, false};
  size_t n = well_formed(s, 0, length);
  return {n, n == s.size() && n < static_cast<size_t>(length)};
}

std::string repair_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Repair repair;
  repair.push(bytes, out);
  repair.finish(out);
  return out;
}

void Utf8Repair::push(std::string_view bytes, std::string &out) {
  std::string joined;
  if (!pending_.empty()) {
    joined.swap(pending_);
    joined += bytes;
    bytes = joined;
  }
  while (!bytes.empty()) {
    size_t good = valid_utf8_prefix(bytes);
    out += bytes.substr(0, good);
    bytes.remove_prefix(good);
    if (bytes.empty())
      break;
    InvalidPart part = invalid_utf8_part(bytes);
    if (part.incomplete) {
      pending_ = bytes;
      break;
    }
    out += kReplacementChar;
    bytes.remove_prefix(part.length);
  }
}

void Utf8Repair::finish(std::string &out) {
  if (!pending_.empty())
    out += kReplacementChar;
  pending_.clear();
}

} // namespace llmrt::text
