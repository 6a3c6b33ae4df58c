// A thin shell around the streaming decoder chain; it owns a share of the tokenizer.
#include "runtime/text/stream_decoder.h"

#include "runtime/text/tokenizer_impl.h"

namespace llmrt::text {

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens),
      stream_(tokenizer_->impl_->decoder) {}

void StreamDecoder::prime(std::span<const int32_t> ids) {
  for (int32_t id : ids)
    push(id);
  stream_.drop_held();
}

std::string StreamDecoder::push(int32_t id) {
  std::string out;
  std::string_view text;
  if (tokenizer_->impl_->token_text(id, text) && !(skip_special_tokens_ && tokenizer_->impl_->is_special(id)))
    stream_.push(text, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  stream_.finish(out);
  return out;
}

} // namespace llmrt::text
