// Finds the text model inside a config.json and refuses what this compiler cannot build, saying which feature
// stands in the way and which supported family is nearest.
#include "compiler/import/hf_import.h"

#include "compiler/import/architecture.h"
#include "compiler/import/words.h"

namespace llmc {
namespace {

const std::vector<std::string> kSupported = {"llama", "mistral", "qwen2", "qwen3"};

struct KnownType {
  const char *name;    // model_type, without "_text"; one that ends in * stands for all that begin so
  const char *nearest; // supported family
  const char *feature; // what blocks it; "" when only config keys tell
};

// Of relatives that are not here only the nearest supported family is told: what blocks them may be something else.
const KnownType kKnown[] = {
    {"mixtral", "mistral", "mixture of experts"},
    {"ministral", "mistral", "layers that alternate between full and windowed attention"},
    {"ministral3", "mistral", "queries scaled by their position (llama_4_scaling_beta)"},
    {"mistral3", "mistral", ""},
    {"qwen", "qwen2", "fused c_attn projection of the first Qwen"},
    {"qwen2_moe", "qwen2", "mixture of experts"},
    {"qwen2_audio", "qwen2", "audio and vision towers"},
    {"qwen2_5_omni", "qwen2", "audio and vision towers"},
    {"qwen2_vl", "qwen2", "multimodal rope (mrope_section)"},
    {"qwen2_5_vl", "qwen2", "multimodal rope (mrope_section)"},
    {"qwen3_moe", "qwen3", "mixture of experts"},
    {"qwen3_next", "qwen3", "linear_attention"},
    {"qwen3_5", "qwen3", "linear_attention"},
    {"qwen3_5_moe", "qwen3", "linear_attention"},
    {"qwen3_vl", "qwen3", "multimodal rope (mrope_section)"},
    {"qwen3_vl_moe", "qwen3", "mixture of experts"},
    {"qwen3_omni*", "qwen3", "audio and vision towers"},
    {"llama4", "llama", "chunked attention"},
    {"mllama", "llama", "cross-attention layers for images"},
    {"gemma", "llama", "gemma: (1 + w) norms, scaled embeddings and tanh GELU"},
    {"gemma2", "llama", "gemma: (1 + w) norms, four norms per layer and logit softcaps"},
    {"gemma3", "qwen3", "gemma: (1 + w) norms, four norms per layer and two rope bases"},
    {"gemma3n", "qwen3", "gemma: four norms per layer, two rope bases and embeddings for each layer"},
    {"gemma4*", "qwen3", "gemma: four norms per layer and two rope bases"},
    {"seed_oss", "qwen2", "biases of q, k and v told by keys of its own"},
    {"ernie4_5", "llama", "interleaved rotary pairs"},
    {"helium", "llama", "interleaved rotary pairs"},
    {"arcee", "llama", "an MLP without gate"},
    {"apertus", "qwen3", "an MLP without gate"},
    {"bitnet", "llama", "norms inside attention and MLP"},
    {"hunyuan_v1_dense", "qwen3", "query and key norms behind the rotation"},
    {"phi", "llama", "parallel attention and MLP with layer norms"},
    {"phi-msft", "llama", "parallel attention and MLP with layer norms"},
    {"phi3", "llama", "fused qkv_proj and gate_up_proj"},
    {"phi3_v", "llama", "fused qkv_proj and gate_up_proj"},
    {"phi4_multimodal", "llama", "fused qkv_proj and gate_up_proj"},
    {"phi4mm", "llama", "fused qkv_proj and gate_up_proj"},
    {"phimoe", "llama", "mixture of experts"},
    {"deepseek_v2", "llama", "multi-head latent attention (MLA)"},
    {"deepseek_v3", "llama", "multi-head latent attention (MLA)"},
    {"deepseek_v32", "llama", "multi-head latent attention (MLA) with sparse indexing"},
    {"kimi_k2*", "llama", "multi-head latent attention (MLA)"},
    {"kimi_linear", "llama", "linear_attention"},
    {"gpt_oss", "llama", "attention sinks"},
    {"gpt2", "llama", "learned positions and layer norms"},
    {"gpt_neo", "llama", "learned positions and layer norms"},
    {"gpt_neox*", "llama", "parallel attention and MLP with layer norms"},
    {"gptj", "llama", "parallel attention and MLP with layer norms"},
    {"gpt_bigcode", "llama", "learned positions and multi-query attention with layer norms"},
    {"starcoder2", "mistral", "layer norms and an MLP without gate"},
    {"falcon", "llama", "parallel attention and MLP with layer norms"},
    {"falcon_h1", "llama", "state-space layers"},
    {"falcon_mamba", "llama", "state-space layers"},
    {"bloom", "llama", "ALiBi positions"},
    {"mpt", "llama", "ALiBi positions"},
    {"opt", "llama", "learned positions and layer norms"},
    {"cohere", "llama", "parallel attention and MLP with a logit scale"},
    {"cohere2", "llama", "parallel attention and MLP with a logit scale"},
    {"olmo", "llama", "norms without weights"},
    {"olmo2", "qwen3", "norms after attention and MLP instead of before"},
    {"olmo3", "qwen3", "norms after attention and MLP instead of before"},
    {"olmo_hybrid", "qwen3", "linear_attention"},
    {"olmoe", "qwen3", "mixture of experts"},
    {"granite", "llama", "embedding, residual, attention and logit multipliers"},
    {"granitemoe", "llama", "mixture of experts"},
    {"granitemoeshared", "llama", "mixture of experts"},
    {"granitemoehybrid", "llama", "state-space layers"},
    {"smollm3", "llama", "layers without rotary positions (no_rope_layers)"},
    {"glm", "llama", "partial rotary positions and a fused gate_up_proj"},
    {"glm4", "llama", "partial rotary positions and a fused gate_up_proj"},
    {"glm4_moe", "llama", "mixture of experts"},
    {"chatglm", "llama", "partial rotary positions and fused projections"},
    {"internlm2", "llama", "fused wqkv projection"},
    {"baichuan", "llama", "fused W_pack projection"},
    {"stablelm", "llama", "layer norms and partial rotary positions"},
    {"minicpm", "llama", "embedding, residual and logit multipliers"},
    {"minicpm3", "llama", "multi-head latent attention (MLA)"},
    {"nemotron", "llama", "layer norms and an MLP without gate"},
    {"nemotron_h", "llama", "state-space layers"},
    {"nemotron-nas", "llama", "layers that differ in shape (block_configs)"},
    {"exaone", "llama", "tensor names of its own"},
    {"exaone4", "qwen3", "norms after attention and MLP instead of before"},
    {"mamba*", "llama", "state-space layers"},
    {"jamba", "llama", "state-space layers"},
    {"zamba*", "llama", "state-space layers"},
    {"bamba", "llama", "state-space layers"},
    {"recurrent_gemma", "llama", "recurrent layers"},
    {"rwkv*", "llama", "recurrent layers"},
    {"lfm2", "llama", "convolution layers"},
    {"lfm2_moe", "llama", "convolution layers"},
    {"bert", "llama", "an encoder, which generates no text"},
    {"roberta", "llama", "an encoder, which generates no text"},
    {"modernbert", "llama", "an encoder, which generates no text"},
    {"t5", "llama", "an encoder with a decoder"},
    {"bart", "llama", "an encoder with a decoder"},
    {"whisper", "llama", "an encoder with a decoder"},
};

// The row of exactly this type; then `exact`. Else, for its family alone, the one with the longest name that begins it.
const KnownType *knownType(const std::string &type, bool &exact) {
  std::string_view whole = type;
  if (constexpr std::string_view part = "_text"; whole.size() > part.size() && whole.substr(whole.size() - part.size()) == part)
    whole.remove_suffix(part.size());
  const KnownType *best = nullptr;
  size_t length = 0;
  exact = false;
  for (const KnownType &known : kKnown) {
    std::string_view name = known.name;
    const bool all = name.back() == '*';
    if (all)
      name.remove_suffix(1);
    if (whole.substr(0, name.size()) != name)
      continue;
    const bool fits = all || whole == name;
    if (std::pair(fits, name.size()) > std::pair(exact, length))
      best = &known, length = name.size(), exact = fits;
  }
  return best;
}

// "num_experts=128" for the first of `keys` that is a number above `least`.
std::string numberAbove(const Json &config, std::initializer_list<const char *> keys, double least) {
  for (const char *key : keys)
    if (auto value = config.get(key); value && value->isNumber() && value->asDouble() > least)
      return std::string(key) + "=" + value->text();
  return "";
}

bool hasLayerType(const Json &config, const char *type) {
  auto types = config.get("layer_types");
  if (!types || !types->isArray())
    return false;
  for (size_t i = 0; i < types->size(); ++i)
    if (types->at(i).isString() && types->at(i).asString() == type)
      return true;
  return false;
}

// What the keys of a config say about features that no supported family has; "" when nothing.
std::string blockingFeature(const Json &config, const std::string &type) {
  if (std::string experts = numberAbove(
          config,
          {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok"},
          1);
      !experts.empty())
    return "mixture of experts (" + type + ": " + experts + ")";
  if (std::string latent = numberAbove(config, {"kv_lora_rank", "q_lora_rank"}, 0); !latent.empty())
    return "multi-head latent attention, MLA (" + type + ": " + latent + ")";
  if (hasLayerType(config, "linear_attention") || config.has("linear_num_value_heads"))
    return "linear_attention";
  if (hasLayerType(config, "chunked_attention"))
    return "chunked_attention";
  if (std::string cap = numberAbove(config, {"attn_logit_softcapping", "final_logit_softcapping"}, 0);
      !cap.empty())
    return "logit softcaps (" + type + ": " + cap + ")";
  if (std::string state = numberAbove(config, {"mamba_d_state", "state_size", "ssm_state_size"}, 0);
      !state.empty())
    return "state-space layers (" + type + ": " + state + ")";
  if (auto encoder = config.get("is_encoder_decoder"); encoder && encoder->isBool() && encoder->asBool())
    return "an encoder with a decoder";
  return "";
}

[[noreturn]] void refuse(const Json &config, const std::string &type) {
  bool exact = false;
  const KnownType *known = knownType(type, exact);
  std::string feature = blockingFeature(config, type);
  if (exact && *known->feature) {
    // Keys give numbers; the table may know of more than they tell.
    const std::string told = known->feature, kind = feature.substr(0, feature.find(" ("));
    if (feature.empty())
      feature = told;
    else if (const size_t at = told.find(kind); at == std::string::npos)
      feature = told + " and " + feature;
    else // the same with its number
      feature = told.substr(0, at) + feature + told.substr(at + kind.size());
  }
  if (feature.empty())
    feature = exact ? "a layout of its own" : "an architecture that this compiler does not know";
  std::string nearest = known ? known->nearest : nearestWord(type, kSupported);
  if (nearest.empty())
    for (const std::string &family : kSupported) // "qwen3_foo" is near qwen3
      if (type.compare(0, family.size(), family) == 0)
        nearest = family;
  config.find("model_type")
      .value_or(config)
      .fail("model_type " + quote(type) + " is not supported: " + feature +
            (nearest.empty() ? "" : "; the nearest supported model_type is " + quote(nearest)) +
            " (supported: " + listText(kSupported) + ")");
}

void refuseQuantisation(const Json &config) {
  std::optional<Json> quantisation;
  // The usual key, that of early compressed-tensors, and that of MLX.
  for (const char *key : {"quantization_config", "compression_config", "quantization"})
    if (!quantisation)
      quantisation = config.get(key);
  if (!quantisation)
    return;
  std::string method = "a method of no name";
  if (quantisation->isObject())
    for (const char *key : {"quant_method", "quant_algo"})
      if (auto value = quantisation->get(key); value && value->isString()) {
        method = quote(value->asString());
        break;
      }
  quantisation->fail("weights quantised with " + method +
                     " are not supported; use the checkpoint in bf16, f16 or f32, or a GGUF file of it");
}

std::string architecture(const Json &config) {
  auto list = config.get("architectures");
  return list && list->isArray() && list->size() > 0 && list->at(0).isString() ? list->at(0).asString() : "";
}

std::string modelType(const Json &config) {
  if (auto type = config.get("model_type"))
    return type->asString();
  // Configs that were cut by hand: the class name tells as well.
  static const std::pair<const char *, const char *> classes[] = {{"LlamaForCausalLM", "llama"},
                                                                  {"MistralForCausalLM", "mistral"},
                                                                  {"Qwen2ForCausalLM", "qwen2"},
                                                                  {"Qwen3ForCausalLM", "qwen3"}};
  std::string name = architecture(config);
  for (const auto &[known, type] : classes)
    if (name == known)
      return type;
  config.fail("no model_type" +
              (name.empty() ? std::string() : " and an unknown architecture " + quote(name)) +
              "; add one of " + listText(kSupported));
}

bool isSupported(const std::string &type) {
  for (const std::string &supported : kSupported)
    if (type == supported)
      return true;
  return false;
}

} // namespace

Family familyOf(const Json &text) {
  std::string type = modelType(text);
  return type == "llama"     ? Family::Llama
         : type == "mistral" ? Family::Mistral
         : type == "qwen2"   ? Family::Qwen2
                             : Family::Qwen3;
}

Json textConfig(const Json &root) {
  root.expectObject();
  Json text = root;
  if (auto nested = root.get("text_config"); nested && nested->isObject())
    text = *nested;
  std::string type = modelType(text);
  if (!isSupported(type))
    refuse(text, type);
  if (std::string feature = blockingFeature(text, type); !feature.empty())
    text.fail("not supported: " + feature + "; model_type " + quote(type) +
              " is built as a dense decoder here");
  refuseQuantisation(root);
  if (text.path() != root.path())
    refuseQuantisation(text);

  // A head other than a language model's (classification, reward) would be lost silently.
  std::string name = architecture(root);
  if (!name.empty() && name.find("CausalLM") == std::string::npos &&
      name.find("ConditionalGeneration") == std::string::npos && name.find("LMHead") == std::string::npos)
    root.get("architectures")
        ->fail("architecture " + quote(name) + " is not a text generator; supported are " +
               listText({"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}));
  return text;
}

} // namespace llmc
