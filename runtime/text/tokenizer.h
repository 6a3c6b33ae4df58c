// A tokenizer read from the text of a HuggingFace tokenizer.json: text to token ids and back, equal to
// the `tokenizers` package. Byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM) and SentencePiece-style BPE with
// byte fallback (Llama 2, Mistral).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::text {

class Tokenizer {
public:
  // Throws llmrt::Error with the JSON path of whatever is malformed or not supported. The members
  // "truncation" and "padding" are ignored: the engine decides about lengths.
  static std::shared_ptr<const Tokenizer> from_json(std::string_view tokenizer_json);
  ~Tokenizer();

  // Token ids of `text`. Bytes that are not UTF-8 count as U+FFFD (see utf8.h). `add_special_tokens`
  // adds what the post-processor prescribes, such as <s>; `parse_special` finds special tokens that are
  // written out in the text (false: they are ordinary text; added tokens that are not special are
  // found anyway). Thread-safe. Throws llmrt::Error for texts over 1 GiB.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens,
                              bool parse_special = true) const;

  // Text of `ids`; always valid UTF-8 (token bytes that are not become U+FFFD). Ids outside the
  // vocabulary contribute nothing. Thread-safe. (The `tokenizers` package forgets to skip a special token
  // that its normaliser rewrites; here it is skipped.)
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // One more than the largest id, added tokens included (ids in between may be unused).
  size_t vocab_size() const;
  // Added tokens first, then the vocabulary, spelled as there ("Ġthe").
  std::optional<int32_t> token_to_id(std::string_view token) const;
  // The token as the vocabulary spells it; nothing for an unused id.
  std::optional<std::string> id_to_token(int32_t id) const;
  // The raw bytes the token stands for by itself (" the", or half a character); "" for an unused id.
  std::string token_bytes(int32_t id) const;
  // Is this an added token that is marked special?
  bool is_special(int32_t id) const;

private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace llmrt::text
