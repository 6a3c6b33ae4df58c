// The "pre_tokenizer" of a tokenizer.json: cuts a text into the words inside which merges may happen.
// Splitting steps only move borders; the text is rewritten only where a step changes it.
#pragma once

#include "runtime/text/json_view.h"
#include "runtime/text/regex.h"
#include "runtime/text/word_scanner.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace llmrt::text {

struct Span {
  size_t begin, end; // bytes
};

// A text and the words in it; reused from call to call to keep its storage.
struct Words {
  std::string_view text; // what spans refer to: the caller's text or `storage`
  std::vector<Span> spans;
  std::string storage, next_storage;
  std::vector<Span> next_spans;
  std::vector<Stretch> stretches;
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kFirst, kNever, kAlways };

class PreTokenizer {
public:
  PreTokenizer() = default; // no splitting: the whole text is one word
  // Supported: ByteLevel, Split, Digits, Punctuation, Metaspace, Sequence. Throws llmrt::Error for any other
  // type.
  static PreTokenizer from_json(const JsonView &json);

  // True if the last step is ByteLevel. Its mapping of bytes to printable characters is then left to
  // the model: words come out as raw bytes.
  bool yields_bytes() const { return yields_bytes_; }

  // Fills `words` from `text` (valid UTF-8, not empty, must outlive the use of `words`).
  // `at_start`: the text stands at the very start of what the user gave (Metaspace, scheme "first").
  void split(std::string_view text, bool at_start, Words &words) const;

private:
  struct Scan { // every stretch is a match
    WordScanner scanner;
    SplitBehavior behavior;
    bool invert;
  };
  struct Split {
    Pattern pattern;
    SplitBehavior behavior;
    bool invert;
  };
  struct Digits {
    bool individual;
  };
  struct Punctuation {
    SplitBehavior behavior;
  };
  struct PrefixSpace {}; // ByteLevel's add_prefix_space
  struct MapBytes {};    // ByteLevel's mapping, where steps follow it
  struct Metaspace {
    Pattern replacement; // a literal
    PrependScheme scheme;
    bool split;
  };
  using Step = std::variant<Scan, Split, Digits, Punctuation, PrefixSpace, MapBytes, Metaspace>;

  static void run(const Scan &step, bool at_start, Words &words);
  static void run(const Split &step, bool at_start, Words &words);
  static void run(const Digits &step, bool at_start, Words &words);
  static void run(const Punctuation &step, bool at_start, Words &words);
  static void run(const PrefixSpace &step, bool at_start, Words &words);
  static void run(const MapBytes &step, bool at_start, Words &words);
  static void run(const Metaspace &step, bool at_start, Words &words);

  void add(const JsonView &json, int depth);
  void add_byte_level(const JsonView &json);
  void add_split(const JsonView &json);
  void add_metaspace(const JsonView &json);

  std::vector<Step> steps_;
  bool yields_bytes_ = false;
};

PrependScheme prepend_scheme_from_json(const JsonView &metaspace);

} // namespace llmrt::text
