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
  // offsets), Sequence of these with one that adds tokens. Throws llmrt::Error for anything else.
  static PostProcessor from_json(const JsonView &json);

  std::vector<int32_t> apply(std::vector<int32_t> ids) const;

private:
  struct Frame { // the text stands between them
    std::vector<int32_t> before, after;
  };
  void add(const JsonView &json, int depth);
  void set_frame(const JsonView &json, Frame frame);
  static Frame template_frame(const JsonView &json);

  Frame frame_;
};

} // namespace llmrt::text
