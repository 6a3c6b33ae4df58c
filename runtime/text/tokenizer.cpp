// Reads the document and runs the pipeline: added tokens, normaliser, pre-tokeniser, model, post-processor.
#include "runtime/text/tokenizer.h"

#include "runtime/support/error.h"
#include "runtime/text/tokenizer_impl.h"
#include "runtime/text/utf8.h"

#include <algorithm>

namespace llmrt::text {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;
constexpr size_t kMaxIdleScratch = 16; // about 1 MiB each

} // namespace

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::from_json(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  simdjson::padded_string padded(text);
  if (auto error = parser.parse(padded).get(document); error != simdjson::SUCCESS)
    throw Error("tokenizer.json is not valid JSON (" + std::string(simdjson::error_message(error)) + ").");
  JsonView root(document, "");
  if (!root.is_object())
    root.fail("must be an object.");

  auto impl = std::make_unique<Impl>();
  if (auto json = root.find("normalizer"))
    impl->normalizer = Normalizer::from_json(*json);
  if (auto json = root.find("pre_tokenizer"))
    impl->pre_tokenizer = PreTokenizer::from_json(*json);
  impl->model = BpeModel::from_json(root.at("model"), impl->pre_tokenizer.yields_bytes());
  if (auto json = root.find("post_processor"))
    impl->post_processor = PostProcessor::from_json(*json);
  if (auto json = root.find("decoder"))
    impl->decoder = Decoder::from_json(*json);
  if (auto json = root.find("added_tokens"))
    impl->added = AddedTokens::from_json(*json, impl->model.vocab(), impl->normalizer);

  impl->id_limit = impl->model.vocab().id_limit();
  for (const AddedToken &t : impl->added.tokens()) {
    impl->added_by_id[t.id] = {t.normalized, t.special};
    impl->added_by_content[t.content] = t.id;
    impl->id_limit = std::max(impl->id_limit, static_cast<size_t>(t.id) + 1);
  }
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

std::unique_ptr<EncodeScratch> Tokenizer::Impl::borrow_scratch() const {
  std::lock_guard lock(scratch_mutex);
  if (idle_scratch.empty())
    return std::make_unique<EncodeScratch>();
  auto scratch = std::move(idle_scratch.back());
  idle_scratch.pop_back();
  return scratch;
}

void Tokenizer::Impl::return_scratch(std::unique_ptr<EncodeScratch> scratch) const {
  std::lock_guard lock(scratch_mutex);
  if (idle_scratch.size() < kMaxIdleScratch)
    idle_scratch.push_back(std::move(scratch));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                       bool parse_special) const {
  if (text.size() > kMaxText)
    throw Error("The text to tokenise has " + std::to_string(text.size()) +
                " bytes, more than the limit of " + std::to_string(kMaxText) + "; send a shorter text.");
  std::string repaired;
  if (valid_utf8_prefix(text) != text.size()) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 16);
  auto scratch = impl_->borrow_scratch();
  scratch->pieces.clear();
  impl_->added.split_raw(text, parse_special, scratch->pieces);
  for (const AddedTokens::Piece &piece : scratch->pieces) {
    if (piece.id >= 0)
      ids.push_back(piece.id);
    else
      impl_->encode_plain(text.substr(piece.begin, piece.end - piece.begin), piece.begin == 0, parse_special,
                          *scratch, ids);
  }
  impl_->return_scratch(std::move(scratch));
  return add_special_tokens ? impl_->post_processor.apply(std::move(ids)) : ids;
}

void Tokenizer::Impl::encode_plain(std::string_view text, bool at_start, bool parse_special,
                                   EncodeScratch &scratch, std::vector<int32_t> &out) const {
  std::string normalized;
  if (!normalizer.empty()) {
    normalized = normalizer.apply(text, &at_start);
    text = normalized;
  }
  if (!added.has_normalized())
    return encode_words(text, at_start, scratch, out);
  scratch.inner_pieces.clear();
  added.split_normalized(text, parse_special, scratch.inner_pieces);
  for (const AddedTokens::Piece &piece : scratch.inner_pieces) {
    if (piece.id >= 0)
      out.push_back(piece.id);
    else
      encode_words(text.substr(piece.begin, piece.end - piece.begin), at_start && piece.begin == 0, scratch,
                   out);
  }
}

void Tokenizer::Impl::encode_words(std::string_view text, bool at_start, EncodeScratch &scratch,
                                   std::vector<int32_t> &out) const {
  if (text.empty())
    return;
  pre_tokenizer.split(text, at_start, scratch.words);
  for (Span span : scratch.words.spans)
    model.encode(scratch.words.text.substr(span.begin, span.end - span.begin), scratch.bpe, out);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string out;
  Decoder::Stream stream(impl_->decoder);
  std::string_view text;
  for (int32_t id : ids)
    if (impl_->token_text(id, text) && !(skip_special_tokens && impl_->is_special(id)))
      stream.push(text, out);
  stream.finish(out);
  return out;
}

bool Tokenizer::Impl::token_text(int32_t id, std::string_view &text) const {
  if (auto it = added_by_id.find(id); it != added_by_id.end()) {
    text = it->second.text;
    return true;
  }
  text = model.vocab().text(id);
  return model.vocab().contains(id);
}

bool Tokenizer::Impl::is_special(int32_t id) const {
  auto it = added_by_id.find(id);
  return it != added_by_id.end() && it->second.special;
}

size_t Tokenizer::vocab_size() const {
  return impl_->id_limit;
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  if (auto it = impl_->added_by_content.find(std::string(token)); it != impl_->added_by_content.end())
    return it->second;
  return impl_->model.vocab().find(token);
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  std::string_view text;
  if (!impl_->token_text(id, text))
    return std::nullopt;
  return std::string(text);
}

std::string Tokenizer::token_bytes(int32_t id) const {
  std::string_view text;
  return impl_->token_text(id, text) ? impl_->decoder.token_bytes(text) : std::string();
}

bool Tokenizer::is_special(int32_t id) const {
  return impl_->is_special(id);
}

} // namespace llmrt::text
