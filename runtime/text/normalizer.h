// The "normalizer" of a tokenizer.json: a chain of whole-string rewrites that runs before splitting.
#pragma once

#include "runtime/text/json_view.h"
#include "runtime/text/normalize.h"
#include "runtime/text/regex.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace llmrt::text {

class Normalizer {
public:
  // Supported: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Sequence.
  // Throws llmrt::Error for any other type.
  static Normalizer from_json(const JsonView &json);

  bool empty() const { return steps_.empty(); }

  // `text` must be valid UTF-8. Throws llmrt::Error if the result would exceed 1 GiB. `keeps_start` (if
  // given) becomes false where the first character of `text` is dropped, so that the result no longer begins
  // where the text does.
  std::string apply(std::string_view text, bool *keeps_start = nullptr) const;

private:
  struct Lowercase {};
  struct StripAccents {};
  struct Strip {
    bool left, right;
  };
  struct Prepend {
    std::string content;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  using Step = std::variant<Form, Lowercase, StripAccents, Strip, Prepend, Replace>;

  void add(const JsonView &json, int depth);

  std::vector<Step> steps_;
};

// {"String": "a"} or {"Regex": "a+"}, as Replace and Split hold it.
Pattern pattern_from_json(const JsonView &json);

} // namespace llmrt::text
