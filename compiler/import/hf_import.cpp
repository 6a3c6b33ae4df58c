// A HuggingFace folder -> ModelSpec: config first, then weights (or dummies), then text.
#include "compiler/import/hf_import.h"

#include "compiler/import/architecture.h"
#include "compiler/import/files.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <filesystem>

namespace llmc {

ModelSpec importHfFolder(const std::string &folder, LoadFormat format) {
  const std::string path = folder + "/config.json";
  if (!fileExists(path))
    throw Error(folder + " holds no config.json" +
                (format == LoadFormat::Dummy ? ", which --load-format dummy needs"
                                             : " and no .gguf file; name a model folder or file with --model"));
  JsonLimits limits;
  limits.bytes = 4u << 20;
  const std::string text = readTextFile(path, limits.bytes);
  JsonFile config(text, path, limits);

  ModelSpec model;
  model.name = baseName(folder);
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
                               " lies outside the vocabulary of " + std::to_string(model.vocab) + " and is ignored");
    return outside;
  });
  return model;
}

} // namespace llmc
