// A HuggingFace folder -> ModelSpec: config first, then weights (or dummies), then text.
#include "compiler/import/hf_import.h"

#include "compiler/import/architecture.h"
#include "compiler/import/files.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <filesystem>

namespace llmc {

// The folder's name; inside a hub cache (models--ORG--NAME/snapshots/HASH) the repository's instead of the
// hash.
static std::string modelName(const std::string &folder) {
  namespace fs = std::filesystem;
  const fs::path path(folder);
  const std::string repository = path.parent_path().parent_path().filename().string();
  if (path.parent_path().filename() != "snapshots" || repository.compare(0, 8, "models--") != 0)
    return path.filename().string();
  std::string name = repository.substr(8);
  if (size_t dashes = name.find("--"); dashes != std::string::npos)
    name.replace(dashes, 2, "/");
  return name;
}

ModelSpec importHfFolder(const std::string &folder, LoadFormat format) {
  const std::string path = folder + "/config.json";
  if (!fileExists(path) && fileExists(folder + "/adapter_config.json"))
    throw Error(folder + " holds an adapter (adapter_config.json), not a model: merge it into its base model with peft's "
                         "merge_and_unload() and save_pretrained(), and compile that folder");
  if (!fileExists(path))
    throw Error(folder + " holds no config.json" +
                (format == LoadFormat::Dummy
                     ? ", which --load-format dummy needs"
                     : " and no .gguf file; name a model folder or file with --model"));
  JsonLimits limits;
  limits.bytes = 4u << 20;
  const std::string text = readTextFile(path, limits.bytes);
  JsonFile config(text, path, limits);

  ModelSpec model;
  model.name = modelName(folder);
  model.source = format == LoadFormat::Dummy ? "dummy" : "hf";
  model.configHash = hashHex(text);
  const bool dtypeDeclared = readHfConfig(config.root(), model);
  if (format == LoadFormat::Dummy) {
    if (!dtypeDeclared)
      model.storedDtype = DType::BF16;
    dummyWeights(model);
  } else {
    readHfWeights(folder, dtypeDeclared, model);
  }
  readHfText(folder, model);

  std::erase_if(model.text.eosTokenIds, [&](int32_t id) {
    bool outside = id >= model.vocab;
    if (outside)
      model.warnings.push_back(folder + ": the end-of-sequence id " + std::to_string(id) +
                               " lies outside the vocabulary of " + std::to_string(model.vocab) +
                               " and is ignored");
    return outside;
  });
  return model;
}

} // namespace llmc
