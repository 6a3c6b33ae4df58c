// Text assets of a HuggingFace folder: the tokenizer as it stands, the chat template from whichever of its
// three places, special tokens, and the union of all end-of-sequence ids.
#include "compiler/import/hf_import.h"

#include "compiler/import/files.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace llmc {
namespace {

constexpr uint64_t kMaxTokenizerBytes = 64u << 20;
constexpr uint64_t kMaxTemplateBytes = 1u << 20;

// A special token is a string, or an object with "content".
std::string tokenText(const Json &config, const char *key) {
  auto value = config.get(key);
  if (!value)
    return "";
  if (value->isString())
    return value->asString();
  if (value->isObject())
    if (auto content = value->get("content"))
      return content->asString();
  value->fail("expected a token as a string or as an object with \"content\", found " + value->text());
}

// The tokens that a tokenizer_config.json or special_tokens_map.json adds to a tokenizer, as far as `to`
// lacks them.
void collectAddedTokens(const Json &config, std::vector<std::string> &to) {
  auto add = [&](const Json &token) {
    std::optional<Json> content = token.isObject() ? token.get("content") : std::optional<Json>(token);
    if (content && content->isString() && !content->asString().empty() &&
        std::find(to.begin(), to.end(), content->asString()) == to.end())
      to.push_back(content->asString());
  };
  for (const char *key : {"added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"})
    if (auto tokens = config.get(key); tokens && (tokens->isArray() || tokens->isObject()))
      for (size_t i = 0; i < tokens->size(); ++i)
        add(tokens->at(i));
}

// chat_template is a string, or a list of {name, template}: the one named "default", else the first.
std::string chatTemplate(const Json &config, ModelSpec &model) {
  auto value = config.get("chat_template");
  if (!value)
    return "";
  if (value->isString())
    return value->asString();
  if (value->isArray()) {
    std::string first;
    std::vector<std::string> names;
    for (size_t i = 0; i < value->size(); ++i) {
      auto name = value->at(i).get("name"), source = value->at(i).get("template");
      if (!name || !source)
        value->at(i).fail("a named chat template needs \"name\" and \"template\"");
      if (name->asString() == "default")
        return source->asString();
      names.push_back(quote(name->asString()));
      if (first.empty())
        first = source->asString();
    }
    if (!names.empty())
      model.warnings.push_back(value->where() + ": no template named \"default\" among " + listText(names) +
                               "; taking the first");
    return first;
  }
  value->fail("expected a template or a list of named ones, found " + value->text());
}

// Finds the id of each wanted token in tokenizer.json: in added_tokens, else in model.vocab (an object of
// token -> id). Added tokens have the vocabulary's ids, else the next ones after it, as the `tokenizers`
// package and llmrt give them, whatever the entries say.
class TokenizerIndex {
public:
  TokenizerIndex(const std::string &text, const std::string &name) {
    // simdjson reads past the end of its input by up to SIMDJSON_PADDING bytes: padded_string has them.
    padded_ = simdjson::padded_string(text);
    if (auto error = parser_.parse(padded_).get(root_))
      throw Error(name + ": not valid JSON: " + simdjson::error_message(error));
    simdjson::dom::object object;
    if (root_.get(object))
      throw Error(name + ": expected an object at the top, as the tokenizers package writes it");
    if (root_["model"].error())
      throw Error(name + ": no \"model\", so this is not a tokenizer.json of the tokenizers package");
    simdjson::dom::object vocab;
    if (!root_["model"]["vocab"].get(vocab))
      number(vocab);
  }

  std::optional<int64_t> idOf(std::string_view token) const {
    if (auto it = added_.find(token); it != added_.end())
      return it->second;
    return inVocabulary(token);
  }

  // How many added tokens have another id than their entry says, and the first of them in words.
  size_t renumbered() const { return renumbered_; }
  const std::string &firstRenumbered() const { return firstRenumbered_; }

