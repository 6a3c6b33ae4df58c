// Expands the generated range table into flat lookup tables and answers questions about it.
#include "runtime/text/unicode.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>

#include "runtime/text/unicode_ranges.inc"

namespace llmrt::text {
namespace {

constexpr uint32_t kCodePoints = 0x110000;
constexpr std::string_view kCategoryNames[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                               "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                               "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs"};

// Calls use(first, end, props) for every range of the table.
template <typename Use> void for_each_range(Use use) {
  constexpr size_t n = std::size(kRanges);
  for (size_t i = 0; i < n; ++i)
    use(kRanges[i].first, i + 1 < n ? kRanges[i + 1].first : kCodePoints, kRanges[i].props);
}

std::unique_ptr<uint8_t[]> expand() {
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  for_each_range([&](uint32_t first, uint32_t end, uint8_t props) {
    std::fill(table.get() + first, table.get() + end, props);
  });
  return table;
}

Category category(char32_t cp) {
  return static_cast<Category>(code_point_props()[cp] & kPropCategory);
}

template <typename Predicate> CodePointRanges collect(Predicate wanted) {
  CodePointRanges out;
  for (uint32_t cp = 0; cp < kCodePoints; ++cp) {
    if (!wanted(cp))
      continue;
    if (!out.empty() && out.back().second + 1 == cp)
      out.back().second = cp;
    else
      out.emplace_back(cp, cp);
  }
  return out;
}

template <size_t N> bool within(const uint32_t (&table)[N][2], char32_t cp) {
  for (const auto &range : table)
    if (cp >= range[0] && cp <= range[1])
      return true;
  return false;
}

std::unique_ptr<CharClass[]> classify() {
  auto table = std::make_unique<CharClass[]>(kCodePoints);
  for_each_range([&](uint32_t first, uint32_t end, uint8_t props) {
    char group = kCategoryNames[props & kPropCategory][0];
    std::fill(table.get() + first, table.get() + end,
              group == 'L'   ? CharClass::kLetter
              : group == 'N' ? CharClass::kNumber
              : group == 'Z' ? CharClass::kSpace
                             : CharClass::kOther);
  });
  for (uint32_t control : {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85})
    table[control] = CharClass::kSpace;
  return table;
}

} // namespace

const uint8_t *code_point_props() {
  static const std::unique_ptr<uint8_t[]> table = expand();
  return table.get();
}

const CharClass *code_point_classes() {
  static const std::unique_ptr<CharClass[]> table = classify();
  return table.get();
}

bool is_space(char32_t cp) {
  if (cp < 0x80)
    return cp == ' ' || (cp >= '\t' && cp <= '\r');
  Category c = category(cp);
  return cp == 0x85 || c == Category::Zs || c == Category::Zl || c == Category::Zp;
}

bool is_word(char32_t cp) {
  Category c = category(cp);
  return (c >= Category::Lu && c <= Category::Nl) || c == Category::Pc || within(kWordExtra, cp);
}

bool is_numeric(char32_t cp) {
  Category c = category(cp);
  return (c >= Category::Nd && c <= Category::No) || (cp >= kNumericExtra[0][0] && within(kNumericExtra, cp));
}

bool is_punctuation(char32_t cp) {
  if (cp < 0x80)
    return cp > 0x20 && cp < 0x7F && !(cp >= '0' && cp <= '9') && !((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z');
  Category c = category(cp);
  return (c >= Category::Pc && c <= Category::Po) ? !within(kPunctuationMissing, cp)
                                                  : within(kPunctuationExtra, cp);
}

char32_t new_lowercase(char32_t cp) {
  for (auto [upper, lower] : kNewLower)
    if (upper == cp)
      return lower;
  return 0;
}

CodePointRanges ranges_of_category(std::string_view name) {
  uint32_t wanted = 0; // bit per category
  for (size_t i = 0; i < std::size(kCategoryNames); ++i)
    if (kCategoryNames[i] == name || (name.size() == 1 && kCategoryNames[i][0] == name[0]))
      wanted |= 1u << i;
  if (wanted == 0)
    return {};
  return collect([&](uint32_t cp) { return (wanted >> static_cast<int>(category(cp))) & 1; });
}

CodePointRanges ranges_of_space() {
  return collect([](uint32_t cp) { return is_space(cp); });
}

CodePointRanges ranges_of_word() {
  return collect([](uint32_t cp) { return is_word(cp); });
}

CodePointRanges ranges_of_han() {
  CodePointRanges out;
  for (auto [first, last] : kHan)
    out.emplace_back(first, last);
  return out;
}

CodePointRanges complement(const CodePointRanges &ranges) {
  CodePointRanges out;
  uint32_t next = 0;
  for (auto [first, last] : ranges) {
    if (first > next)
      out.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next < kCodePoints)
    out.emplace_back(next, kCodePoints - 1);
  return out;
}

} // namespace llmrt::text
