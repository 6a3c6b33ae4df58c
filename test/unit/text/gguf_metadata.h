// Reads just the tokenizer metadata of a trusted GGUF v2/v3 file, for tests that must not depend on the
// compiler's importer.
#pragma once

#include "runtime/text/gguf_tokenizer.h"

#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>

namespace llmrt::text::test {

class GgufMetadata {
public:
  explicit GgufMetadata(const std::string &path) : in_(path, std::ios::binary) {
    if (number<uint32_t>() != 0x46554747)
      throw std::runtime_error(path + " is not a GGUF file");
    number<uint32_t>(); // version
    number<uint64_t>(); // tensors
    uint64_t count = number<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      std::string key = text();
      value(key, number<uint32_t>());
    }
  }
  GgufTokenizer tokenizer;

private:
  enum Type : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

  template <typename T> T number() {
    T out{};
    if (!in_.read(reinterpret_cast<char *>(&out), sizeof out))
      throw std::runtime_error("the GGUF file ends early");
    return out;
  }
  std::string text() {
    std::string out(number<uint64_t>(), 0);
    in_.read(out.data(), static_cast<std::streamsize>(out.size()));
    return out;
  }
  void value(const std::string &key, uint32_t type) {
    static constexpr int kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    std::string name = key.starts_with("tokenizer.ggml.") ? key.substr(15) : "";
    if (type == kArray) {
      uint32_t element = number<uint32_t>();
      uint64_t n = number<uint64_t>();
      for (uint64_t i = 0; i < n; ++i) {
        if (element == kString) {
          std::string s = text();
          if (name == "tokens")
            tokenizer.tokens.push_back(std::move(s));
          else if (name == "merges")
            tokenizer.merges.push_back(std::move(s));
        } else if (name == "token_type") {
          tokenizer.token_types.push_back(number<int32_t>());
        } else if (name == "scores") {
          tokenizer.scores.push_back(number<float>());
        } else {
          in_.ignore(kSizes[element]);
        }
      }
    } else if (type == kString) {
      std::string s = text();
      if (name == "model")
        tokenizer.model = s;
      else if (name == "pre")
        tokenizer.pre = s;
    } else if (type == kBool) {
      bool b = number<uint8_t>() != 0;
      if (name == "add_bos_token")
        tokenizer.add_bos = b;
      else if (name == "add_eos_token")
        tokenizer.add_eos = b;
      else if (name == "add_space_prefix")
        tokenizer.add_space_prefix = b;
    } else if (type == kU32 && name.ends_with("_token_id")) {
      auto id = static_cast<int32_t>(number<uint32_t>());
      if (name == "bos_token_id")
        tokenizer.bos_id = id;
      else if (name == "eos_token_id")
        tokenizer.eos_id = id;
      else if (name == "unknown_token_id")
        tokenizer.unk_id = id;
      else if (name == "padding_token_id")
        tokenizer.pad_id = id;
    } else {
      in_.ignore(kSizes[type]);
    }
  }

  std::ifstream in_;
};

} // namespace llmrt::text::test
