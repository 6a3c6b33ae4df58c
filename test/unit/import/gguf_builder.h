// Builds small GGUF files in memory, good ones and, by writing counts and lengths freely, bad ones.
#pragma once

#include "compiler/import/gguf_reader.h"
#include "test/unit/import/support.h"

namespace llmc::test {

class GgufBuilder {
public:
  struct Info {
    std::string name;
    std::vector<int64_t> shape; // outermost first
    uint32_t type;
    uint64_t offset, bytes;
    std::string data; // zeros when empty
  };
  uint32_t version = 3;
  uint64_t alignment = 32;
  int64_t keyCountDelta = 0, tensorCountDelta = 0; // to lie about the counts
  std::vector<Info> tensors;

  static std::string text(const std::string &value) {
    std::string out;
    append(out, static_cast<uint64_t>(value.size()));
    return out + value;
  }
  GgufBuilder &raw(const std::string &key, uint32_t type, const std::string &bytes) {
    keys_ += text(key);
    append(keys_, type);
    keys_ += bytes;
    ++keyCount_;
    return *this;
  }
  template <class T> GgufBuilder &number(const std::string &key, uint32_t type, T value) {
    std::string bytes;
    append(bytes, value);
    return raw(key, type, bytes);
  }
  GgufBuilder &u32(const std::string &key, uint32_t value) { return number(key, 4, value); }
  GgufBuilder &f32(const std::string &key, float value) { return number(key, 6, value); }
  GgufBuilder &string(const std::string &key, const std::string &value) { return raw(key, 8, text(value)); }
  GgufBuilder &strings(const std::string &key, const std::vector<std::string> &values) {
    std::string bytes;
    append(bytes, uint32_t{8});
    append(bytes, static_cast<uint64_t>(values.size()));
    for (const std::string &value : values)
      bytes += text(value);
    return raw(key, 9, bytes);
  }
  GgufBuilder &i32s(const std::string &key, const std::vector<int32_t> &values) {
    std::string bytes;
    append(bytes, uint32_t{5});
    append(bytes, static_cast<uint64_t>(values.size()));
    for (int32_t value : values)
      append(bytes, value);
    return raw(key, 9, bytes);
  }

  GgufBuilder &tensor(const std::string &name, const std::vector<int64_t> &shape, uint32_t type,
                      uint64_t bytes, const std::string &data = "") {
    tensors.push_back({name, shape, type, next_, bytes, data});
    next_ += (bytes + alignment - 1) / alignment * alignment;
    return *this;
  }

  std::string header() const {
    std::string out = "GGUF";
    append(out, version);
    append(out, static_cast<uint64_t>(static_cast<int64_t>(tensors.size()) + tensorCountDelta));
    append(out, static_cast<uint64_t>(keyCount_ + keyCountDelta));
    out += keys_;
    for (const Info &info : tensors) {
      out += text(info.name);
      append(out, static_cast<uint32_t>(info.shape.size()));
      for (size_t d = info.shape.size(); d-- > 0;)
        append(out, info.shape[d]);
      append(out, info.type);
      append(out, info.offset);
    }
    return out;
  }

  std::string file() const {
    std::string out = header();
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    const size_t start = out.size();
    for (const Info &info : tensors) {
      out.resize(start + info.offset);
      out += info.data.empty() ? std::string(info.bytes, '\0') : info.data;
    }
    return out;
  }

private:
  std::string keys_;
  int64_t keyCount_ = 0;
  uint64_t next_ = 0;
};

class MemorySource final : public GgufSource {
public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, void *data, uint64_t bytes) const override {
    ASSERT_LE(offset + bytes, bytes_.size());
    std::memcpy(data, bytes_.data() + offset, bytes);
  }

private:
  std::string_view bytes_;
};

// ggml type numbers used here.
enum GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ4_K = 12,
  kQ6_K = 14,
  kBF16 = 30
};

struct TinyGguf {
  std::string arch = "llama";
  uint32_t weightType = kF16;
  bool tied = false, bias = false;
  int64_t hidden = 64, layers = 2, heads = 4, kvHeads = 2, headDim = 16, ffn = 96, vocab = 40;

  // Everything but what a test adds before calling tensors().
  GgufBuilder metadata() const {
    GgufBuilder b;
    auto number = [&](const char *name, int64_t value) {
      b.u32(arch + "." + name, static_cast<uint32_t>(value));
    };
    b.string("general.architecture", arch).string("general.name", "tiny");
    number("block_count", layers);
    number("context_length", 128);
    number("embedding_length", hidden);
    number("feed_forward_length", ffn);
    number("attention.head_count", heads);
    number("attention.head_count_kv", kvHeads);
    number("rope.dimension_count", headDim);
    number("attention.key_length", headDim);
    b.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
    b.f32(arch + ".rope.freq_base", 10000.0f);
    return b;
  }

  void tensors(GgufBuilder &b) const {
    auto add = [&](const std::string &name, std::vector<int64_t> shape) {
      const bool vector = shape.size() == 1;
      static const std::vector<std::pair<uint32_t, DType>> types = {
          {kF32, DType::F32},   {kF16, DType::F16},   {kQ4_0, DType::Q4_0}, {kQ4_1, DType::Q4_1},
          {kQ8_0, DType::Q8_0}, {kQ4_K, DType::Q4_K}, {kQ6_K, DType::Q6_K}, {kBF16, DType::BF16}};
      uint32_t type = vector ? static_cast<uint32_t>(kF32) : weightType;
      DType dtype = DType::F16;
      for (const auto &[number, known] : types)
        if (number == type)
          dtype = known;
      uint64_t elements = 1;
      for (int64_t dim : shape)
        elements *= static_cast<uint64_t>(dim);
      b.tensor(name, shape, type, dtypeBytes(dtype, elements));
    };
    add("token_embd.weight", {vocab, hidden});
    for (int64_t l = 0; l < layers; ++l) {
      std::string at = "blk." + std::to_string(l) + ".";
      add(at + "attn_norm.weight", {hidden});
      add(at + "attn_q.weight", {heads * headDim, hidden});
      add(at + "attn_k.weight", {kvHeads * headDim, hidden});
      add(at + "attn_v.weight", {kvHeads * headDim, hidden});
      if (bias) {
        add(at + "attn_q.bias", {heads * headDim});
        add(at + "attn_k.bias", {kvHeads * headDim});
        add(at + "attn_v.bias", {kvHeads * headDim});
      }
      if (arch == "qwen3") {
        add(at + "attn_q_norm.weight", {headDim});
        add(at + "attn_k_norm.weight", {headDim});
      }
      add(at + "attn_output.weight", {hidden, heads * headDim});
      add(at + "ffn_norm.weight", {hidden});
      add(at + "ffn_gate.weight", {ffn, hidden});
      add(at + "ffn_up.weight", {ffn, hidden});
      add(at + "ffn_down.weight", {hidden, ffn});
    }
    add("output_norm.weight", {hidden});
    if (!tied)
      add("output.weight", {vocab, hidden});
  }

  std::string file() const {
    GgufBuilder b = metadata();
    tensors(b);
    return b.file();
  }
};

inline ModelSpec importGgufBytes(const std::string &bytes) {
  Folder folder;
  return importModel(folder.write("m.gguf", bytes));
}

} // namespace llmc::test
