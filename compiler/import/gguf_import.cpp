// A GGUF file (or the parts of a split one) -> ModelSpec: metadata under general.*, ARCH.*, tokenizer.*, and
// tensors under llama.cpp's names, which are mapped to the canonical ones.
#include "compiler/import/architecture.h"
#include "compiler/import/files.h"
#include "compiler/import/gguf_reader.h"
#include "compiler/import/gguf_tokenizer.h"
#include "compiler/import/hf_import.h"
#include "compiler/import/rope.h"
#include "compiler/import/words.h"
#include "compiler/support/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <unordered_map>

namespace llmc {
namespace {

class FileSource final : public GgufSource {
public:
  explicit FileSource(const InputFile &file) : file_(file) {}
  uint64_t size() const override { return file_.size(); }
  void read(uint64_t offset, void *data, uint64_t bytes) const override { file_.read(offset, data, bytes); }

private:
  const InputFile &file_;
};

struct Found {
  int32_t file;
  const GgufTensor *tensor;
};

std::optional<DType> storedType(uint32_t type) {
  switch (type) {
  case 0:
    return DType::F32;
  case 1:
    return DType::F16;
  case 2:
    return DType::Q4_0;
  case 3:
    return DType::Q4_1;
  case 6:
    return DType::Q5_0;
  case 7:
    return DType::Q5_1;
  case 8:
    return DType::Q8_0;
  case 12:
    return DType::Q4_K;
  case 13:
    return DType::Q5_K;
  case 14:
    return DType::Q6_K;
  case 30:
    return DType::BF16;
  default:
    return std::nullopt;
  }
}

// model.layers.7.mlp.up_proj.weight -> blk.7.ffn_up.weight
std::string ggufName(const std::string &canonical) {
  static const std::pair<std::string_view, std::string_view> outer[] = {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.norm.weight", "output_norm.weight"},
      {"lm_head.weight", "output.weight"}};
  for (const auto &[from, to] : outer)
    if (canonical == from)
      return std::string(to);
  static const std::pair<std::string_view, std::string_view> inner[] = {
      {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  constexpr std::string_view prefix = "model.layers.";
  size_t dot = canonical.find('.', prefix.size());
  std::string_view rest = std::string_view(canonical).substr(dot + 1);
  size_t last = rest.rfind('.');
  for (const auto &[from, to] : inner)
    if (rest.substr(0, last) == from)
      return "blk." + canonical.substr(prefix.size(), dot - prefix.size()) + "." + std::string(to) +
             std::string(rest.substr(last));
  return canonical;
}

// Would a tensor of this name, left out, change what the model computes? Tables of angles would not, nor what
// lies beyond the layers (heads that predict further tokens).
bool changesTheModel(std::string_view name, int64_t layers) {
  if (name.starts_with("output") || name.starts_with("token_embd"))
    return true;
  if (!name.starts_with("blk.") || name.find("rot_embd") != name.npos || name.find("rope_") != name.npos)
    return false;
  int64_t layer = 0;
  for (char c : name.substr(4, std::min<size_t>(name.find('.', 4), 10) - 4))
    if (c < '0' || c > '9')
      return false;
    else
      layer = layer * 10 + (c - '0');
  return layer < layers;
}

class GgufImporter {
public:
  explicit GgufImporter(const std::string &path) : path_(path) {}

  ModelSpec run() {
    readParts();
    readArchitecture();
    readRope();
    readTensors();
    readText();
    return std::move(model_);
  }

private:
  [[noreturn]] void fail(const std::string &message) const { throw Error(path_ + ": " + message); }
  const GgufHeader &main() const { return headers_.front(); }
  std::string key(const char *name) const { return architecture_ + "." + name; }

  int64_t required(const char *name) const {
    auto value = main().integer(key(name));
    if (!value)
      fail("the key " + quote(key(name)) + " is missing");
    return *value;
  }

  // Head counts may be a list with one entry per layer; models where they differ are another architecture.
  std::optional<int64_t> uniform(const char *name) const {
    const GgufValue *value = main().find(key(name));
    if (!value || value->kind != GgufValue::Kind::Ints)
      return main().integer(key(name));
    for (int64_t item : value->ints)
      if (item != value->ints.front())
        fail("the key " + quote(key(name)) + " differs by layer (" + std::to_string(value->ints.front()) +
             " and " + std::to_string(item) + "), which is not supported");
    if (value->ints.empty())
      fail("the key " + quote(key(name)) + " is an empty list");
    return value->ints.front();
  }

  void readParts();
  void addPart(const std::string &path);
  void readArchitecture();
  void refuseForeign() const;
  void readRope();
  void readTensors();
  void checkLayout() const;
  void readText();

  std::string path_, architecture_;
  ModelSpec model_;
  std::vector<GgufHeader> headers_; // one per part; the first holds the metadata
  std::unordered_map<std::string, Found> found_;
};

void GgufImporter::addPart(const std::string &path) {
  InputFile file(path);
  headers_.push_back(parseGguf(FileSource(file), path));
  const std::string header = file.read(0, headers_.back().headerBytes);
  if (headers_.size() == 1)
    model_.configHash = hashHex(header);
  model_.files.push_back({path, file.size(), hashBytes(header), headers_.back().headerBytes});
}

// A split model is NAME-00001-of-0000N.gguf …: all metadata in the first part, tensors in all of them.
void GgufImporter::readParts() {
  addPart(path_);
  const int64_t count = main().integer("split.count").value_or(1);
  if (count != 1) {
    const int64_t number = main().integer("split.no").value_or(0);
    char suffix[32];
    std::snprintf(suffix, sizeof suffix, "-of-%05lld.gguf", static_cast<long long>(count));
    if (count < 1 || count > 9999)
      fail("split.count is " + std::to_string(count));
    if (number != 0)
      fail("this is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
           "; name the first part, which holds the metadata");
    const std::string ending = std::string("-00001") + suffix;
    if (path_.size() <= ending.size() ||
        path_.compare(path_.size() - ending.size(), ending.size(), ending) != 0)
      fail("the first of " + std::to_string(count) + " parts must be named ..." + ending +
           " so that the others can be found");
    for (int64_t part = 2; part <= count; ++part) {
      char text[16];
      std::snprintf(text, sizeof text, "-%05lld", static_cast<long long>(part));
      std::string sibling = path_.substr(0, path_.size() - ending.size()) + text + suffix;
      if (!fileExists(sibling))
        fail("part " + std::to_string(part) + " of " + std::to_string(count) + " is missing: " + sibling);
      addPart(sibling);
      if (headers_.back().integer("split.no").value_or(-1) != part - 1)
        fail(sibling + " does not say that it is part " + std::to_string(part));
    }
  }
  for (size_t part = 0; part < headers_.size(); ++part)
    for (const GgufTensor &tensor : headers_[part].tensors)
      if (!found_.emplace(tensor.name, Found{static_cast<int32_t>(part), &tensor}).second)
        fail("tensor " + quote(tensor.name) + " is in more than one part");
  if (auto total = main().integer("split.tensors.count");
      total && count > 1 && *total != static_cast<int64_t>(found_.size()))
    fail("split.tensors.count is " + std::to_string(*total) + ", the parts hold " +
         std::to_string(found_.size()) + " tensors");
}

// Keys that change the computation and that no supported family has.
void GgufImporter::refuseForeign() const {
  if (int64_t experts = main().integer(key("expert_count")).value_or(0); experts > 0)
    fail("not supported: mixture of experts (" + architecture_ + ": expert_count=" + std::to_string(experts) +
         ")");
  for (const char *name : {"logit_scale", "residual_scale", "embedding_scale", "attn_logit_softcapping",
                           "final_logit_softcapping"})
    if (double value = main().number(key(name)).value_or(0); value != 0 && value != 1)
      fail("not supported: " + quote(key(name)) + " = " + std::to_string(value));
  for (const char *name : {"attention.clamp_kqv", "attention.max_alibi_bias", "attention.temperature_scale"})
    if (double value = main().number(key(name)).value_or(0); value != 0)
      fail("not supported: " + quote(key(name)) + " = " + std::to_string(value));
  if (!main().boolean(key("attention.causal")).value_or(true))
    fail("not supported: " + quote(key("attention.causal")) + " is false; this model does not generate text");
  if (main().boolean(key("use_parallel_residual")).value_or(false))
    fail("not supported: " + quote(key("use_parallel_residual")) + " is true");
  if (auto type = main().string("general.type"); type && *type != "model")
    fail("general.type is " + quote(*type) + "; only a \"model\" can be compiled");
}

void GgufImporter::readArchitecture() {
  auto architecture = main().string("general.architecture");
  if (!architecture)
    fail("the key \"general.architecture\" is missing");
  architecture_ = *architecture;
  static const std::vector<std::string> supported = {"llama", "qwen2", "qwen3"};
  if (std::find(supported.begin(), supported.end(), architecture_) == supported.end()) {
    std::string nearest = nearestWord(architecture_, supported), feature;
    for (const std::string &name : supported)
      if (architecture_.compare(0, name.size(), name) == 0)
        nearest = name;
    if (int64_t experts = main().integer(key("expert_count")).value_or(0); experts > 0)
      feature = "mixture of experts (" + architecture_ + ": expert_count=" + std::to_string(experts) + ")";
    else if (int64_t rank = main().integer(key("attention.kv_lora_rank")).value_or(0); rank > 0)
      feature = "multi-head latent attention, MLA (kv_lora_rank=" + std::to_string(rank) + ")";
    else if (main().find(key("ssm.state_size")))
      feature = architecture_ == "qwen3next" || architecture_ == "qwen35" ? "linear_attention"
                                                                          : "state-space layers";
    else if (architecture_.compare(0, 5, "gemma") == 0)
      feature = "gemma: (1 + w) norms and scaled embeddings";
    fail("GGUF architecture " + quote(architecture_) + " is not supported" +
         (feature.empty() ? "" : ": " + feature) +
         (nearest.empty() ? "" : "; the nearest supported one is " + quote(nearest)) +
         " (supported: " + listText(supported) + ")");
  }
  refuseForeign();

  model_.source = "gguf";
  model_.modelType = architecture_;
  model_.family = architecture_ == "qwen2"   ? Family::Qwen2
                  : architecture_ == "qwen3" ? Family::Qwen3
                                             : Family::Llama;
  model_.name = main().string("general.name").value_or("");
  if (model_.name.empty())
    model_.name = baseName(path_);

  model_.hidden = required("embedding_length");
  model_.layers = required("block_count");
  model_.ffn = uniform("feed_forward_length").value_or(0);
  model_.maxPositions = required("context_length");
  model_.qHeads = uniform("attention.head_count").value_or(0);
  model_.kvHeads = uniform("attention.head_count_kv").value_or(model_.qHeads);
  if (model_.layers < 1 || model_.layers > 4096 || model_.qHeads < 1)
    fail(std::to_string(model_.layers) + " layers and " + std::to_string(model_.qHeads) +
         " query heads; both must be positive, and the first at most 4096");
  auto keyLength = main().integer(key("attention.key_length")),
       valueLength = main().integer(key("attention.value_length"));
  if (!keyLength && model_.hidden % model_.qHeads != 0)
    fail(quote(key("embedding_length")) + " " + std::to_string(model_.hidden) + " is not a multiple of " +
         std::to_string(model_.qHeads) + " query heads, and there is no " +
         quote(key("attention.key_length")));
  model_.headDim = keyLength.value_or(model_.hidden / model_.qHeads);
  if (valueLength.value_or(model_.headDim) != model_.headDim)
    fail("keys of " + std::to_string(model_.headDim) + " elements and values of " +
         std::to_string(*valueLength) + " per head are not supported; both must be equal");
  auto eps = main().number(key("attention.layer_norm_rms_epsilon"));
  if (!eps)
    fail("the key " + quote(key("attention.layer_norm_rms_epsilon")) + " is missing");
  // A float32 in the file; 9.99999974e-06 is meant to be the 1e-05 that it came from.
  char shortest[32];
  std::snprintf(shortest, sizeof shortest, "%.7g", *eps);
  model_.rmsEps = std::strtod(shortest, nullptr);
  if (!(model_.rmsEps > 0 && model_.rmsEps < 1))
    fail(quote(key("attention.layer_norm_rms_epsilon")) + " is " + shortest +
         "; it must lie between 0 and 1");
  model_.attentionScale = main().number(key("attention.scale")).value_or(0);
  if (!(model_.attentionScale >= 0) || !std::isfinite(model_.attentionScale))
    fail(quote(key("attention.scale")) + " is " + std::to_string(model_.attentionScale) +
         "; it must be positive");
  if (model_.attentionScale == 0)
    model_.attentionScale = 1.0 / std::sqrt(static_cast<double>(model_.headDim));

  int64_t window = main().integer(key("attention.sliding_window")).value_or(0);
  if (window != 0 && model_.family != Family::Llama) {
    // The key cannot say from which layer on Qwen's window holds, and converters copy one that is switched
    // off.
    model_.warnings.push_back(path_ + ": " + quote(key("attention.sliding_window")) + " is ignored for " +
                              architecture_);
    window = 0;
  }
  if (window < 0 || main().find(key("attention.sliding_window_pattern")))
    fail("sliding windows that differ by layer are not supported in GGUF files");
  model_.attention.assign(static_cast<size_t>(model_.layers), AttentionSpec{window});

  auto embedding = found_.find("token_embd.weight");
  if (embedding == found_.end())
    fail("there is no tensor \"token_embd.weight\"");
  model_.vocab = embedding->second.tensor->shape.front();
  model_.tiedEmbeddings = !found_.count("output.weight");
  model_.qkNorm = model_.family == Family::Qwen3;
  model_.qkvBias = model_.family == Family::Qwen2 || found_.count("blk.0.attn_q.bias");
  model_.oBias = found_.count("blk.0.attn_output.bias");
  model_.mlpBias = found_.count("blk.0.ffn_gate.bias");
}

void GgufImporter::readRope() {
  RopeSpec &rope = model_.rope;
  // llama.cpp's converter reorders the rows of q and k of llama-type models (each head's two halves become
  // alternating rows), so that rotating neighbours equals HuggingFace's rotation of element i with i + half.
  // Queries and keys are reordered alike, so their products, and all else, stay as they were: the weights are
  // used as they lie, only the pairing differs. Qwen files are not reordered.
  rope.style = model_.family == Family::Llama ? RopeStyle::Interleaved : RopeStyle::NeoX;
  rope.rotaryDim = main().integer(key("rope.dimension_count")).value_or(model_.headDim);
  if (rope.rotaryDim != model_.headDim)
    fail("partial rotary positions are not supported: " + quote(key("rope.dimension_count")) + " is " +
         std::to_string(rope.rotaryDim) + ", the head dimension " + std::to_string(model_.headDim));
  if (rope.rotaryDim < 2 || rope.rotaryDim > 8192)
    fail("the head dimension is " + std::to_string(rope.rotaryDim) + "; it must lie between 2 and 8192");
  rope.theta = main().number(key("rope.freq_base")).value_or(10000.0);
  if (!(rope.theta > 1) || !std::isfinite(rope.theta))
    fail(quote(key("rope.freq_base")) + " is " + std::to_string(rope.theta) + "; it must be above 1");

  RopeScaling scaling;
  std::string type = main().string(key("rope.scaling.type")).value_or("");
  double factor = main().number(key("rope.scaling.factor")).value_or(0);
  if (type.empty() && factor == 0)
    factor = main().number(key("rope.scale_linear")).value_or(0); // the key of 2023
  if (type.empty())
    type = factor != 0 && factor != 1 ? "linear" : "none";
  if (type == "linear" || type == "yarn") {
    if (!(factor > 0) || !std::isfinite(factor))
      fail("rope scaling " + quote(type) + " needs a positive " + quote(key("rope.scaling.factor")) +
           ", found " + std::to_string(factor));
    scaling.kind = type == "linear" ? RopeScaling::Kind::Linear : RopeScaling::Kind::Yarn;
    scaling.factor = factor;
  } else if (type != "none") {
    fail("rope scaling " + quote(type) + " is not supported; supported are none, linear and yarn");
  }
  if (scaling.kind == RopeScaling::Kind::Yarn) {
    auto original = main().integer(key("rope.scaling.original_context_length"));
    scaling.originalMaxPositions = static_cast<double>(original.value_or(model_.maxPositions));
    if (scaling.originalMaxPositions <= 0)
      fail(quote(key("rope.scaling.original_context_length")) + " must be positive");
    for (auto [name, to] : {std::pair{"rope.scaling.yarn_beta_fast", &scaling.betaFast},
                            {"rope.scaling.yarn_beta_slow", &scaling.betaSlow}})
      if (double value = main().number(key(name)).value_or(0); value > 0 && std::isfinite(value))
        *to = value;
    if (double value = main().number(key("rope.scaling.attn_factor")).value_or(0);
        value > 0 && std::isfinite(value))
      scaling.attentionFactor = value * (factor <= 1 ? 1.0 : 1.0 + 0.1 * std::log(factor));
  }
  fillRope(rope, scaling);

  // Llama 3.1 files carry the llama3 scaling as one divisor per frequency.
  auto divisors = found_.find("rope_freqs.weight");
  if (divisors == found_.end())
    return;
  const GgufTensor &tensor = *divisors->second.tensor;
  if (tensor.type != 0 || tensor.shape != std::vector<int64_t>{rope.rotaryDim / 2})
    fail("tensor \"rope_freqs.weight\" is " + ggufTypeName(tensor.type) + " " + shapeText(tensor.shape) +
         "; F32 [" + std::to_string(rope.rotaryDim / 2) + "] is needed");
  InputFile file(model_.files[static_cast<size_t>(divisors->second.file)].path);
  const std::string bytes =
      file.read(tensor.offset, static_cast<uint64_t>(rope.rotaryDim / 2) * sizeof(float));
  for (size_t i = 0; i < rope.invFreq.size(); ++i) {
    float divisor;
    std::copy_n(bytes.data() + i * sizeof divisor, sizeof divisor, reinterpret_cast<char *>(&divisor));
    if (!(divisor > 0) || !std::isfinite(divisor))
      fail("tensor \"rope_freqs.weight\" holds " + std::to_string(divisor) + " at place " +
           std::to_string(i) + "; factors must be positive");
    rope.invFreq[i] /= divisor;
  }
  rope.scaling = "llama3";
  found_.erase(divisors);
}

void GgufImporter::readTensors() {
  checkDimensions(model_, path_);
  std::map<DType, uint64_t> bytesOf;
  for (const ExpectedTensor &expected : expectedTensors(model_)) {
    const std::string name = ggufName(expected.name);
    auto at = found_.find(name);
    if (at == found_.end())
      fail("tensor " + quote(name) + " " + shapeText(expected.shape) + " is missing; is the file complete?");
    const GgufTensor &tensor = *at->second.tensor;
    const FileRef &file = model_.files[static_cast<size_t>(at->second.file)];
    if (tensor.shape != expected.shape)
      throw Error(file.path + ": tensor " + quote(name) + " has shape " + shapeText(tensor.shape) +
                  ", the metadata implies " + shapeText(expected.shape));
    std::optional<DType> dtype = storedType(tensor.type);
    if (!dtype)
      throw Error(file.path + ": tensor " + quote(name) + " is of type " + ggufTypeName(tensor.type) +
                  "; supported are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K");
    const uint64_t block = dtypeBlockElements(*dtype);
    if (static_cast<uint64_t>(tensor.shape.back()) % block != 0)
      throw Error(file.path + ": tensor " + quote(name) + " has rows of " +
                  std::to_string(tensor.shape.back()) + " elements, not a multiple of the " +
                  std::to_string(block) + " of a " + dtypeName(*dtype) + " block");
    TensorRef ref;
    ref.name = expected.name;
    ref.fileTensor = name;
    ref.file = at->second.file;
    ref.offset = tensor.offset;
    ref.bytes = dtypeBytes(*dtype, elementCount(tensor.shape));
    ref.dtype = *dtype;
    ref.shape = tensor.shape;
    bytesOf[ref.dtype] += ref.bytes;
    model_.tensors.push_back(std::move(ref));
    found_.erase(at);
  }
  checkLayout();
  model_.storedDtype = std::max_element(bytesOf.begin(), bytesOf.end(), [](const auto &a, const auto &b) {
                         return a.second < b.second;
                       })->first;
  if (!found_.empty()) {
    std::vector<std::string> names, needed;
    for (const auto &[name, where] : found_)
      (changesTheModel(name, model_.layers) ? needed : names).push_back(quote(name));
    std::sort(needed.begin(), needed.end());
    if (!needed.empty())
      fail("the file holds " + std::to_string(needed.size()) + " tensor(s) that " + quote(architecture_) +
           " models do not have: " + listText(needed, 3) +
           "; without them the model would compute something else, so it is not supported");
    std::sort(names.begin(), names.end());
    model_.warnings.push_back(path_ + ": " + std::to_string(names.size()) +
                              " tensor(s) are not used: " + listText(names, 3));
  }
}

// Within each file: no overlap, and the last byte of the last tensor is there.
void GgufImporter::checkLayout() const {
  std::vector<const TensorRef *> order;
  for (const TensorRef &tensor : model_.tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorRef *a, const TensorRef *b) {
    return std::tie(a->file, a->offset) < std::tie(b->file, b->offset);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const TensorRef &tensor = *order[i];
    const FileRef &file = model_.files[static_cast<size_t>(tensor.file)];
    if (i > 0 && order[i - 1]->file == tensor.file &&
        tensor.offset < order[i - 1]->offset + order[i - 1]->bytes)
      throw Error(file.path + ": tensors " + quote(order[i - 1]->fileTensor) + " and " +
                  quote(tensor.fileTensor) + " overlap at byte " + std::to_string(tensor.offset));
    uint64_t end;
    if (__builtin_add_overflow(tensor.offset, tensor.bytes, &end))
      throw Error(file.path + ": tensor " + quote(tensor.fileTensor) +
                  " has an offset that overflows 64 bits");
    const bool lastOfFile = i + 1 == order.size() || order[i + 1]->file != tensor.file;
    if (lastOfFile && end > file.bytes)
      throw Error(file.path + " is truncated: its header describes " + std::to_string(end) +
                  " bytes, the file has " + std::to_string(file.bytes) + ", so " +
                  std::to_string(end - file.bytes) + " bytes are missing; download it again");
  }
}

void GgufImporter::readText() {
  TextAssets &text = model_.text;
  text.chatTemplate = main().string("tokenizer.chat_template").value_or("");
  // Of named templates without a default one, the first, as for HuggingFace folders.
  const GgufValue *named = main().find("tokenizer.chat_templates");
  if (text.chatTemplate.empty() && named && !named->strings.empty()) {
    text.chatTemplate = main().string("tokenizer.chat_template." + named->strings.front()).value_or("");
    model_.warnings.push_back(path_ + ": no default chat template among " + listText(named->strings, 3) +
                              "; taking the first");
  }
  GgufTokenizerText tokenizer = readGgufTokenizer(main(), model_.warnings);
  if (tokenizer.tokens > static_cast<uint64_t>(model_.vocab))
    fail("the tokenizer has " + std::to_string(tokenizer.tokens) + " tokens, the embedding " +
         std::to_string(model_.vocab) + " rows; do they belong together?");
  text.tokenizerJson = std::move(tokenizer.json);
  text.bosToken = std::move(tokenizer.bosToken);
  text.eosToken = std::move(tokenizer.eosToken);
  text.bosTokenId = tokenizer.bosTokenId;
  text.padTokenId = tokenizer.padTokenId;
  for (int64_t id : tokenizer.endIds) {
    if (id >= 0 && id < model_.vocab)
      addEosIds({id}, text);
    else
      model_.warnings.push_back(path_ + ": the end-of-sequence id " + std::to_string(id) +
                                " lies outside the vocabulary of " + std::to_string(model_.vocab) +
                                " and is ignored");
  }
  if (text.eosTokenIds.empty())
    model_.warnings.push_back(path_ +
                              ": no end-of-sequence token is named; generation stops at its limits only");
}

} // namespace

ModelSpec importGguf(const std::string &path) {
  return GgufImporter(path).run();
}

} // namespace llmc
