// Reads tokenizer.ggml.*; see gguf_tokenizer.h.
#include "compiler/import/gguf_tokenizer.h"

#include "compiler/import/words.h"
#include "compiler/support/error.h"
#include "runtime/support/error.h"
#include "runtime/text/gguf_tokenizer.h"

namespace llmc {
namespace {

constexpr int64_t kControl = 3; // token_type of special tokens

const GgufValue *list(const GgufHeader &header, const char *key, GgufValue::Kind kind, const char *what) {
  const GgufValue *value = header.find(key);
  if (value && value->kind != kind)
    throw Error(header.name + ": the key " + quote(key) + " should hold a list of " + what);
  return value;
}

// The vocabulary as the runtime's converter takes it.
std::string tokenizerJson(const GgufHeader &header, const std::vector<std::string> &tokens) {
  llmrt::text::GgufTokenizer gguf;
  gguf.model = header.string("tokenizer.ggml.model").value_or("");
  gguf.pre = header.string("tokenizer.ggml.pre").value_or(gguf.pre);
  gguf.tokens = tokens;
  if (const GgufValue *types = list(header, "tokenizer.ggml.token_type", GgufValue::Kind::Ints, "integers"))
    for (int64_t type : types->ints)
      gguf.token_types.push_back(type >= 0 && type <= 1000 ? static_cast<int32_t>(type) : -1);
  if (const GgufValue *scores = list(header, "tokenizer.ggml.scores", GgufValue::Kind::Floats, "numbers"))
    gguf.scores = scores->floats;
  if (const GgufValue *merges = list(header, "tokenizer.ggml.merges", GgufValue::Kind::Strings, "strings"))
    gguf.merges = merges->strings;
  auto id = [&](const char *key) -> std::optional<int32_t> {
    auto value = header.integer(key);
    return value && *value >= 0 && *value <= INT32_MAX ? std::optional(static_cast<int32_t>(*value))
                                                       : std::nullopt;
  };
  gguf.bos_id = id("tokenizer.ggml.bos_token_id");
  gguf.eos_id = id("tokenizer.ggml.eos_token_id");
  gguf.unk_id = id("tokenizer.ggml.unknown_token_id");
  gguf.pad_id = id("tokenizer.ggml.padding_token_id");
  gguf.add_bos = header.boolean("tokenizer.ggml.add_bos_token");
  gguf.add_eos = header.boolean("tokenizer.ggml.add_eos_token");
  gguf.add_space_prefix = header.boolean("tokenizer.ggml.add_space_prefix");
  try {
    return llmrt::text::gguf_to_tokenizer_json(gguf);
  } catch (const llmrt::Error &error) {
    throw Error(header.name + ": tokenizer: " + error.what());
  }
}

} // namespace

GgufTokenizerText readGgufTokenizer(const GgufHeader &header, std::vector<std::string> &warnings) {
  GgufTokenizerText out;
  const GgufValue *vocabulary = list(header, "tokenizer.ggml.tokens", GgufValue::Kind::Strings, "strings");
  const std::vector<std::string> *tokens = vocabulary ? &vocabulary->strings : nullptr;
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
  for (const char *key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (auto number = id(key))
      out.endIds.push_back(*number);

  // Older chat files name only the end of text; their turns end with a control token of one of these names.
  const GgufValue *types = header.find("tokenizer.ggml.token_type");
  if (tokens && types && types->kind == GgufValue::Kind::Ints && !header.find("tokenizer.ggml.eot_token_id"))
    for (size_t i = 0; i < tokens->size() && i < types->ints.size(); ++i)
      if (types->ints[i] == kControl && ((*tokens)[i] == "<|eot_id|>" || (*tokens)[i] == "<|im_end|>"))
        out.endIds.push_back(static_cast<int64_t>(i));

  if (tokens && !tokens->empty()) {
    out.tokens = tokens->size();
    out.json = tokenizerJson(header, *tokens);
  } else {
    warnings.push_back(header.name +
                       ": no tokenizer in the file; the server will accept and return token ids only");
  }
  return out;
}

} // namespace llmc
