// Helpers of the importer tests: a temporary folder, small safetensors and GGUF files, and checks on
// messages.
#pragma once

#include "compiler/import/architecture.h"
#include "compiler/import/import.h"
#include "compiler/support/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace llmc::test {

class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "llmc-import-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string &path() const { return path_; }
  std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
    return path_ + "/" + name;
  }
  std::string write(const std::string &name, const nlohmann::json &content) const {
    return write(name, content.dump(2));
  }

private:
  std::string path_;
};

// Runs `action`, which must throw an Error whose message holds every one of `parts`.
inline void expectError(const std::function<void()> &action, const std::vector<std::string> &parts) {
  try {
    action();
  } catch (const Error &error) {
    for (const std::string &part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "missing: " << part << "\nin: " << error.what();
    return;
  }
  ADD_FAILURE() << "no error; expected one with: " << (parts.empty() ? "" : parts.front());
}

inline bool hasWarning(const ModelSpec &model, const std::string &part) {
  for (const std::string &warning : model.warnings)
    if (warning.find(part) != std::string::npos)
      return true;
  return false;
}

template <class T> void append(std::string &out, T value) {
  out.append(reinterpret_cast<const char *>(&value), sizeof value);
}

// ---- safetensors ------------------------------------------------------------------------------------------

struct Tensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
};

inline uint64_t tensorBytes(const Tensor &tensor) {
  uint64_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "F8_E4M3" ? 1 : 2;
  for (int64_t dim : tensor.shape)
    bytes *= static_cast<uint64_t>(dim);
  return bytes;
}

inline std::string safetensorsFile(const std::string &header, uint64_t dataBytes) {
  std::string out;
  append(out, static_cast<uint64_t>(header.size()));
  return out + header + std::string(dataBytes, '\0');
}

inline std::string safetensors(const std::vector<Tensor> &tensors) {
  nlohmann::json header;
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t at = 0;
  for (const Tensor &tensor : tensors) {
    uint64_t end = at + tensorBytes(tensor);
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  return safetensorsFile(header.dump(), at);
}

// A Llama config of 2 layers that is quick to write to disk, and the tensors that belong to it.
inline nlohmann::json tinyConfig(const std::string &type = "llama") {
  return {{"model_type", type},          {"hidden_size", 16},         {"num_hidden_layers", 2},
          {"num_attention_heads", 4},    {"num_key_value_heads", 2},  {"head_dim", 6},
          {"intermediate_size", 20},     {"vocab_size", 32},          {"max_position_embeddings", 64},
          {"rope_theta", 10000.0},       {"torch_dtype", "bfloat16"}, {"sliding_window", nullptr},
          {"tie_word_embeddings", false}};
}

inline std::vector<Tensor> tensorsOf(const nlohmann::json &config, const std::string &dtype = "BF16") {
  Folder folder;
  folder.write("config.json", config);
  std::vector<Tensor> out;
  for (const TensorRef &tensor : importModel(folder.path(), LoadFormat::Dummy).tensors)
    out.push_back({tensor.name, dtype, tensor.shape});
  return out;
}

inline ModelSpec importConfig(const nlohmann::json &config) {
  Folder folder;
  folder.write("config.json", config);
  return importModel(folder.path(), LoadFormat::Dummy);
}

inline void expectConfigError(const nlohmann::json &config, const std::vector<std::string> &parts) {
  expectError([&] { importConfig(config); }, parts);
}

} // namespace llmc::test
