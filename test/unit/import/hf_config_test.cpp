// config.json: families, defaults, and the traps that other engines fell into (cases 16 to 19 among them).
#include "test/unit/import/support.h"

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

const TensorRef *tensor(const ModelSpec &model, const std::string &name) {
  for (const TensorRef &ref : model.tensors)
    if (ref.name == name)
      return &ref;
  return nullptr;
}

json with(json config, const json &patch) {
  config.merge_patch(json::object());
  for (const auto &[key, value] : patch.items())
    config[key] = value;
  return config;
}

json without(json config, const std::string &key) {
  config.erase(key);
  return config;
}

TEST(HfConfig, FamilyFeatures) {
  ModelSpec llama = importConfig(tinyConfig("llama")), mistral = importConfig(tinyConfig("mistral"));
  ModelSpec qwen2 = importConfig(tinyConfig("qwen2")), qwen3 = importConfig(tinyConfig("qwen3"));
  EXPECT_EQ(llama.family, Family::Llama);
  EXPECT_FALSE(llama.qkvBias || llama.oBias || llama.mlpBias || llama.qkNorm);
  EXPECT_EQ(mistral.family, Family::Mistral);
  EXPECT_FALSE(mistral.qkvBias);
  EXPECT_EQ(qwen2.family, Family::Qwen2);
  EXPECT_TRUE(qwen2.qkvBias); // no key says so
  EXPECT_FALSE(qwen2.oBias);
  ASSERT_TRUE(tensor(qwen2, "model.layers.0.self_attn.k_proj.bias"));
  EXPECT_EQ(tensor(qwen2, "model.layers.0.self_attn.k_proj.bias")->shape, (std::vector<int64_t>{12}));
  EXPECT_FALSE(tensor(qwen2, "model.layers.0.self_attn.o_proj.bias"));
  EXPECT_EQ(qwen3.family, Family::Qwen3);
  EXPECT_TRUE(qwen3.qkNorm);
  ASSERT_TRUE(tensor(qwen3, "model.layers.1.self_attn.q_norm.weight"));
  EXPECT_EQ(tensor(qwen3, "model.layers.1.self_attn.q_norm.weight")->shape, (std::vector<int64_t>{6}));
  EXPECT_EQ(llama.rope.style, RopeStyle::NeoX);
  EXPECT_DOUBLE_EQ(llama.attentionScale, 1 / std::sqrt(6.0));
}

TEST(HfConfig, BiasKeys) {
  ModelSpec llama = importConfig(with(tinyConfig(), {{"attention_bias", true}, {"mlp_bias", true}}));
  EXPECT_TRUE(llama.qkvBias && llama.oBias && llama.mlpBias);
  EXPECT_TRUE(tensor(llama, "model.layers.0.mlp.down_proj.bias"));
  ModelSpec qwen3 = importConfig(with(tinyConfig("qwen3"), {{"attention_bias", true}}));
  EXPECT_TRUE(qwen3.qkvBias && qwen3.oBias);
}

// Case 16: hidden 1792 with 24 heads and an explicit head_dim is valid.
TEST(HfConfig, Case16ExplicitHeadDim) {
  json config = with(
      tinyConfig(),
      {{"hidden_size", 1792}, {"num_attention_heads", 24}, {"num_key_value_heads", 8}, {"head_dim", 128}});
  ModelSpec model = importConfig(config);
  EXPECT_EQ(model.headDim, 128);
  EXPECT_EQ(tensor(model, "model.layers.0.self_attn.q_proj.weight")->shape,
            (std::vector<int64_t>{3072, 1792}));
  EXPECT_EQ(tensor(model, "model.layers.0.self_attn.o_proj.weight")->shape,
            (std::vector<int64_t>{1792, 3072}));
  expectConfigError(without(config, "head_dim"),
                    {"hidden_size 1792", "num_attention_heads 24", "add \"head_dim\""});
}

