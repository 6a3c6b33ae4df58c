// What the importers (HuggingFace folder, GGUF file) hand to the rest of the compiler: the architecture as
// plain numbers, every weight's place in the files, and the text assets. No MLIR here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

// Element types of weights as they stand in files. The quantised ones are GGUF block formats.
enum class DType { F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K };

enum class Family { Llama, Mistral, Qwen2, Qwen3 };

// Rotary pairs: NeoX pairs element i with i + rotary_dim/2; Interleaved pairs 2i with 2i+1. Llama-type GGUF
// files hold q and k permuted so that the interleaved form is the right one.
enum class RopeStyle { NeoX, Interleaved };

struct RopeSpec {
  RopeStyle style = RopeStyle::NeoX;
  int64_t rotaryDim = 0; // elements of a head that are rotated
  double theta = 10000.0;
  std::vector<float> invFreq;      // [rotaryDim/2], all scalings (linear, llama3, yarn, …) applied
  double attentionFactor = 1.0;    // multiplies cos and sin (yarn's mscale)
  std::string scaling = "default"; // for reports: default | linear | llama3 | yarn
};

// One layer's attention. A window of 0 means full causal attention; a window W lets a token see itself and
// the W - 1 tokens before it.
struct AttentionSpec {
  int64_t window = 0;
};

struct FileRef {
  std::string path;         // as the plan stores it: absolute, or relative to the plan's folder
  uint64_t bytes = 0;       // size of the file
  uint64_t headerHash = 0;  // XXH64 of the header that the importer read …
  uint64_t headerBytes = 0; // … which is the first headerBytes bytes of the file
};

// Where one tensor lies. `shape` is outermost first ([out, in] for a linear weight), the HuggingFace order
// also for GGUF. A dummy tensor (--load-format dummy) has file = -1 and is filled from its name.
struct TensorRef {
  std::string name;       // canonical name (HuggingFace's), the same for both formats
  std::string fileTensor; // the name inside the file
  int32_t file = -1;
  uint64_t offset = 0; // absolute byte offset in the file
  uint64_t bytes = 0;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

// Sampling defaults of generation_config.json; absent fields stay empty.
struct GenerationDefaults {
  std::optional<double> temperature, topP, minP, repetitionPenalty;
  std::optional<int64_t> topK;
};

struct TextAssets {
  std::string tokenizerJson; // HuggingFace tokenizer.json; synthesised for GGUF. Empty: no tokenizer
  std::string chatTemplate;  // Jinja source; empty: none
  std::string bosToken, eosToken;
  std::vector<int32_t> eosTokenIds; // union over config, generation_config and tokenizer
  std::optional<int32_t> bosTokenId, padTokenId;
  GenerationDefaults generation;
};

struct ModelSpec {
  std::string name;       // folder or general.name
  std::string source;     // "hf" | "gguf" | "dummy"
  std::string configHash; // hex XXH64 over the config bytes
  Family family = Family::Llama;
  std::string modelType; // as the config spells it
  int64_t hidden = 0, layers = 0, qHeads = 0, kvHeads = 0, headDim = 0, ffn = 0, vocab = 0;
  int64_t maxPositions = 0; // max_position_embeddings / context_length
  double rmsEps = 1e-6;
  std::string activation = "silu"; // silu | gelu | gelu_tanh
  bool tiedEmbeddings = false;
  bool qkvBias = false, oBias = false, mlpBias = false, qkNorm = false;
  double attentionScale = 0; // 1/sqrt(headDim) unless the config says otherwise
  RopeSpec rope;
  std::vector<AttentionSpec> attention; // [layers]
  DType storedDtype = DType::BF16;      // the checkpoint's own (torch_dtype / dominant GGUF type)
  std::vector<FileRef> files;
  std::vector<TensorRef> tensors; // canonical names, see below
  TextAssets text;
  std::vector<std::string> warnings;
};

// Canonical tensor names (L = layer):
//   model.embed_tokens.weight [vocab, hidden]; model.norm.weight [hidden];
//   lm_head.weight [vocab, hidden] (absent when tied)
//   model.layers.L.input_layernorm.weight, .post_attention_layernorm.weight [hidden]
//   model.layers.L.self_attn.{q,k,v,o}_proj.{weight,bias}; .self_attn.{q,k}_norm.weight [headDim]
//   model.layers.L.mlp.{gate,up,down}_proj.{weight,bias}

} // namespace llmc