  // The largest id that the tokenizer can give, -1 when it has none.
  int64_t largestId() const {
    int64_t largest = -1;
    for (const auto *ids : {&added_, &ids_})
      for (const auto &entry : *ids)
        largest = std::max(largest, entry.second);
    return largest;
  }

private:
  std::optional<int64_t> inVocabulary(std::string_view token) const {
    auto it = ids_.find(token);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }

  void number(const simdjson::dom::object &vocab) {
    int64_t id;
    for (const auto &entry : vocab)
      if (!entry.value.get(id))
        ids_[entry.key] = id;
    auto next = static_cast<int64_t>(ids_.size());
    simdjson::dom::array added;
    if (root_["added_tokens"].get(added))
      return;
    for (simdjson::dom::element item : added) {
      std::string_view content;
      if (item["content"].get(content) || content.empty() || added_.count(content))
        continue;
      std::optional<int64_t> known = inVocabulary(content);
      const int64_t given = known ? *known : next++;
      added_[content] = given;
      if (!item["id"].get(id) && id != given && renumbered_++ == 0)
        firstRenumbered_ =
            quote(std::string(content)) + " has " + std::to_string(given) + ", not " + std::to_string(id);
    }
  }

  simdjson::padded_string padded_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
  std::unordered_map<std::string_view, int64_t> ids_, added_;
  size_t renumbered_ = 0;
  std::string firstRenumbered_;
};

std::unique_ptr<JsonFile> openJson(const std::string &folder, const char *name) {
  const std::string path = folder + "/" + name;
  if (!fileExists(path))
    return nullptr;
  JsonLimits limits;
  limits.bytes = 64u << 20;
  return std::make_unique<JsonFile>(readTextFile(path, limits.bytes), path, limits);
}

void readGeneration(const Json &config, ModelSpec &model) {
  config.expectObject();
  addEosIds(tokenIds(config, "eos_token_id"), model.text);
  for (auto [key, to] :
       {std::pair{"bos_token_id", &model.text.bosTokenId}, {"pad_token_id", &model.text.padTokenId}})
    if (std::vector<int64_t> ids = tokenIds(config, key); !ids.empty() && !*to)
      *to = static_cast<int32_t>(ids.front());
  // The ranges are those that requests have: what lies outside would fail each of them.
  GenerationDefaults &defaults = model.text.generation;
  auto read = [&](const char *key, const char *range, auto allowed, std::optional<double> &to) {
    auto value = config.get(key);
    if (!value)
      return;
    const double number = value->asDouble();
    if (!std::isfinite(number) || !allowed(number))
      value->fail(std::string("must be ") + range + ", found " + value->text() + "; correct it, or take the key out");
    to = number;
  };
  read("temperature", "at least 0", [](double n) { return n >= 0 && n <= 1e6; }, defaults.temperature);
  read("repetition_penalty", "above 0", [](double n) { return n > 0 && n <= 1e6; }, defaults.repetitionPenalty);
  auto sample = config.get("do_sample");
  if (sample && !sample->asBool()) { // greedy by declaration: the sampling numbers beside it are not in use
    defaults.temperature = 0.0;
    return;
  }
  read("top_p", "above 0 and at most 1", [](double n) { return n > 0 && n <= 1; }, defaults.topP);
  read("min_p", "from 0 to 1", [](double n) { return n >= 0 && n <= 1; }, defaults.minP);
  if (auto value = config.get("top_k")) {
    if (value->asInt() < -1)
      value->fail("must be -1, 0 or positive, found " + value->text());
    defaults.topK = value->asInt();
  }
}

} // namespace

std::vector<int64_t> tokenIds(const Json &config, const char *key) {
  std::vector<int64_t> out;
  auto value = config.get(key);
  if (!value)
    return out;
  auto add = [&](const Json &item) {
    int64_t id = item.asInt();
    if (id < -1 || id > INT32_MAX)
      item.fail("a token id must lie between 0 and 2147483647, or be -1 for none, found " + item.text());
    if (id >= 0) // the first Llama's pad_token_id is -1
      out.push_back(id);
  };
  if (!value->isArray()) {
    add(*value);
    return out;
  }
  for (size_t i = 0; i < value->size(); ++i)
    add(value->at(i));
  return out;
}