TEST(HfConfig, HeadDimAbsentOrNull) {
  json config = with(tinyConfig(), {{"head_dim", nullptr}});
  EXPECT_EQ(importConfig(config).headDim, 4);
  EXPECT_EQ(importConfig(without(config, "head_dim")).headDim, 4);
  json qwen3 = tinyConfig("qwen3");
  EXPECT_EQ(importConfig(without(qwen3, "head_dim")).headDim, 128); // the class's default
  EXPECT_EQ(importConfig(with(qwen3, {{"head_dim", nullptr}})).headDim, 4);
}

TEST(HfConfig, KvHeadsAbsentOrNull) {
  EXPECT_EQ(importConfig(without(tinyConfig(), "num_key_value_heads")).kvHeads, 4);
  EXPECT_EQ(importConfig(with(tinyConfig("mistral"), {{"num_key_value_heads", nullptr}})).kvHeads, 4);
  json mistral = without(with(tinyConfig("mistral"), {{"num_attention_heads", 16}}), "num_key_value_heads");
  EXPECT_EQ(importConfig(mistral).kvHeads, 8);
}

// Case 17: the numbers only inside text_config.
TEST(HfConfig, Case17NestedTextConfig) {
  json config = {{"model_type", "llava"},
                 {"architectures", {"LlavaForConditionalGeneration"}},
                 {"text_config", tinyConfig("mistral")},
                 {"vision_config", {{"hidden_size", 99}, {"num_attention_heads", 3}}},
                 {"torch_dtype", "float16"},
                 {"eos_token_id", 7}};
  config["text_config"].erase("torch_dtype");
  config["text_config"]["eos_token_id"] = 5;
  ModelSpec model = importConfig(config);
  EXPECT_EQ(model.family, Family::Mistral);
  EXPECT_EQ(model.qHeads, 4);
  EXPECT_EQ(model.storedDtype, DType::F16);
  EXPECT_EQ(model.text.eosTokenIds, (std::vector<int32_t>{5, 7}));
  EXPECT_TRUE(hasWarning(model, "only the text model"));
  config["text_config"]["model_type"] = "gemma3_text";
  expectConfigError(config, {"/text_config/model_type", "\"gemma3_text\"", "gemma: (1 + w) norms"});
}

// A nested config is saved without what equals its class's defaults (LLaVA 1.5 and 1.6, Pixtral): the sizes of the
// classes are taken and said. At the top they are always written, so there one that is missing is an error.
TEST(HfConfig, NestedConfigWithoutItsClassDefaults) {
  struct {
    const char *type;
    json text;
    int64_t hidden, layers, heads, kvHeads, headDim, ffn, vocab;
  } cases[] = {
      {"llama", {{"vocab_size", 32064}}, 4096, 32, 32, 32, 128, 11008, 32064},
      {"mistral", {{"num_key_value_heads", 8}, {"sliding_window", nullptr}}, 4096, 32, 32, 8, 128, 14336, 32000},
      {"mistral",
       {{"hidden_size", 5120}, {"num_hidden_layers", 40}, {"head_dim", 128}, {"sliding_window", nullptr}},
       5120, 40, 32, 8, 128, 14336, 32000},
      {"qwen2", json::object(), 4096, 32, 32, 32, 128, 22016, 151936},
      {"qwen3", {{"num_key_value_heads", 4}}, 4096, 32, 32, 4, 128, 22016, 151936},
  };
  for (auto &one : cases) {
    SCOPED_TRACE(std::string(one.type) + " " + one.text.dump());
    one.text["model_type"] = one.type;
    ModelSpec model = importConfig({{"model_type", "llava"}, {"text_config", one.text}});
    EXPECT_EQ(model.hidden, one.hidden);
    EXPECT_EQ(model.layers, one.layers);
    EXPECT_EQ(model.qHeads, one.heads);
    EXPECT_EQ(model.kvHeads, one.kvHeads);
    EXPECT_EQ(model.headDim, one.headDim);
    EXPECT_EQ(model.ffn, one.ffn);
    EXPECT_EQ(model.vocab, one.vocab);
    EXPECT_TRUE(hasWarning(model, "num_attention_heads 32"));
    EXPECT_TRUE(hasWarning(model, "which are not stated, as transformers does for " + std::string(one.type)));
    expectConfigError(one.text, {"\" is missing; add it"});
  }
}

