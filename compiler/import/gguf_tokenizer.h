// The tokenizer part of a GGUF file's metadata: special ids, and the vocabulary turned into the text of a
// tokenizer.json by the runtime's converter.
#pragma once

#include "compiler/import/gguf_reader.h"

namespace llmc {

struct GgufTokenizerText {
  std::string json; // empty, with a warning, when the file holds no vocabulary
  uint64_t tokens = 0;
  std::string bosToken, eosToken;
  std::optional<int32_t> bosTokenId, padTokenId;
  std::vector<int64_t> endIds; // eos, end of turn, end of message
};

GgufTokenizerText readGgufTokenizer(const GgufHeader &header, std::vector<std::string> &warnings);

} // namespace llmc
