// The parts of a Tokenizer, for tokenizer.cpp and stream_decoder.cpp only.
#pragma once

#include "runtime/text/added_tokens.h"
#include "runtime/text/bpe_model.h"
#include "runtime/text/decoder.h"
#include "runtime/text/normalizer.h"
#include "runtime/text/post_processor.h"
#include "runtime/text/pre_tokenizer.h"
#include "runtime/text/tokenizer.h"

#include <mutex>

namespace llmrt::text {

struct EncodeScratch {
  BpeWorkspace bpe;
  Words words;
  std::vector<AddedTokens::Piece> pieces, inner_pieces;
};

struct Tokenizer::Impl {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeModel model;
  PostProcessor post_processor;
  Decoder decoder;
  AddedTokens added;

  struct AddedById {
    std::string text; // what decoding sees
    bool special = false;
  };
  std::unordered_map<int32_t, AddedById> added_by_id;
  std::unordered_map<std::string, int32_t> added_by_content;
  size_t id_limit = 0;

  // Scratch space, word cache included, is lent to one encode() at a time.
  mutable std::mutex scratch_mutex;
  mutable std::vector<std::unique_ptr<EncodeScratch>> idle_scratch;

  std::unique_ptr<EncodeScratch> borrow_scratch() const;
  void return_scratch(std::unique_ptr<EncodeScratch> scratch) const;

  void encode_plain(std::string_view text, bool at_start, bool parse_special, EncodeScratch &scratch,
                    std::vector<int32_t> &out) const;
  void encode_words(std::string_view text, bool at_start, EncodeScratch &scratch,
                    std::vector<int32_t> &out) const;

  // The token as decoding sees it; false for an unused id.
  bool token_text(int32_t id, std::string_view &text) const;
  bool is_special(int32_t id) const;
};

} // namespace llmrt::text