// Case 18: rope theta inside rope_parameters; rope_scaling with neither factor nor type.
TEST(HfConfig, Case18RopeParameters) {
  json base = without(tinyConfig("qwen3"), "rope_theta");
  EXPECT_EQ(importConfig(with(base, {{"rope_parameters", {{"rope_theta", 5e6}, {"rope_type", "default"}}}}))
                .rope.theta,
            5e6);
  EXPECT_EQ(importConfig(with(base, {{"rope_parameters", {{"rope_theta", 1e6}}}})).rope.theta, 1e6);
  // Inside wins over outside, as in transformers.
  EXPECT_EQ(importConfig(with(tinyConfig(), {{"rope_parameters", {{"rope_theta", 1e6}}}})).rope.theta, 1e6);
  // rope_parameters for theta beside a rope_scaling of its own.
  ModelSpec both = importConfig(with(base, {{"rope_parameters", {{"rope_theta", 1e6}}},
                                            {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}));
  EXPECT_EQ(both.rope.theta, 1e6);
  EXPECT_EQ(both.rope.scaling, "linear");
  ModelSpec absent = importConfig(base);
  EXPECT_EQ(absent.rope.theta, 10000);
  EXPECT_TRUE(hasWarning(absent, "no rope_theta"));
}

TEST(HfConfig, Case18MropeWithoutFactorOrType) {
  for (json scaling :
       {json{{"mrope_section", {1, 1, 1}}}, json{{"mrope_section", {1, 1, 1}}, {"type", "mrope"}},
        json{{"mrope_section", {1, 1, 1}}, {"type", "default"}, {"rope_type", "default"}}}) {
    ModelSpec model = importConfig(with(tinyConfig("qwen2"), {{"rope_scaling", scaling}}));
    EXPECT_EQ(model.rope.scaling, "default");
    EXPECT_TRUE(hasWarning(model, "mrope_section is ignored"));
    EXPECT_EQ(model.rope.invFreq, importConfig(tinyConfig("qwen2")).rope.invFreq);
  }
  EXPECT_EQ(importConfig(with(tinyConfig(), {{"rope_scaling", json::object()}})).rope.scaling, "default");
  expectConfigError(with(tinyConfig(), {{"rope_scaling", {{"factor", 4.0}}}}),
                    {"/rope_scaling", "no rope_type"});
}

TEST(HfConfig, RopeScalingErrors) {
  auto scaled = [](json scaling) { return with(tinyConfig(), {{"rope_scaling", scaling}}); };
  expectConfigError(scaled({{"rope_type", "longrope"}, {"factor", 2.0}}),
                    {"\"longrope\" is not supported", "two sets"});
  expectConfigError(scaled({{"type", "su"}}), {"\"su\" is not supported"});
  expectConfigError(scaled({{"type", "linear"}}), {"needs a \"factor\""});
  expectConfigError(scaled({{"type", "linear"}, {"factor", 0}}), {"/rope_scaling/factor", "positive"});
  expectConfigError(scaled({{"type", "linear"}, {"factor", "4"}}),
                    {"/rope_scaling/factor", "expected a number"});
  expectConfigError(scaled({{"rope_type", "llama3"}, {"factor", 8}}), {"needs \"low_freq_factor\""});
  expectConfigError(
      scaled({{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
      {"high_freq_factor 4 must be above low_freq_factor 4"});
  expectConfigError(scaled("linear"), {"expected an object"});
  expectConfigError(with(tinyConfig(), {{"rope_theta", -1}}), {"/rope_theta", "positive"});
  expectConfigError(with(tinyConfig(), {{"partial_rotary_factor", 0.5}}), {"partial rotary", "0.5"});
}

// Dynamic scaling begins behind max_position_embeddings, where no plan serves.
TEST(HfConfig, DynamicScalingIsNoneWithinTheModelsLength) {
  const json plain = with(tinyConfig(), {{"rope_scaling", nullptr}});
  for (const char *key : {"type", "rope_type"}) {
    ModelSpec dynamic = importConfig(with(plain, {{"rope_scaling", {{key, "dynamic"}, {"factor", 2.0}}}}));
    EXPECT_EQ(dynamic.rope.invFreq, importConfig(plain).rope.invFreq);
    EXPECT_EQ(dynamic.maxPositions, importConfig(plain).maxPositions);
    EXPECT_TRUE(hasWarning(dynamic, "\"dynamic\" changes nothing up to max_position_embeddings, 64"));
  }
}

TEST(HfConfig, YarnExtendsTheMaximumLength) {
  json scaling = {{"factor", 4.0}, {"original_max_position_embeddings", 32768}, {"type", "yarn"}};
  ModelSpec model = importConfig(
      with(tinyConfig("qwen2"), {{"max_position_embeddings", 32768}, {"rope_scaling", scaling}}));
  EXPECT_EQ(model.maxPositions, 131072);
  EXPECT_NEAR(model.rope.attentionFactor, 1.138629436, 1e-9);
}

TEST(HfConfig, Windows) {
  auto windows = [](const json &config) {
    std::vector<int64_t> out;
    for (const AttentionSpec &layer : importConfig(config).attention)
      out.push_back(layer.window);
    return out;
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(windows(with(tinyConfig("mistral"), {{"sliding_window", 9}})), (List{9, 9}));
  EXPECT_EQ(windows(tinyConfig("mistral")), (List{0, 0})); // null
  EXPECT_EQ(windows(without(tinyConfig("mistral"), "sliding_window")), (List{4096, 4096}));
  json qwen = with(tinyConfig("qwen2"), {{"sliding_window", 9}, {"max_window_layers", 1}});
  EXPECT_EQ(windows(with(qwen, {{"use_sliding_window", false}})), (List{0, 0}));
  EXPECT_EQ(windows(with(qwen, {{"use_sliding_window", true}})), (List{0, 9}));
  // Switched on without a number, it has the class's.
  const json on = without(with(qwen, {{"use_sliding_window", true}}), "sliding_window");
  EXPECT_EQ(windows(on), (List{0, 4096}));
  EXPECT_TRUE(hasWarning(importConfig(on), "taking 4096, as transformers does for qwen2"));
  EXPECT_EQ(windows(with(on, {{"sliding_window", nullptr}})), (List{0, 0}));
  EXPECT_EQ(windows(without(qwen, "sliding_window")), (List{0, 0}));
  EXPECT_EQ(windows(with(qwen, {{"use_sliding_window", true},
                                {"layer_types", {"sliding_attention", "full_attention"}}})),
            (List{9, 0}));
  EXPECT_EQ(windows(with(tinyConfig(), {{"sliding_window", 9}})), (List{0, 0})); // llama has none
  expectConfigError(with(tinyConfig("mistral"), {{"sliding_window", 0}}),
                    {"/sliding_window", "at least 1 token"});
  expectConfigError(with(qwen, {{"layer_types", {"full_attention"}}}), {"1 entries for 2 layers"});
  expectConfigError(with(tinyConfig("qwen3"), {{"layer_types", {"full_attention", "odd_attention"}}}),
                    {"/layer_types/1", "unsupported: \"odd_attention\""});
}

TEST(HfConfig, DtypeSpellings) {
  json base = without(tinyConfig(), "torch_dtype");
  EXPECT_EQ(importConfig(with(base, {{"dtype", "float16"}})).storedDtype, DType::F16);
  EXPECT_EQ(importConfig(with(base, {{"torch_dtype", "torch.float32"}})).storedDtype, DType::F32);
  EXPECT_EQ(importConfig(with(base, {{"torch_dtype", "auto"}})).storedDtype, DType::BF16);
  EXPECT_EQ(importConfig(base).storedDtype, DType::BF16);
  expectConfigError(with(base, {{"dtype", "int8"}}), {"/dtype", "\"int8\" is not supported"});
}

TEST(HfConfig, EosIsANumberOrAList) {
  EXPECT_EQ(importConfig(with(tinyConfig(), {{"eos_token_id", 3}})).text.eosTokenIds,
            (std::vector<int32_t>{3}));
  EXPECT_EQ(importConfig(with(tinyConfig(), {{"eos_token_id", {5, 3, 5}}})).text.eosTokenIds,
            (std::vector<int32_t>{5, 3}));
  EXPECT_TRUE(importConfig(with(tinyConfig(), {{"eos_token_id", nullptr}})).text.eosTokenIds.empty());
  ModelSpec outside = importConfig(with(tinyConfig(), {{"eos_token_id", 32}}));
  EXPECT_TRUE(outside.text.eosTokenIds.empty());
  EXPECT_TRUE(hasWarning(outside, "32 lies outside the vocabulary of 32"));
  expectConfigError(with(tinyConfig(), {{"eos_token_id", -2}}), {"/eos_token_id", "-2"});
  // The first Llama's way to say "none".
  ModelSpec none = importConfig(with(tinyConfig(), {{"eos_token_id", {2, -1}}, {"pad_token_id", -1}}));
  EXPECT_EQ(none.text.eosTokenIds, (std::vector<int32_t>{2}));
  EXPECT_FALSE(none.text.padTokenId);
  expectConfigError(with(tinyConfig(), {{"eos_token_id", "x"}}), {"/eos_token_id", "expected an integer"});
}

TEST(HfConfig, TyingDefaultsToFalse) {
  for (const char *type : {"llama", "mistral", "qwen2", "qwen3"}) {
    ModelSpec model = importConfig(without(tinyConfig(type), "tie_word_embeddings"));
    EXPECT_FALSE(model.tiedEmbeddings);
    EXPECT_TRUE(tensor(model, "lm_head.weight"));
  }
  ModelSpec tied = importConfig(with(tinyConfig(), {{"tie_word_embeddings", true}}));
  EXPECT_TRUE(tied.tiedEmbeddings);
  EXPECT_FALSE(tensor(tied, "lm_head.weight"));
}

TEST(HfConfig, Activations) {
  EXPECT_EQ(importConfig(with(tinyConfig(), {{"hidden_act", "gelu_pytorch_tanh"}})).activation, "gelu_tanh");
  EXPECT_EQ(importConfig(with(tinyConfig(), {{"hidden_act", "gelu"}})).activation, "gelu");
  expectConfigError(with(tinyConfig(), {{"hidden_act", "relu2"}}),
                    {"/hidden_act", "\"relu2\" is not supported"});
}

TEST(HfConfig, ImpossibleDimensions) {
  expectConfigError(without(tinyConfig(), "hidden_size"), {"\"hidden_size\" is missing"});
  expectConfigError(with(tinyConfig(), {{"hidden_size", "16"}}),
                    {"/hidden_size", "expected an integer, found a string"});
  expectConfigError(with(tinyConfig(), {{"num_key_value_heads", 3}}), {"4 query heads", "3 KV heads"});
  expectConfigError(with(tinyConfig(), {{"head_dim", 7}}), {"head dimension is 7", "even"});
  expectConfigError(with(tinyConfig(), {{"num_hidden_layers", 2000000000}}), {"2000000000", "4096"});
  expectConfigError(with(tinyConfig(), {{"num_hidden_layers", 0}}), {"between 1 and 4096"});
  expectConfigError(with(tinyConfig(), {{"vocab_size", -5}}), {"/vocab_size", "between 1 and", "found -5"});
  expectConfigError(with(tinyConfig(), {{"num_attention_heads", 0}, {"head_dim", nullptr}}),
                    {"/num_attention_heads", "between 1 and 8192, found 0"});
  expectConfigError(with(tinyConfig(), {{"num_key_value_heads", 0}}), {"KV heads is 0"});
  expectConfigError(with(tinyConfig(), {{"rms_norm_eps", 0}}), {"/rms_norm_eps"});
  expectConfigError(with(tinyConfig(), {{"hidden_size", 9e18}}), {"/hidden_size"});
}

} // namespace
