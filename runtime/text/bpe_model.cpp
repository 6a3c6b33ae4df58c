// Encodes one word: look it up in the cache; else map its characters to tokens and merge the pair of
// lowest rank (leftmost first) until none is left, by scanning for short words and by a heap for long ones.
#include "runtime/text/bpe_model.h"

#include "runtime/text/byte_level.h"
#include "runtime/text/utf8.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace llmrt::text {
namespace {

constexpr size_t kShortWord = 48;                    // symbols; below this scanning beats the heap
constexpr int64_t kMaxId = 1 << 22;                  // bounds the table of ids
constexpr std::string_view kMarker = "\xE2\x96\x81"; // "▁", SentencePiece's space

bool later(const BpeWorkspace::Candidate &a, const BpeWorkspace::Candidate &b) {
  return a.rank != b.rank ? a.rank > b.rank : a.pos > b.pos;
}

// Does a marker follow something that is not a marker?
bool has_inner_marker(std::string_view text) {
  for (size_t at = text.find(kMarker, 1); at != std::string_view::npos; at = text.find(kMarker, at + 1))
    if (at < kMarker.size() || text.substr(at - kMarker.size(), kMarker.size()) != kMarker)
      return true;
  return false;
}

} // namespace

void MergeTable::reserve(size_t merges) {
  size_t size = 16;
  while (size < merges * 2)
    size *= 2;
  slots_.assign(size, Slot{});
  mask_ = size - 1;
}

void MergeTable::put(int32_t left, int32_t right, Merge merge) {
  uint64_t key = pair_key(left, right);
  size_t slot = hash(key) & mask_;
  while (slots_[slot].key != kEmpty && slots_[slot].key != key)
    slot = (slot + 1) & mask_;
  slots_[slot] = {key, merge};
}

BpeModel BpeModel::from_json(const JsonView &json, bool bytes) {
  std::string_view type = json.type();
  if (type != "BPE" && !(type.empty() && json.find("merges")))
    json.unsupported_type("BPE");
  if (auto dropout = json.find("dropout")) {
    double p = 0;
    if (dropout->raw().get_double().get(p) != simdjson::SUCCESS || p != 0)
      dropout->fail("must be null or 0: encoding with dropout is random and serves training only.");
  }
  for (const char *affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (auto value = json.find(affix); value && !value->string().empty())
      value->fail("is \"" + std::string(value->string()) + "\"; only models without affixes are supported.");
  BpeModel m;
  m.bytes_ = bytes;
  m.byte_fallback_ = json.boolean_or("byte_fallback", false);
  m.fuse_unk_ = json.boolean_or("fuse_unk", false);
  m.ignore_merges_ = json.boolean_or("ignore_merges", false);
  m.read_vocab(json.at("vocab"));
  m.prepare_bytes();
  if (auto unk = json.find("unk_token")) {
    // Where every byte is a token, nothing is unknown; then it may as well be among the added tokens only.
    const bool all_known = bytes && std::all_of(std::begin(m.byte_symbol_), std::end(m.byte_symbol_),
                                                [](int32_t id) { return id >= 0; });
    if (auto id = m.vocab_.find(unk->string()))
      m.unk_ = *id;
    else if (!unk->string().empty() && !all_known)
      unk->fail("is \"" + std::string(unk->string()) + "\", which is not in model.vocab.");
  }
  m.read_merges(json.at("merges"));
  return m;
}

void BpeModel::read_vocab(const JsonView &json) {
  simdjson::dom::object object = json.object();
  size_t count = 0, bytes = 0;
  for (auto field : object) {
    ++count;
    bytes += field.key.size();
  }
  vocab_.reserve(count, bytes);
  for (auto [text, value] : object) {
    int64_t id = 0;
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id >= kMaxId)
      json.fail("gives the token \"" + std::string(text) + "\" an id that is not an integer from 0 to " +
                std::to_string(kMaxId - 1) + ".");
    vocab_.put(text, static_cast<int32_t>(id));
  }
}

