// Finds the safetensors files of a folder, reads their headers, and matches what they hold against what the
// architecture needs: every missing or wrongly shaped tensor is an error, every extra one a warning.
#include "compiler/import/hf_import.h"

#include "compiler/import/architecture.h"
#include "compiler/import/files.h"
#include "compiler/import/safetensors.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

namespace llmc {
namespace {

namespace fs = std::filesystem;
constexpr const char *kIndexName = "model.safetensors.index.json";

struct Found {
  int32_t file;
  SafetensorsEntry entry;
};
using FoundMap = std::unordered_map<std::string, Found>; // by canonical name

// Wrappers around a text model prefix its tensors: language_model.model.…, model.language_model.…
std::string canonicalName(const std::string &name) {
  for (auto [prefix, replacement] : {std::pair{"model.language_model.", "model."},
                                     {"language_model.", ""},
                                     {"model.text_model.", "model."}})
    if (name.compare(0, std::string_view(prefix).size(), prefix) == 0)
      return replacement + name.substr(std::string_view(prefix).size());
  return name;
}

std::vector<std::string> filesEndingIn(const std::string &folder, std::string_view suffix) {
  std::vector<std::string> out;
  for (const auto &entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.size() > suffix.size() &&
        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0 && fileExists(entry.path().string()))
      out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Mistral's own layout beside the HuggingFace one holds the same weights under other names.
std::vector<std::string> looseFiles(const std::string &folder) {
  std::vector<std::string> out = filesEndingIn(folder, ".safetensors");
  std::erase_if(out, [](const std::string &name) { return name.compare(0, 12, "consolidated") == 0; });
  return out;
}

struct Index {
  std::vector<std::string> shards;                      // sorted
  std::unordered_map<std::string, std::string> shardOf; // tensor in the file's spelling -> shard
};

Index readIndex(const std::string &folder) {
  JsonLimits limits;
  limits.bytes = 64u << 20;
  limits.nodes = 1u << 20;
  const std::string path = folder + "/" + kIndexName;
  JsonFile file(readTextFile(path, limits.bytes), path, limits);
  auto map = file.root().get("weight_map");
  if (!map)
    file.root().fail("no \"weight_map\"");
  map->expectObject();
  Index out;
  std::map<std::string, std::vector<std::string>> tensorsOf;
  for (size_t i = 0; i < map->size(); ++i) {
    Json item = map->at(i);
    const std::string &shard = item.asString();
    if (shard.empty() || shard.find('/') != std::string::npos || shard.find('\0') != std::string::npos)
      item.fail("a shard must be a file name in the same folder, found " + quote(shard));
    out.shardOf.emplace(item.key(), shard);
    tensorsOf[shard].push_back(item.key());
  }
  for (const auto &[shard, tensors] : tensorsOf) {
    if (!fileExists(folder + "/" + shard))
      throw Error(path + " names the shard " + quote(shard) + ", which is not in " + folder + " (" +
                  std::to_string(tensors.size()) + " tensors are in it, " + quote(tensors.front()) +
                  " for one); download the missing file");
    out.shards.push_back(shard);
  }
  if (out.shards.empty())
    map->fail("the index names no tensor");
  return out;
}

[[noreturn]] void noWeights(const std::string &folder) {
  const char *remedy = "; --load-format dummy compiles without weights";
  for (const char *suffix : {".bin", ".pth", ".pt"})
    for (const std::string &name : filesEndingIn(folder, suffix))
      if (name.compare(0, 13, "pytorch_model") == 0 || name.compare(0, 12, "consolidated") == 0)
        throw Error(folder + " holds PyTorch pickles only (" + quote(name) +
                    "); these are not read because unpickling runs code: convert them with transformers' "
                    "save_pretrained(safe_serialization=True), or download the .safetensors files");
  if (std::vector<std::string> all = filesEndingIn(folder, ".safetensors"); !all.empty())
    throw Error(
        folder + " holds " + quote(all.front()) +
        " in Mistral's own layout only; download the model-*.safetensors files of the HuggingFace layout");
  throw Error(folder + " holds no model.safetensors, no " + kIndexName + " and no .gguf file" + remedy);
}

FoundMap readHeaders(const std::string &folder, ModelSpec &model) {
  std::vector<std::string> names;
  std::optional<Index> index;
  if (fileExists(folder + "/" + kIndexName)) {
    index = readIndex(folder);
    names = index->shards;
  } else if (fileExists(folder + "/model.safetensors")) {
    names = {"model.safetensors"};
  } else {
    names = looseFiles(folder);
  }
  if (names.empty())
    noWeights(folder);

  FoundMap found;
  for (const std::string &name : names) {
    InputFile file(folder + "/" + name);
    SafetensorsHeader header = readSafetensorsHeader(file);
    const int32_t number = static_cast<int32_t>(model.files.size());
    model.files.push_back({file.path(), file.size(), header.headerHash, header.headerBytes});
    for (SafetensorsEntry &entry : header.tensors) {
      if (index)
        if (auto at = index->shardOf.find(entry.name); at != index->shardOf.end() && at->second != name)
          continue; // a copy: the index points to another shard
      std::string canonical = canonicalName(entry.name);
      auto [at, added] = found.try_emplace(canonical, Found{number, entry});
      if (!added)
        throw Error("tensor " + quote(entry.name) + " is in both " +
                    baseName(model.files[at->second.file].path) + " (as " + quote(at->second.entry.name) +
                    ") and " + name + "; remove one of the files");
    }
  }
  if (index)
    for (const auto &[tensor, shard] : index->shardOf)
      if (!found.count(canonicalName(tensor)))
        throw Error(folder + "/" + kIndexName + " places tensor " + quote(tensor) + " in " + quote(shard) +
                    ", whose header does not hold it; download that shard again");
  return found;
}

DType storedType(const SafetensorsEntry &entry, const std::string &file) {
  if (entry.dtype == "BF16")
    return DType::BF16;
  if (entry.dtype == "F16")
    return DType::F16;
  if (entry.dtype == "F32")
    return DType::F32;
  throw Error(file + ": tensor " + quote(entry.name) + " has dtype " + quote(entry.dtype) +
              "; supported are BF16, F16 and F32" +
              (entry.dtype.compare(0, 2, "F8") == 0 || entry.dtype == "I32" || entry.dtype == "U8" ||
                       entry.dtype == "I8"
                   ? " (is the checkpoint quantised? take the unquantised one, or a GGUF file)"
                   : ""));
}

[[noreturn]] void missing(const ExpectedTensor &expected, const std::string &folder, const ModelSpec &model) {
  if (expected.name == "lm_head.weight")
    throw Error(folder + ": tie_word_embeddings is false, so an output matrix lm_head.weight " +
                shapeText(expected.shape) +
                " is needed, and no file holds one; if the model shares it with the embedding, set "
                "\"tie_word_embeddings\": true in config.json");
  throw Error(folder + ": tensor " + quote(expected.name) + " " + shapeText(expected.shape) +
              " is in none of the " + std::to_string(model.files.size()) +
              " safetensors file(s); is the download complete, and does config.json describe this model?");
}

void warnUnused(const FoundMap &found, ModelSpec &model) {
  std::vector<std::string> names;
  for (const auto &[name, where] : found)
    names.push_back(where.entry.name);
  if (names.empty())
    return;
  std::sort(names.begin(), names.end());
  std::vector<std::string> shown;
  for (const std::string &name : names)
    if (shown.size() < 3)
      shown.push_back(quote(name));
  model.warnings.push_back(std::to_string(names.size()) + " tensor(s) of the files are not used: " +
                           listText(shown) + (names.size() > 3 ? ", ..." : ""));
}

// Do two tensors of one size hold the same? Looks at 64 pieces of each, spread evenly: tables that were trained apart
// differ nearly everywhere.
bool alike(const Found &a, const Found &b, const ModelSpec &model) {
  const uint64_t bytes = a.entry.end - a.entry.begin;
  constexpr uint64_t kPieces = 64, kPiece = 4096;
  InputFile first(model.files[static_cast<size_t>(a.file)].path), second(model.files[static_cast<size_t>(b.file)].path);
  for (uint64_t i = 0; i < kPieces; ++i) {
    const uint64_t length = std::min(kPiece, bytes), at = (bytes - length) / (kPieces - 1) * i;
    if (first.read(a.entry.begin + at, length) != second.read(b.entry.begin + at, length))
      return false;
  }
  return true;
}

// Files of tied models often carry the table twice, which needs no word. Where the two differ, somebody trained them
// apart and left the config as it was.
void checkTied(const FoundMap &found, const std::string &folder, ModelSpec &model) {
  auto table = found.find("model.embed_tokens.weight"), head = found.find("lm_head.weight");
  if (!model.tiedEmbeddings || table == found.end() || head == found.end())
    return;
  const SafetensorsEntry &a = table->second.entry, &b = head->second.entry;
  if (a.shape != b.shape || a.dtype != b.dtype) {
    model.warnings.push_back(folder + ": lm_head.weight (" + b.dtype + " " + shapeText(b.shape) +
                             ") is not used: tie_word_embeddings is true, and the embedding is " + a.dtype + " " +
                             shapeText(a.shape));
  } else if (!alike(table->second, head->second, model)) {
    model.tiedEmbeddings = false;
    model.warnings.push_back(folder + ": tie_word_embeddings is true, but lm_head.weight holds other numbers than the "
                                      "embedding; taking it, as transformers 5 does");
  }
}

} // namespace

bool hasSafetensors(const std::string &folder) {
  return fileExists(folder + "/" + kIndexName) || !filesEndingIn(folder, ".safetensors").empty();
}

void readHfWeights(const std::string &folder, bool dtypeDeclared, ModelSpec &model) {
  FoundMap found = readHeaders(folder, model);
  checkTied(found, folder, model);
  std::map<DType, uint64_t> bytesOf;
  for (const ExpectedTensor &expected : expectedTensors(model)) {
    auto at = found.find(expected.name);
    // A base model saved without its head class has no "model." in front.
    if (at == found.end() && expected.name.compare(0, 6, "model.") == 0)
      at = found.find(expected.name.substr(6));
    if (at == found.end())
      missing(expected, folder, model);
    const SafetensorsEntry &entry = at->second.entry;
    const std::string &path = model.files[static_cast<size_t>(at->second.file)].path;
    if (entry.shape != expected.shape)
      throw Error(path + ": tensor " + quote(entry.name) + " has shape " + shapeText(entry.shape) +
                  ", config.json implies " + shapeText(expected.shape) + "; do they belong together?");
    TensorRef tensor;
    tensor.name = expected.name;
    tensor.fileTensor = entry.name;
    tensor.file = at->second.file;
    tensor.offset = entry.begin;
    tensor.bytes = entry.end - entry.begin;
    tensor.dtype = storedType(entry, path);
    tensor.shape = entry.shape;
    bytesOf[tensor.dtype] += tensor.bytes;
    model.tensors.push_back(std::move(tensor));
    found.erase(at);
  }
  if (model.tiedEmbeddings)
    found.erase("lm_head.weight");
  warnUnused(found, model);

  auto dominant = std::max_element(bytesOf.begin(), bytesOf.end(),
                                   [](const auto &a, const auto &b) { return a.second < b.second; });
  if (!dtypeDeclared)
    model.storedDtype = dominant->first;
  else if (model.storedDtype != dominant->first)
    model.warnings.push_back(folder + ": config.json says " + dtypeName(model.storedDtype) +
                             ", most weights are " + dtypeName(dominant->first));
}

void dummyWeights(ModelSpec &model) {
  for (ExpectedTensor &expected : expectedTensors(model)) {
    TensorRef tensor;
    tensor.name = expected.name;
    tensor.fileTensor = expected.name;
    tensor.dtype = model.storedDtype;
    tensor.bytes = dtypeBytes(tensor.dtype, elementCount(expected.shape));
    tensor.shape = std::move(expected.shape);
    model.tensors.push_back(std::move(tensor));
  }
}

} // namespace llmc
