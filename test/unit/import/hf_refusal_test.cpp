// Case 21: an unknown architecture names its model_type, the nearest supported one and what blocks it.
#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

json typed(const std::string &type, const json &more = json::object()) {
  json config = tinyConfig(type);
  config.update(more);
  return config;
}

TEST(HfRefusal, Case21NamesTypeFeatureAndNearest) {
  struct {
    const char *type;
    json more;
    const char *feature, *nearest;
  } cases[] = {
      {"qwen3_moe", {{"num_experts", 128}}, "mixture of experts (qwen3_moe: num_experts=128)", "qwen3"},
      {"mixtral", {{"num_local_experts", 8}}, "mixture of experts (mixtral: num_local_experts=8)", "mistral"},
      {"deepseek_v3", {{"kv_lora_rank", 512}}, "multi-head latent attention", "llama"},
      {"gemma2",
       {{"attn_logit_softcapping", 50.0}},
       "gemma: (1 + w) norms, four norms per layer and logit softcaps",
       "llama"},
      {"gemma3_text", json::object(), "two rope bases", "qwen3"},
      {"deepseek_v2",
       {{"n_routed_experts", 64}},
       "multi-head latent attention (MLA) and mixture of experts",
       "llama"},
      {"qwen3_next", {{"layer_types", {"linear_attention", "full_attention"}}}, "linear_attention", "qwen3"},
      {"qwen3_5", json::object(), "linear_attention", "qwen3"},
      {"qwen3_vl_text", json::object(), "multimodal rope", "qwen3"},
      {"phi3", json::object(), "fused qkv_proj and gate_up_proj", "llama"},
      {"gpt_oss",
       {{"num_local_experts", 32}},
       "attention sinks and mixture of experts (gpt_oss: num_local_experts=32)",
       "llama"},
      {"falcon_mamba", {{"state_size", 16}}, "state-space layers (falcon_mamba: state_size=16)", "llama"},
      {"smollm3", json::object(), "no_rope_layers", "llama"},
      {"t5", {{"is_encoder_decoder", true}}, "an encoder with a decoder", "llama"},
  };
  for (const auto &one : cases) {
    SCOPED_TRACE(one.type);
    expectConfigError(typed(one.type, one.more),
                      {"config.json:", "/model_type", std::string("\"") + one.type + "\" is not supported",
                       one.feature, std::string("nearest supported model_type is \"") + one.nearest + "\"",
                       "supported: llama, mistral, qwen2 and qwen3"});
  }
}

// What blocks a type is told of that type, not of one whose name it begins with.
TEST(HfRefusal, RelativesAreNotTakenForEachOther) {
  struct {
    const char *type, *feature, *wrong;
  } cases[] = {
      {"ministral3", "llama_4_scaling_beta", "alternate"},
      {"phi4_multimodal", "fused qkv_proj", "layer norms"},
      {"phi9", "does not know", "layer norms"},
      {"qwen4_exp", "does not know", "c_attn"},
      {"exaone4", "norms after", "names of its own"},
      {"nemotron_h", "state-space", "layer norms"},
      {"kimi_linear", "linear_attention", "MLA"},
      {"mamba2", "state-space", "does not know"},
      {"qwen3_5_moe_text", "linear_attention", "does not know"},
      {"gemma3n_text", "embeddings for each layer", "does not know"},
      {"optimus", "does not know", "learned positions"},
  };
  for (const auto &one : cases) {
    SCOPED_TRACE(one.type);
    try {
      importConfig(typed(one.type));
      ADD_FAILURE() << "no error";
    } catch (const Error &error) {
      const std::string told = error.what();
      EXPECT_NE(told.find(one.feature), std::string::npos) << told;
      EXPECT_EQ(told.find(one.wrong), std::string::npos) << told;
    }
  }
  // A feature that the table and a key both tell stands once, with its number.
  expectConfigError(typed("gemma2", {{"attn_logit_softcapping", 50.0}}),
                    {"four norms per layer and logit softcaps (gemma2: attn_logit_softcapping=50.0); the nearest"});
}

TEST(HfRefusal, UnknownTypes) {
  expectConfigError(typed("lama"), {"\"lama\" is not supported", "does not know",
                                    "nearest supported model_type is \"llama\""});
  expectConfigError(typed("zzzzzzzzz"), {"\"zzzzzzzzz\" is not supported", "(supported: llama"});
  expectConfigError(typed("qwen3_foo"), {"nearest supported model_type is"});
  expectConfigError(typed("x\n\x01y"), {"\"x\\x0a\\x01y\""}); // never raw control characters
}

TEST(HfRefusal, SupportedTypeWithForeignFeatures) {
  expectConfigError(typed("llama", {{"num_local_experts", 4}}),
                    {"mixture of experts (llama: num_local_experts=4)"});
  expectConfigError(typed("qwen3", {{"layer_types", {"linear_attention", "full_attention"}}}),
                    {"linear_attention"});
  EXPECT_NO_THROW(importConfig(typed("llama", {{"num_local_experts", 1}, {"num_experts", 0}})));
  EXPECT_NO_THROW(importConfig(typed("llama", {{"num_experts", nullptr}})));
}

TEST(HfRefusal, Quantisation) {
  for (const char *method : {"gptq", "awq", "fp8", "bitsandbytes", "compressed-tensors"})
    expectConfigError(typed("llama", {{"quantization_config", {{"quant_method", method}, {"bits", 4}}}}),
                      {"/quantization_config", std::string("\"") + method + "\" are not supported", "GGUF"});
  EXPECT_NO_THROW(importConfig(typed("llama", {{"quantization_config", nullptr}})));
  expectConfigError(typed("llama", {{"quantization", {{"group_size", 64}, {"bits", 4}}}}), {"/quantization: ", "GGUF"});
  expectConfigError(typed("llama", {{"compression_config", {{"quant_method", "compressed-tensors"}}}}),
                    {"/compression_config: ", "\"compressed-tensors\" are not supported"});
}

TEST(HfRefusal, OtherHeads) {
  expectConfigError(typed("llama", {{"architectures", {"LlamaForSequenceClassification"}}}),
                    {"/architectures", "\"LlamaForSequenceClassification\" is not a text generator"});
}

TEST(HfRefusal, TypeFromArchitectureWhenAbsent) {
  json config = typed("x");
  config.erase("model_type");
  config["architectures"] = {"Qwen3ForCausalLM"};
  EXPECT_EQ(importConfig(config).family, Family::Qwen3);
  config["architectures"] = {"FooForCausalLM"};
  expectConfigError(config, {"no model_type", "\"FooForCausalLM\""});
  expectConfigError(json::array(), {"expected an object"});
}

} // namespace
