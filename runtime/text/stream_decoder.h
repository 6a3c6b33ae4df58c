// Turns a stream of token ids into text as early as possible. All pieces joined, with finish() at the
// end, equal Tokenizer::decode() of the same ids.
#pragma once

#include "runtime/text/decoder.h"
#include "runtime/text/tokenizer.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace llmrt::text {

class StreamDecoder {
public:
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens);

  // Sets the stream behind `ids` without returning their text. Give it the prompt when the text that
  // follows continues it: SentencePiece-style decoders drop the space of the very first token only. A
  // character that `ids` leave unfinished comes whole when its rest does.
  void prime(std::span<const int32_t> ids);

  // Text that this token completes: whole characters only, possibly "". Byte-level models hold back an
  // unfinished character (at most 3 bytes); models with byte fallback hold a run of byte tokens until it
  // ends, since it decodes to U+FFFD throughout if any part of it is bad.
  std::string push(int32_t id);

  // What is still held back, repaired with U+FFFD. The decoder may then be used for a new stream.
  std::string finish();

private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_tokens_;
  Decoder::Stream stream_;
};

} // namespace llmrt::text