void addEosIds(const std::vector<int64_t> &ids, TextAssets &text) {
  for (int64_t id : ids)
    if (std::find(text.eosTokenIds.begin(), text.eosTokenIds.end(), id) == text.eosTokenIds.end())
      text.eosTokenIds.push_back(static_cast<int32_t>(id));
}

void readHfText(const std::string &folder, ModelSpec &model) {
  if (auto file = openJson(folder, "generation_config.json"))
    readGeneration(file->root(), model);

  std::vector<std::string> added;
  for (const char *name : {"tokenizer_config.json", "special_tokens_map.json"})
    if (auto file = openJson(folder, name)) {
      Json config = file->root();
      config.expectObject();
      collectAddedTokens(config, added);
      if (model.text.bosToken.empty())
        model.text.bosToken = tokenText(config, "bos_token");
      if (model.text.eosToken.empty())
        model.text.eosToken = tokenText(config, "eos_token");
      if (model.text.chatTemplate.empty())
        model.text.chatTemplate = chatTemplate(config, model);
    }
  // transformers prefers the file of its own over the key.
  if (std::string path = folder + "/chat_template.jinja"; fileExists(path))
    model.text.chatTemplate = readTextFile(path, kMaxTemplateBytes);
  else if (model.text.chatTemplate.empty())
    if (auto file = openJson(folder, "chat_template.json")) // processors of multimodal models
      model.text.chatTemplate = chatTemplate(file->root(), model);

  const std::string path = folder + "/tokenizer.json";
  if (!fileExists(path)) {
    bool sentencePiece = fileExists(folder + "/tokenizer.model");
    model.warnings.push_back(folder + ": no tokenizer.json" +
                             (sentencePiece ? " (there is a tokenizer.model: convert it with transformers' "
                                              "AutoTokenizer and save_pretrained)"
                                            : "") +
                             "; the server will accept and return token ids only");
    return;
  }
  model.text.tokenizerJson = readTextFile(path, kMaxTokenizerBytes);
  TokenizerIndex index(model.text.tokenizerJson, path);
  if (index.renumbered() > 0)
    model.warnings.push_back(
        path + ": " + std::to_string(index.renumbered()) +
        " added tokens have other ids than their entries say, since the tokenizers package counts on "
        "from the vocabulary's size: " +
        index.firstRenumbered());
  std::erase_if(added, [&](const std::string &token) { return index.idOf(token).has_value(); });
  if (!added.empty()) {
    std::vector<std::string> quoted;
    for (const std::string &token : added)
      quoted.push_back(quote(token));
    model.warnings.push_back(
        path + " lacks " + std::to_string(added.size()) + " token(s) that tokenizer_config.json adds (" +
        listText(quoted, 3) +
        "), so they are ordinary text here; transformers adds them as it loads: save the tokenizer "
        "again with AutoTokenizer's save_pretrained");
  }
  if (!model.text.eosToken.empty()) {
    if (std::optional<int64_t> id = index.idOf(model.text.eosToken); id && *id >= 0 && *id <= INT32_MAX)
      addEosIds({*id}, model.text);
    else
      model.warnings.push_back(path + ": the eos_token " + quote(model.text.eosToken) +
                               " is not in the vocabulary");
  }
  if (!model.text.bosToken.empty() && !model.text.bosTokenId)
    if (std::optional<int64_t> id = index.idOf(model.text.bosToken); id && *id >= 0 && *id <= INT32_MAX)
      model.text.bosTokenId = static_cast<int32_t>(*id);
  if (int64_t largest = index.largestId(); largest >= model.vocab)
    model.warnings.push_back(path + ": ids up to " + std::to_string(largest) + ", the embedding has " +
                             std::to_string(model.vocab) +
                             " rows; text with the tokens above cannot be served");
  if (model.text.eosTokenIds.empty())
    model.warnings.push_back(
        folder + ": no end-of-sequence token is named anywhere; generation stops at its limits only");
}

} // namespace llmc
