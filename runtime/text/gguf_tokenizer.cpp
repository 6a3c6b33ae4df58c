// Assembles a tokenizer.json from GGUF metadata: the vocabulary and merges as they are (or merges derived
// from SentencePiece scores), and the configuration that the named model family has on HuggingFace.
#include "runtime/text/gguf_tokenizer.h"

#include "runtime/support/error.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

namespace llmrt::text {
namespace {

using nlohmann::json;

enum TokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

constexpr std::string_view kMarker = "\xE2\x96\x81"; // "▁"
constexpr size_t kMaxDerivedToken = 1024;            // bytes; bounds the search for merges
constexpr const char *kTiktokenHead = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
constexpr const char *kTiktokenTail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

[[noreturn]] void fail(const std::string &problem) {
  throw Error("GGUF tokenizer: " + problem);
}

// For messages: whatever bytes the file holds.
std::string shown(const std::string &text) {
  return json(text.substr(0, 100)).dump(-1, ' ', false, json::error_handler_t::replace);
}

json split(const std::string &regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}
json byte_level(bool prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// What a value of "tokenizer.ggml.pre" stands for.
struct Family {
  json steps;              // before ByteLevel
  bool gpt2_regex = false; // ByteLevel splits by its own expression
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

struct NamedFamily {
  const char *pre;
  Family (*make)();
};

Family gpt2() {
  return {json::array(), true};
}
Family smollm() {
  return {json::array({{{"type", "Digits"}, {"individual_digits", true}}}), true};
}
Family llama3() {
  return {json::array({split(std::string(kTiktokenHead) + R"(\p{N}{1,3})" + kTiktokenTail)}), false, false,
          true, true};
}
// Llama 3's expression without its rule for whole words (Smaug), and with lines apart from punctuation
// (Seed-Coder).
Family smaug() {
  Family f = llama3();
  f.ignore_merges = f.add_bos = false;
  return f;
}
Family seed_coder() {
  return {json::array(
      {split(std::string(kTiktokenHead) + R"(\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)")})};
}
// Mistral Nemo, Ministral, Mistral Small 3, Devstral.
Family tekken() {
  constexpr const char *kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])",
                       *kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const std::string before = R"([^\r\n\p{L}\p{N}]?)";
  return {json::array({split(before + kUpper + "*" + kLower + "+|" + before + kUpper + "+" + kLower +
                             R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)")}),
          false, false, true, true};
}
Family deepseek_coder() {
  return {json::array({split("[\r\n]"),
                       split(R"(\s?\p{L}+)"),
                       split(R"(\s?\p{P}+)"),
                       split(R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)"),
                       {{"type", "Digits"}, {"individual_digits", true}}})};
}
Family deepseek_qwen() {
  return {json::array({split(std::string(kTiktokenHead) + R"(\p{N})" + kTiktokenTail)})};
}
Family qwen2() {
  Family f = deepseek_qwen();
  f.nfc = true;
  return f;
}
// llama.cpp's fallback for models that name no pre-tokeniser.
Family unnamed() {
  return {json::array({split(R"([\p{P}\$\+<=>\^~\|]+)"),
                       split(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"),
                       split(R"(\p{N}+)"), split("[0-9][0-9][0-9]")})};
}

constexpr NamedFamily kFamilies[] = {
    {"default", unnamed},
    {"a.x-4.0", gpt2},
    {"deepseek-coder", deepseek_coder},
    {"deepseek-r1-qwen", deepseek_qwen},
    {"gpt-2", gpt2},
    {"llama-bpe", llama3},
    {"llama3", llama3},
    {"llama-v3", llama3},
    {"mellum", gpt2},
    {"minerva-7b", smollm},
    {"phi-2", gpt2},
    {"qwen2", qwen2},
    {"refact", smollm},
    {"seed-coder", seed_coder},
    {"smaug-bpe", smaug},
    {"smollm", smollm},
    {"starcoder", smollm},
    {"tekken", tekken},
    {"trillion", gpt2},
};

Family family_of(const std::string &pre) {
  std::string known;
  for (const NamedFamily &f : kFamilies) {
    if (pre == f.pre || (pre.empty() && f.make == unnamed))
      return f.make();
    known += (known.empty() ? "" : ", ") + std::string(f.pre);
  }
  fail("the pre-tokeniser " + shown(pre) + " (tokenizer.ggml.pre) is not supported; supported are " + known +
       ".");
}

std::string quoted(const std::string &text, const char *what, size_t index) {
  try {
    return json(text).dump();
  } catch (const json::type_error &) {
    fail(std::string(what) + " " + std::to_string(index) + " is not valid UTF-8.");
  }
}

using Index = std::unordered_map<std::string_view, int32_t>;

Index index_tokens(const GgufTokenizer &g) {
  Index index;
  index.reserve(g.tokens.size() * 2);
  for (size_t id = 0; id < g.tokens.size(); ++id) {
    auto [it, fresh] = index.emplace(g.tokens[id], static_cast<int32_t>(id));
    if (!fresh)
      fail("tokens " + std::to_string(it->second) + " and " + std::to_string(id) + " are both " +
           shown(g.tokens[id]) + "; every token must be unique.");
  }
  return index;
}

struct DerivedMerge {
  float score;
  uint32_t left_chars, right_chars;
  int32_t left, right;
};

// Every way to build a token from two others, best score first; as transformers does for SentencePiece
// models without merges. Tokens that text must never produce (control, unknown, byte) take no part.
std::vector<DerivedMerge> derive_merges(const GgufTokenizer &g, const Index &index) {
  if (g.scores.size() != g.tokens.size())
    fail("there are no merges, and " + std::to_string(g.scores.size()) + " scores for " +
         std::to_string(g.tokens.size()) + " tokens; merges can be derived only from one score per token.");
  auto type = [&](int32_t id) {
    return g.token_types.empty() ? int{kNormal} : g.token_types[static_cast<size_t>(id)];
  };
  auto mergeable = [&](int32_t id) {
    return type(id) != kUnknown && type(id) != kControl && type(id) != kByte;
  };
  std::vector<DerivedMerge> merges;
  for (size_t id = 0; id < g.tokens.size(); ++id) {
    std::string_view token = g.tokens[id];
    if (!mergeable(static_cast<int32_t>(id)))
      continue;
    if (token.size() > kMaxDerivedToken)
      fail("token " + std::to_string(id) + " has " + std::to_string(token.size()) +
           " bytes; without merges at most " + std::to_string(kMaxDerivedToken) + " are supported.");
    auto is_border = [&](size_t i) { return (static_cast<unsigned char>(token[i]) & 0xC0) != 0x80; };
    auto chars = static_cast<uint32_t>(std::count_if(
        token.begin(), token.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
    size_t first = merges.size();
    uint32_t left_chars = 1;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      if (!is_border(cut))
        continue;
      uint32_t n = left_chars++;
      auto left = index.find(token.substr(0, cut));
      if (left == index.end() || !mergeable(left->second))
        continue;
      auto right = index.find(token.substr(cut));
      if (right == index.end() || !mergeable(right->second))
        continue;
      merges.push_back({g.scores[id], n, chars - n, left->second, right->second});
    }
    std::sort(
        merges.begin() + static_cast<std::ptrdiff_t>(first), merges.end(),
        [](const auto &a, const auto &b) { return a.left != b.left ? a.left < b.left : a.right < b.right; });
  }
  std::stable_sort(merges.begin(), merges.end(), [](const auto &a, const auto &b) {
    if (a.score != b.score)
      return a.score > b.score;
    return a.left_chars != b.left_chars ? a.left_chars > b.left_chars : a.right_chars > b.right_chars;
  });
  return merges;
}

std::string merges_text(const GgufTokenizer &g, const Index &index) {
  std::string out = "[";
  auto pair = [&](const std::string &left, const std::string &right, size_t i) {
    out += i == 0 ? "[" : ",[";
    out += quoted(left, "merge", i);
    out += ',';
    out += quoted(right, "merge", i);
    out += ']';
  };
  if (g.merges.empty() && g.model == "llama") {
    auto merges = derive_merges(g, index);
    for (size_t i = 0; i < merges.size(); ++i)
      pair(g.tokens[static_cast<size_t>(merges[i].left)], g.tokens[static_cast<size_t>(merges[i].right)], i);
  }
  for (size_t i = 0; i < g.merges.size(); ++i) {
    const std::string &merge = g.merges[i];
    size_t space = merge.find(' ', 1); // a token is never empty, so a leading space belongs to it
    if (space == std::string::npos || space + 1 == merge.size())
      fail("merge " + std::to_string(i) + " (" + shown(merge) +
           ") does not hold two tokens with a space between them.");
    std::string left = merge.substr(0, space), right = merge.substr(space + 1);
    for (const std::string &part : {left, right, left + right})
      if (!index.contains(part))
        fail("merge " + std::to_string(i) + " uses the token " + shown(part) + ", which is not among the " +
             std::to_string(g.tokens.size()) + " tokens.");
    pair(left, right, i);
  }
  return out + "]";
}

std::string vocab_text(const GgufTokenizer &g) {
  std::string out = "{";
  for (size_t id = 0; id < g.tokens.size(); ++id) {
    if (id)
      out += ',';
    out += quoted(g.tokens[id], "token", id);
    out += ':';
    out += std::to_string(id);
  }
  return out + "}";
}

json added_tokens(const GgufTokenizer &g) {
  json out = json::array();
  for (size_t id = 0; id < g.token_types.size(); ++id) {
    int32_t type = g.token_types[id];
    if (g.tokens[id].empty() || (type != kControl && type != kUnknown && type != kUserDefined))
      continue;
    out.push_back({{"id", id},
                   {"content", g.tokens[id]},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", type != kUserDefined}});
  }
  return out;
}

json frame(const GgufTokenizer &g, bool add_bos, bool add_eos) {
  json single = json::array(), specials = json::object();
  auto special = [&](int32_t id) {
    const std::string &token = g.tokens[static_cast<size_t>(id)];
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    specials[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  if (add_bos) {
    if (!g.bos_id)
      fail("a BOS token is to be added, but tokenizer.ggml.bos_token_id is missing.");
    special(*g.bos_id);
  }
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (add_eos) {
    if (!g.eos_id)
      fail("an EOS token is to be added, but tokenizer.ggml.eos_token_id is missing.");
    special(*g.eos_id);
  }
  if (!add_bos && !add_eos)
    return nullptr;
  json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
}

void check(const GgufTokenizer &g) {
  if (g.model != "gpt2" && g.model != "llama")
    fail("the model " + shown(g.model) +
         " (tokenizer.ggml.model) is not supported; supported are gpt2 (byte-level BPE) "
         "and llama (SentencePiece BPE).");
  if (g.tokens.empty())
    fail("tokenizer.ggml.tokens is empty.");
  if (g.tokens.size() > (size_t{1} << 22))
    fail("there are " + std::to_string(g.tokens.size()) + " tokens, more than the limit of " +
         std::to_string(size_t{1} << 22) + ".");
  if (!g.token_types.empty() && g.token_types.size() != g.tokens.size())
    fail("there are " + std::to_string(g.token_types.size()) + " token types for " +
         std::to_string(g.tokens.size()) + " tokens; the numbers must be equal.");
  for (auto [name, id] :
       {std::pair{"bos", g.bos_id}, {"eos", g.eos_id}, {"unknown", g.unk_id}, {"padding", g.pad_id}})
    if (id && (*id < 0 || static_cast<size_t>(*id) >= g.tokens.size()))
      fail(std::string("the ") + name + " token id is " + std::to_string(*id) + ", but ids run from 0 to " +
           std::to_string(g.tokens.size() - 1) + ".");
  if (g.model == "gpt2" && g.merges.empty() && g.tokens.size() > 512)
    fail("tokenizer.ggml.merges is empty, although the model is gpt2.");
}

} // namespace

std::vector<std::string> supported_gguf_pre_tokenizers() {
  std::vector<std::string> out;
  for (const NamedFamily &f : kFamilies)
    out.emplace_back(f.pre);
  return out;
}

std::string gguf_to_tokenizer_json(const GgufTokenizer &g) {
  check(g);
  std::string vocab = vocab_text(g); // first, since it checks that every token is UTF-8
  Index index = index_tokens(g);
  json doc{{"version", "1.0"},      {"truncation", nullptr},
           {"padding", nullptr},    {"added_tokens", added_tokens(g)},
           {"normalizer", nullptr}, {"pre_tokenizer", nullptr}};
  json model{{"type", "BPE"},
             {"dropout", nullptr},
             {"unk_token", nullptr},
             {"fuse_unk", false},
             {"byte_fallback", false},
             {"ignore_merges", false},
             {"end_of_word_suffix", nullptr},
             {"continuing_subword_prefix", nullptr}};
  if (g.model == "gpt2") {
    Family family = family_of(g.pre);
    json steps = family.steps;
    steps.push_back(byte_level(g.add_space_prefix.value_or(false), family.gpt2_regex));
    doc["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    if (family.nfc)
      doc["normalizer"] = {{"type", "NFC"}};
    model["ignore_merges"] = family.ignore_merges;
    doc["post_processor"] = frame(g, g.add_bos.value_or(family.add_bos), g.add_eos.value_or(false));
    doc["decoder"] = byte_level(true, true);
  } else {
    bool prefix = g.add_space_prefix.value_or(true);
    json replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMarker}};
    json decoders = json::array({{{"type", "Replace"}, {"pattern", {{"String", kMarker}}}, {"content", " "}},
                                 {{"type", "ByteFallback"}},
                                 {{"type", "Fuse"}}});
    if (prefix)
      decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    json prepend{{"type", "Prepend"}, {"prepend", kMarker}};
    doc["normalizer"] = {{"type", "Sequence"},
                         {"normalizers", prefix ? json::array({prepend, replace}) : json::array({replace})}};
    doc["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
    doc["post_processor"] = frame(g, g.add_bos.value_or(true), g.add_eos.value_or(false));
    if (g.unk_id)
      model["unk_token"] = g.tokens[static_cast<size_t>(*g.unk_id)];
    model["fuse_unk"] = true;
    model["byte_fallback"] = index.contains("<0x00>");
  }
  // Vocabulary and merges are megabytes: they are written as text rather than as a tree.
  std::string head = doc.dump(), tail = model.dump();
  head.pop_back();
  tail.pop_back();
  return head + ",\"model\":" + tail + ",\"vocab\":" + vocab + ",\"merges\":" + merges_text(g, index) + "}}";
}

} // namespace llmrt::text
