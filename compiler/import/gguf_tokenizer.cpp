// Reads tokenizer.ggml.*; see gguf_tokenizer.h.
#include "compiler/import/gguf_tokenizer.h"

#include "compiler/import/words.h"
#include "compiler/support/error.h"

namespace llmc {
namespace {

constexpr int64_t kControl = 3; // token_type of special tokens

const std::vector<std::string> *stringList(const GgufHeader &header, const char *key) {
  const GgufValue *value = header.find(key);
  if (!value)
    return nullptr;
  if (value->kind != GgufValue::Kind::Strings)
    throw Error(header.name + ": the key " + quote(key) + " should hold a list of strings");
  return &value->strings;
}

} // namespace

GgufTokenizerText readGgufTokenizer(const GgufHeader &header, std::vector<std::string> &warnings) {
  GgufTokenizerText out;
  const std::vector<std::string> *tokens = stringList(header, "tokenizer.ggml.tokens");
  auto id = [&](const char *key) -> std::optional<int64_t> {
    auto value = header.integer(key);
    // Files write -1, or the same bits as uint32, for "none".
    return value && *value >= 0 && *value <= INT32_MAX ? value : std::nullopt;
  };
  auto tokenOf = [&](std::optional<int64_t> number) {
    return number && tokens && static_cast<uint64_t>(*number) < tokens->size()
               ? (*tokens)[static_cast<size_t>(*number)]
               : std::string();
  };
  auto bos = id("tokenizer.ggml.bos_token_id"), pad = id("tokenizer.ggml.padding_token_id");
  if (bos)
    out.bosTokenId = static_cast<int32_t>(*bos);
  if (pad)
    out.padTokenId = static_cast<int32_t>(*pad);
  out.bosToken = tokenOf(bos);
  out.eosToken = tokenOf(id("tokenizer.ggml.eos_token_id"));
  for (const char *key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (auto number = id(key))
      out.endIds.push_back(*number);

  // Older chat files name only the end of text; their turns end with a control token of one of these names.
  const GgufValue *types = header.find("tokenizer.ggml.token_type");
  if (tokens && types && types->kind == GgufValue::Kind::Ints && !header.find("tokenizer.ggml.eot_token_id"))
    for (size_t i = 0; i < tokens->size() && i < types->ints.size(); ++i)
      if (types->ints[i] == kControl && ((*tokens)[i] == "<|eot_id|>" || (*tokens)[i] == "<|im_end|>"))
        out.endIds.push_back(static_cast<int64_t>(i));

  if (!tokens)
    warnings.push_back(header.name + ": no tokenizer in the file; the server will accept and return token ids only");
  return out;
}

} // namespace llmc
