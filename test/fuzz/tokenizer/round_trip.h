// What must hold for any tokenizer and any bytes: streamed output equals decoded output, all output is
// valid UTF-8, ids are within the vocabulary, and encoding twice gives the same.
#pragma once

#include "runtime/text/stream_decoder.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/utf8.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt::text::fuzz {

inline void require(bool holds) {
  if (!holds)
    std::abort();
}

inline void round_trip(const std::shared_ptr<const Tokenizer> &tokenizer, std::string_view text) {
  for (bool parse_special : {true, false}) {
    auto ids = tokenizer->encode(text, parse_special, parse_special);
    require(ids == tokenizer->encode(text, parse_special, parse_special));
    for (bool skip : {false, true}) {
      std::string whole = tokenizer->decode(ids, skip), streamed;
      StreamDecoder stream(tokenizer, skip);
      for (int32_t id : ids) {
        require(id >= 0);
        std::string piece = stream.push(id);
        require(valid_utf8_prefix(piece) == piece.size());
        streamed += piece;
      }
      streamed += stream.finish();
      require(streamed == whole);
    }
    for (int32_t id : ids) {
      tokenizer->token_bytes(id);
      tokenizer->is_special(id);
    }
  }
  // Any bytes as ids, in and out of the vocabulary.
  std::vector<int32_t> ids;
  for (char c : text)
    ids.push_back(static_cast<signed char>(c));
  std::string decoded = tokenizer->decode(ids, false);
  require(valid_utf8_prefix(decoded) == decoded.size());
}

} // namespace llmrt::text::fuzz