void BpeModel::read_merges(const JsonView &json) {
  simdjson::dom::array array = json.array();
  size_t count = 0;
  for (simdjson::dom::element item : array) {
    (void)item;
    ++count;
  }
  merges_.reserve(count);
  std::vector<int32_t> products;
  products.reserve(count);
  std::string joined;
  uint32_t rank = 0;
  size_t index = 0;
  for (simdjson::dom::element item : array) {
    std::string_view left, right, line;
    auto fail = [&](const std::string &problem) {
      JsonView(item, json.path() + "[" + std::to_string(index) + "]").fail(problem);
    };
    if (item.get_string().get(line) == simdjson::SUCCESS) {
      if (line.starts_with("#version")) {
        ++index;
        continue;
      }
      size_t space = line.find(' ');
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
        fail("must hold two tokens with one space between them.");
      left = line.substr(0, space);
      right = line.substr(space + 1);
    } else {
      simdjson::dom::array pair;
      if (item.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
          pair.at(0).get_string().get(left) != simdjson::SUCCESS ||
          pair.at(1).get_string().get(right) != simdjson::SUCCESS)
        fail("must be a string of two tokens or a pair of strings.");
    }
    joined.assign(left).append(right);
    auto l = vocab_.find(left), r = vocab_.find(right), product = vocab_.find(joined);
    if (!l || !r || !product)
      fail("uses the token \"" +
           std::string(!l   ? left
                       : !r ? right
                            : joined) +
           "\", which is not in model.vocab.");
    merges_.put(*l, *r, {rank++, *product});
    products.push_back(*product);
    ++index;
  }
  prepare_boundaries(products);
}

void BpeModel::prepare_boundaries(const std::vector<int32_t> &products) {
  // Where unknown characters may vanish, their neighbours could merge across the border.
  bool none_vanish =
      unk_ >= 0 || (byte_fallback_ && std::all_of(fallback_token_.begin(), fallback_token_.end(),
                                                  [](int32_t id) { return id >= 0; }));
  splits_at_marker_ = !bytes_ && none_vanish && vocab_.find(kMarker) &&
                      std::none_of(products.begin(), products.end(),
                                   [&](int32_t id) { return has_inner_marker(vocab_.text(id)); });
}

void BpeModel::prepare_bytes() {
  for (unsigned b = 0; b < 256; ++b) {
    std::string spelled;
    append_code_point(spelled, byte_to_char(static_cast<uint8_t>(b)));
    byte_symbol_[b] = vocab_.find(spelled).value_or(-1);
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", b);
    fallback_token_[b] = vocab_.find(name).value_or(-1);
  }
  if (!bytes_ || !ignore_merges_)
    return;
  for (size_t id = 0; id < vocab_.id_limit(); ++id)
    if (vocab_.contains(static_cast<int32_t>(id)))
      if (auto raw = byte_chars_to_bytes(vocab_.text(static_cast<int32_t>(id))))
        raw_words_.put(*raw, static_cast<int32_t>(id));
}

std::optional<int32_t> BpeModel::find_word(std::string_view word) const {
  return (bytes_ ? raw_words_ : vocab_).find(word);
}

void BpeModel::encode(std::string_view word, BpeWorkspace &work, std::vector<int32_t> &out) const {
  if (ignore_merges_ || !splits_at_marker_)
    return encode_part(word, work, out);
  while (!word.empty()) {
    // Up to the next marker behind something else: merges never reach across it.
    size_t end = word.size();
    for (size_t at = word.find(kMarker, 1); at != std::string_view::npos; at = word.find(kMarker, at + 1))
      if (at < kMarker.size() || word.substr(at - kMarker.size(), kMarker.size()) != kMarker) {
        end = at;
        break;
      }
    encode_part(word.substr(0, end), work, out);
    word.remove_prefix(end);
  }
}

void BpeModel::encode_part(std::string_view word, BpeWorkspace &work, std::vector<int32_t> &out) const {
  uint64_t hash = 0;
  bool cached = word.size() <= WordCache::kMaxKey;
  if (cached) {
    hash = hash_bytes(word);
    if (work.cache.find(word, hash, out))
      return;
  }
  size_t before = out.size();
  std::optional<int32_t> whole = ignore_merges_ ? find_word(word) : std::nullopt;
  if (whole) {
    out.push_back(*whole);
  } else {
    work.symbols.clear();
    if (bytes_)
      symbols_of_bytes(word, work.symbols);
    else
      symbols_of_chars(word, work.symbols);
    if (work.symbols.size() <= kShortWord)
      merge_short(work.symbols);
    else
      merge_long(work);
    out.insert(out.end(), work.symbols.begin(), work.symbols.end());
  }
  if (cached)
    work.cache.put(word, hash, out.data() + before, out.size() - before);
}

