// Writes the tokenizer.json that is equivalent to the tokenizer metadata of a GGUF file, so that a plan
// carries one format only. A pure function; depends on nothing but nlohmann-json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmrt::text {

// The "tokenizer.ggml.*" metadata. Members keep the names of the keys.
struct GgufTokenizer {
  std::string model;               // "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)
  std::string pre = "default";     // pre-tokeniser of a gpt2 model
  std::vector<std::string> tokens; // by id
  std::vector<int32_t>
      token_types;           // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; may be empty
  std::vector<float> scores; // llama: by id
  std::vector<std::string> merges; // "left right"; may be empty for llama
  std::optional<int32_t> bos_id, eos_id, unk_id, pad_id;
  std::optional<bool> add_bos;          // absent: llama and pre "llama-bpe" yes, else no
  std::optional<bool> add_eos;          // absent: no
  std::optional<bool> add_space_prefix; // absent: llama yes, gpt2 no
};

// Values of `pre` that gguf_to_tokenizer_json() knows.
std::vector<std::string> supported_gguf_pre_tokenizers();

// Throws llmrt::Error: unknown `model` or `pre` (naming the supported ones),
// lists of different lengths, ids outside the vocabulary, repeated tokens, text that is not UTF-8,
// merges that name unknown tokens. Takes O(total token length) hash lookups.
std::string gguf_to_tokenizer_json(const GgufTokenizer &gguf);

} // namespace llmrt::text
