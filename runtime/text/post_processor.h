// The "post_processor" of a tokenizer.json, reduced to what concerns one text: the special tokens that
// go before and after it.
#pragma once

#include "runtime/text/json_view.h"

#include <cstdint>
#include <vector>

namespace llmrt::text {

class PostProcessor {
public:
  // Supported: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel (which only moves
  // offsets), Sequence. Throws llmrt::Error for any other type.
  static PostProcessor from_json(const JsonView &json);

  std::vector<int32_t> apply(std::vector<int32_t> ids) const;

private:
  struct Frame { // the text stands between them
    std::vector<int32_t> before, after;
  };
  void add(const JsonView &json, int depth);
  static Frame template_frame(const JsonView &json);

  std::vector<Frame> frames_; // innermost first
};

} // namespace llmrt::text