void BpeModel::symbols_of_bytes(std::string_view word, std::vector<int32_t> &symbols) const {
  std::string spelled;
  for (char c : word) {
    int32_t id = byte_symbol_[static_cast<uint8_t>(c)];
    if (id < 0) { // the vocabulary lacks this byte: the general rules for unknown characters
      append_byte_chars(word, spelled);
      symbols.clear();
      return symbols_of_chars(spelled, symbols);
    }
    symbols.push_back(id);
  }
}

// An unknown character becomes its bytes ("<0xNN>") if the model has them all, else the unknown token,
// else nothing. With fuse_unk a run of unknown characters is one token. A pending unknown token waits
// for the next known character even if byte tokens come between, as in the `tokenizers` package.
void BpeModel::symbols_of_chars(std::string_view word, std::vector<int32_t> &symbols) const {
  bool pending = false;
  for (size_t pos = 0; pos < word.size();) {
    size_t start = pos;
    next_code_point(word, pos);
    std::string_view c = word.substr(start, pos - start);
    if (auto id = vocab_.find(c)) {
      if (pending)
        symbols.push_back(unk_);
      pending = false;
      symbols.push_back(*id);
      continue;
    }
    auto token = [&](char b) { return fallback_token_[static_cast<uint8_t>(b)]; };
    if (byte_fallback_ && std::all_of(c.begin(), c.end(), [&](char b) { return token(b) >= 0; })) {
      for (char b : c)
        symbols.push_back(token(b));
    } else if (unk_ >= 0) {
      if (pending && !fuse_unk_)
        symbols.push_back(unk_);
      pending = true;
    }
  }
  if (pending)
    symbols.push_back(unk_);
}

void BpeModel::merge_short(std::vector<int32_t> &symbols) const {
  MergeTable::Merge next[kShortWord]; // next[i]: the merge of symbols i and i + 1
  size_t n = symbols.size();
  for (size_t i = 0; i + 1 < n; ++i)
    next[i] = merges_.find(symbols[i], symbols[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (next[i].rank < next[best].rank)
        best = i;
    if (next[best].rank == MergeTable::kNone)
      break;
    symbols[best] = next[best].token;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              symbols.begin() + static_cast<std::ptrdiff_t>(n),
              symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    for (size_t i = best + 1; i + 2 < n; ++i)
      next[i] = next[i + 1];
    --n;
    if (best > 0)
      next[best - 1] = merges_.find(symbols[best - 1], symbols[best]);
    if (best + 1 < n)
      next[best] = merges_.find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(n);
}

void BpeModel::merge_long(BpeWorkspace &work) const {
  auto &links = work.links;
  auto &heap = work.heap;
  auto n = static_cast<int32_t>(work.symbols.size());
  links.resize(work.symbols.size());
  heap.clear();
  auto propose = [&](int32_t left) {
    int32_t right = links[static_cast<size_t>(left)].next;
    auto merge = merges_.find(links[static_cast<size_t>(left)].id, links[static_cast<size_t>(right)].id);
    if (merge.rank == MergeTable::kNone)
      return false;
    heap.push_back({merge.rank, static_cast<uint32_t>(left), merge.token});
    return true;
  };
  for (int32_t i = 0; i < n; ++i)
    links[static_cast<size_t>(i)] = {work.symbols[static_cast<size_t>(i)], i - 1, i + 1 < n ? i + 1 : -1};
  for (int32_t i = 0; i + 1 < n; ++i)
    propose(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    BpeWorkspace::Candidate top = heap.back();
    heap.pop_back();
    auto &left = links[top.pos];
    if (left.id < 0 || left.next < 0)
      continue;
    auto &right = links[static_cast<size_t>(left.next)];
    if (merges_.find(left.id, right.id).token != top.token) // one of the two has merged meanwhile
      continue;
    left.id = top.token;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0)
      links[static_cast<size_t>(left.next)].prev = static_cast<int32_t>(top.pos);
    if (left.prev >= 0 && propose(left.prev))
      std::push_heap(heap.begin(), heap.end(), later);
    if (left.next >= 0 && propose(static_cast<int32_t>(top.pos)))
      std::push_heap(heap.begin(), heap.end(), later);
  }
  work.symbols.clear();
  for (int32_t i = 0; i >= 0 && i < n; i = links[static_cast<size_t>(i)].next)
    work.symbols.push_back(links[static_cast<size_t>(i)].id);
  // A megabyte-long word must not pin its workspace for good.
  if (links.capacity() > (1u << 16)) {
    links = {};
    heap = {};
  }
}

} // namespace llmrt::text
