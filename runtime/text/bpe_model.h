// Byte pair encoding: the vocabulary, the ranked merges, and the encoding of one word.
// Source: Sennrich, Haddow, Birch 2016, "Neural Machine Translation of Rare Words with Subword Units".
#pragma once

#include "runtime/text/json_view.h"
#include "runtime/text/token_table.h"
#include "runtime/text/word_cache.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace llmrt::text {

// Pair of token ids -> rank and merged token, open-addressed.
class MergeTable {
public:
  struct Merge {
    uint32_t rank;
    int32_t token;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  void reserve(size_t merges);
  void put(int32_t left, int32_t right, Merge merge); // a repeated pair takes the later merge
  Merge find(int32_t left, int32_t right) const {     // rank kNone: no such merge
    if (slots_.empty())
      return {kNone, -1};
    uint64_t key = pair_key(left, right);
    for (size_t slot = hash(key) & mask_;; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key)
        return slots_[slot].merge;
      if (slots_[slot].key == kEmpty)
        return {kNone, -1};
    }
  }

private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge{};
  };
  static uint64_t pair_key(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  }
  static size_t hash(uint64_t key) {
    key ^= key >> 29;
    key *= 0x9E3779B97F4A7C15ull;
    return static_cast<size_t>(key ^ (key >> 32));
  }
  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

// Storage that encoding a word needs; one per concurrent encode().
struct BpeWorkspace {
  struct Symbol {
    int32_t id, prev, next;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t pos;
    int32_t token;
  };
  WordCache cache;
  std::vector<int32_t> symbols;
  std::vector<Symbol> links;
  std::vector<Candidate> heap;
};

class BpeModel {
public:
  // `bytes`: words arrive as raw bytes and tokens are spelled in the byte-level alphabet.
  // Throws llmrt::Error on any other model type, dropout, affixes, or merges outside the vocabulary.
  static BpeModel from_json(const JsonView &json, bool bytes);

  // Appends the tokens of one word, in O(n log n) of its length.
  void encode(std::string_view word, BpeWorkspace &work, std::vector<int32_t> &out) const;

  const TokenTable &vocab() const { return vocab_; }
  bool byte_fallback() const { return byte_fallback_; }

private:
  void read_vocab(const JsonView &json);
  void read_merges(const JsonView &json);
  void prepare_bytes();
  void prepare_boundaries(const std::vector<int32_t> &products);

  void encode_part(std::string_view part, BpeWorkspace &work, std::vector<int32_t> &out) const;
  void symbols_of_bytes(std::string_view word, std::vector<int32_t> &symbols) const;
  void symbols_of_chars(std::string_view word, std::vector<int32_t> &symbols) const;
  void merge_short(std::vector<int32_t> &symbols) const;
  void merge_long(BpeWorkspace &work) const;
  std::optional<int32_t> find_word(std::string_view word) const;

  TokenTable vocab_;
  MergeTable merges_;
  bool bytes_ = false;
  bool byte_fallback_ = false, fuse_unk_ = false, ignore_merges_ = false;
  int32_t unk_ = -1;
  std::array<int32_t, 256> byte_symbol_{};    // bytes_: token of each byte's character, -1: none
  std::array<int32_t, 256> fallback_token_{}; // byte_fallback_: token "<0xNN>", -1: none
  TokenTable raw_words_;                      // bytes_ and ignore_merges_: tokens by their raw bytes
  bool splits_at_marker_ = false; // no merge reaches across a "▁" that follows another character
};

} // namespace llmrt::text
