// The "decoder" of a tokenizer.json as a chain of streaming steps: tokens go in one at a time, text that
// can no longer change comes out. Decoding a whole list of tokens is the same chain followed by finish(),
// so streamed and whole output agree by construction.
#pragma once

#include "runtime/text/json_view.h"
#include "runtime/text/regex.h"
#include "runtime/text/utf8.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace llmrt::text {

class Decoder {
public:
  Decoder(); // without a "decoder": tokens joined by spaces
  // Supported: ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip, Sequence.
  // Throws llmrt::Error for any other type.
  static Decoder from_json(const JsonView &json);

  // The state of one stream. The decoder must outlive it.
  class Stream {
  public:
    explicit Stream(const Decoder &decoder);
    // Appends to `out` what the token adds; `token` is its text in the vocabulary. Always whole characters.
    void push(std::string_view token, std::string &out);
    // Appends what was held back, and starts over.
    void finish(std::string &out);
    // Drops what is held back, but for a character that is not whole yet: what comes next is a text of its own.
    void drop_held();

  private:
    friend class Decoder;
    struct StepState {
      bool first_token = true; // no token has ended yet
      bool token_open = false; // part of a token has passed
      std::string buffer;      // text of an unfinished token, or of a byte run
      Utf8Repair repair;       // ByteLevel
      size_t run = 0;          // ByteFallback: bytes in the run; Strip: trailing characters held back
      size_t settled = 0;      // ByteFallback: leading bytes of the run that are whole characters
      bool run_is_bad = false; // ByteFallback: the run can no longer become valid
      size_t start_left = 0;   // Strip: how many leading characters may still be cut
    };
    void feed(size_t step, std::string_view text, bool ends_token, std::string &out);
    void end_of_stream(size_t step, std::string &out);
    void byte_fallback(size_t step, std::string_view token, std::string &out);
    void end_byte_run(size_t step, std::string &out);

    const Decoder *decoder_;
    std::vector<StepState> states_;
  };

  // The bytes that a token contributes by itself, wherever it stands: no stripping, no repair.
  std::string token_bytes(std::string_view token) const;

private:
  struct JoinWithSpaces {};
  struct ByteLevel {};
  struct Metaspace {
    char32_t replacement;
    bool strips_first;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct ByteFallback {};
  struct Fuse {};
  struct Strip {
    char32_t content;
    size_t start, stop;
  };
  using Step = std::variant<JoinWithSpaces, ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip>;

  void add(const JsonView &json, int depth);

  std::vector<Step> steps_;
};

} // namespace llmrt::text
