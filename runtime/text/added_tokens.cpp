// Finds added tokens with a byte trie: leftmost first, longest at one position, and then the conditions
// of the token (whole words, swallowing of spaces), in the order in which the `tokenizers` package has them.
#include "runtime/text/added_tokens.h"

#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

#include <algorithm>

namespace llmrt::text {
namespace {

// \w of Rust's regex crate: Alphabetic, M, Nd, Pc and the joiners. Letters, marks and letter numbers
// make up Alphabetic, apart from circled letters that the table of Oniguruma's word class adds.
bool is_boundary_word(char32_t cp) {
  bool latin1_number = cp == 0xB2 || cp == 0xB3 || cp == 0xB9 || (cp >= 0xBC && cp <= 0xBE);
  return (is_word(cp) && !latin1_number) || cp == 0x200C || cp == 0x200D;
}

bool word_before(std::string_view text, size_t pos) {
  if (pos == 0)
    return false;
  size_t at = previous_border(text, pos);
  return is_boundary_word(next_code_point(text, at));
}

bool word_after(std::string_view text, size_t pos) {
  return pos < text.size() && is_boundary_word(next_code_point(text, pos));
}

size_t skip_spaces_back(std::string_view text, size_t pos, size_t limit) {
  while (pos > limit) {
    size_t at = previous_border(text, pos), next = at;
    if (!is_space(next_code_point(text, next)))
      break;
    pos = at;
  }
  return std::max(pos, limit);
}

size_t skip_spaces(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    size_t next = pos;
    if (!is_space(next_code_point(text, next)))
      break;
    pos = next;
  }
  return pos;
}

} // namespace

void StringMatcher::add(std::string_view key, int32_t value) {
  uint32_t node = 0;
  for (char c : key) {
    auto byte = static_cast<unsigned char>(c);
    uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
      auto &children = nodes_[node].children;
      children.insert(
          std::lower_bound(children.begin(), children.end(), std::pair<unsigned char, uint32_t>(byte, 0)),
          {byte, next});
    }
    node = next;
  }
  nodes_[node].value = value;
  starts_[static_cast<unsigned char>(key[0])] = true;
}

uint32_t StringMatcher::child(uint32_t node, unsigned char byte) const {
  const auto &children = nodes_[node].children;
  auto it = std::lower_bound(children.begin(), children.end(), std::pair<unsigned char, uint32_t>(byte, 0));
  return it != children.end() && it->first == byte ? it->second : 0;
}

int32_t StringMatcher::longest_at(std::string_view text, size_t pos, size_t &length) const {
  int32_t best = -1;
  uint32_t node = 0;
  for (size_t i = pos; i < text.size(); ++i) {
    node = child(node, static_cast<unsigned char>(text[i]));
    if (node == 0)
      break;
    if (nodes_[node].value >= 0) {
      best = nodes_[node].value;
      length = i + 1 - pos;
    }
  }
  return best;
}

size_t StringMatcher::next_start(std::string_view text, size_t pos) const {
  while (pos < text.size() && !starts_[static_cast<unsigned char>(text[pos])])
    ++pos;
  return pos;
}

AddedTokens AddedTokens::from_json(const JsonView &json, const TokenTable &vocab,
                                   const Normalizer &normalizer) {
  AddedTokens added;
  std::unordered_map<std::string, size_t> by_content;
  auto next_id = static_cast<int32_t>(vocab.size());
  for (const JsonView &item : json.items()) {
    AddedToken t;
    t.content = item.at("content").string();
    if (t.content.empty())
      continue;
    int64_t id = item.at("id").integer();
    if (id < 0 || id >= (1 << 22))
      item.fail("has the id " + std::to_string(id) + "; ids run from 0 to " + std::to_string((1 << 22) - 1) +
                ".");
    t.special = item.boolean_or("special", false);
    t.single_word = item.boolean_or("single_word", false);
    t.lstrip = item.boolean_or("lstrip", false);
    t.rstrip = item.boolean_or("rstrip", false);
    t.is_normalized = item.boolean_or("normalized", !t.special);
    t.normalized = t.is_normalized && !normalizer.empty() ? normalizer.apply(t.content) : t.content;
    auto [it, fresh] = by_content.emplace(t.content, added.tokens_.size());
    if (fresh) {
      auto known = vocab.find(t.content);
      t.id = known ? *known : next_id++;
      added.tokens_.push_back(std::move(t));
    } else { // the later entry replaces the earlier one; what was special stays so
      AddedToken &earlier = added.tokens_[it->second];
      t.id = earlier.id;
      t.special = t.special || earlier.special;
      earlier = std::move(t);
    }
  }
  for (size_t i = 0; i < added.tokens_.size(); ++i) {
    const AddedToken &t = added.tokens_[i];
    if (!t.normalized.empty())
      (t.is_normalized ? added.in_normalized_ : added.in_raw_).add(t.normalized, static_cast<int32_t>(i));
  }
  return added;
}

void AddedTokens::split(const StringMatcher &matcher, std::string_view text, bool parse_special,
                        std::vector<Piece> &out) const {
  size_t covered = 0;
  if (!matcher.empty()) {
    for (size_t pos = matcher.next_start(text, 0); pos < text.size(); pos = matcher.next_start(text, pos)) {
      size_t length = 0;
      int32_t index = matcher.longest_at(text, pos, length);
      if (index < 0) {
        ++pos;
        continue;
      }
      size_t begin = pos, end = pos + length;
      pos = end; // even if the token is rejected below, its text is not searched again
      const AddedToken &t = tokens_[static_cast<size_t>(index)];
      if (t.special && !parse_special)
        continue;
      if (t.single_word && (word_before(text, begin) || word_after(text, end)))
        continue;
      if (t.lstrip)
        begin = skip_spaces_back(text, begin, covered);
      if (t.rstrip)
        end = skip_spaces(text, end);
      if (begin >= end) // spaces that the token before has swallowed
        continue;
      if (covered < begin)
        out.push_back({covered, begin, -1});
      out.push_back({begin, end, t.id});
      covered = end;
    }
  }
  if (covered < text.size())
    out.push_back({covered, text.size(), -1});
}

} // namespace llmrt::text
