// config.json -> the numbers of a ModelSpec, with each family's defaults as transformers' configuration
// classes have them.
#include "compiler/import/hf_import.h"

#include "compiler/import/architecture.h"
#include "compiler/import/rope.h"
#include "compiler/import/words.h"

#include <algorithm>
#include <cmath>

namespace llmc {
namespace {

// The bounds are those of checkDimensions; here the key is known.
int64_t sizeFrom(const Json &value, int64_t most) {
  const int64_t size = value.asInt();
  if (size < 1 || size > most)
    value.fail("must lie between 1 and " + std::to_string(most) + ", found " + value.text());
  return size;
}

// The sizes of a model. A text_config inside another config is saved without what equals its class's defaults, so those
// are taken there, with a warning; at the top all are written, and one that is not is a mistake.
class Sizes {
public:
  Sizes(const Json &text, const Json &root, Family family)
      : text_(text), nested_(text.path() != root.path()), family_(family) {}

  int64_t read(const char *key, int64_t usual, int64_t most) {
    if (auto value = text_.get(key))
      return sizeFrom(*value, most);
    if (!nested_)
      text_.fail(std::string("the key \"") + key + "\" is missing; add it, with the number of the model's authors");
    taken_.push_back(std::string(key) + " " + std::to_string(usual));
    return usual;
  }
  void warn(ModelSpec &model) const {
    if (!taken_.empty())
      model.warnings.push_back(text_.where() + ": taking " + listText(taken_) +
                               ", which are not stated, as transformers does for " + familyName(family_));
  }

private:
  const Json &text_;
  const bool nested_;
  const Family family_;
  std::vector<std::string> taken_;
};

int64_t intOr(const Json &config, const char *key, int64_t fallback) {
  auto value = config.get(key);
  return value ? value->asInt() : fallback;
}

bool boolOr(const Json &config, const char *key, bool fallback) {
  auto value = config.get(key);
  return value ? value->asBool() : fallback;
}

// A key of the text model that wrappers sometimes state at the outer level only.
std::optional<Json> getEither(const Json &text, const Json &root, const char *key) {
  auto value = text.get(key);
  return value ? value : root.get(key);
}

double positive(const Json &value) {
  double number = value.asDouble();
  if (!(number > 0) || !std::isfinite(number))
    value.fail("must be a positive number, found " + value.text());
  return number;
}

std::optional<double> positiveIf(const Json &object, const char *key) {
  auto value = object.get(key);
  return value ? std::optional<double>(positive(*value)) : std::nullopt;
}

int64_t headDimension(const Json &text, const ModelSpec &model) {
  auto stated = text.find("head_dim");
  if (stated && !stated->isNull())
    return stated->asInt();
  if (!stated && model.family == Family::Qwen3)
    return 128; // Qwen3Config's default does not follow from the other numbers
  if (model.qHeads < 1 || model.hidden % model.qHeads != 0)
    text.fail("hidden_size " + std::to_string(model.hidden) + " is not a multiple of num_attention_heads " +
              std::to_string(model.qHeads) + ", and no head_dim is given; add \"head_dim\"");
  return model.hidden / model.qHeads;
}

std::string activation(const Json &text) {
  auto value = text.get("hidden_act");
  if (!value)
    return "silu";
  const std::string &name = value->asString();
  if (name == "silu" || name == "swish")
    return "silu";
  if (name == "gelu")
    return "gelu";
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast")
    return "gelu_tanh";
  value->fail("activation " + quote(name) +
              " is not supported; supported are silu, gelu and gelu_pytorch_tanh");
}

// Windows per layer. Qwen: only with use_sliding_window, from layer max_window_layers on, or as layer_types
// says. Mistral: every layer. Where there is a window, transformers takes 4096 when the key is absent and none when it
// is null.
std::vector<AttentionSpec> attentionLayers(const Json &text, ModelSpec &model) {
  std::vector<AttentionSpec> layers(static_cast<size_t>(model.layers));
  const bool qwen = model.family == Family::Qwen2 || model.family == Family::Qwen3;
  const bool inUse = qwen ? boolOr(text, "use_sliding_window", false) : model.family == Family::Mistral;
  int64_t window = 0;
  auto stated = text.find("sliding_window");
  if (stated && !stated->isNull()) {
    window = stated->asInt();
    if (window < 1)
      stated->fail("a sliding window must have at least 1 token, found " + stated->text());
  } else if (!stated && inUse) {
    window = 4096;
    model.warnings.push_back(text.where() + ": no sliding_window; taking 4096, as transformers does for " +
                             familyName(model.family) + " (write null for full attention)");
  }
  if (model.family == Family::Llama && window > 0) {
    model.warnings.push_back(stated->where() + ": sliding_window is ignored; llama has full attention");
    window = 0;
  }
  if (qwen && !inUse)
    window = 0;
  const int64_t firstWindowed = qwen ? intOr(text, "max_window_layers", 28) : 0;
  for (int64_t i = 0; i < model.layers; ++i)
    layers[static_cast<size_t>(i)].window = i >= firstWindowed ? window : 0;

  auto types = text.get("layer_types");
  if (!types || model.family == Family::Llama)
    return layers;
  types->expectArray();
  if (types->size() != layers.size())
    types->fail("layer_types has " + std::to_string(types->size()) + " entries for " +
                std::to_string(layers.size()) + " layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string &type = types->at(i).asString();
    if (type == "full_attention")
      layers[i].window = 0;
    else if (type == "sliding_attention")
      layers[i].window = window;
    else
      types->at(i).fail("unsupported: " + quote(type) +
                        "; supported layer types are full_attention and "
                        "sliding_attention");
  }
  return layers;
}

RopeScaling readScaling(const Json &spec, const Json &text, ModelSpec &model) {
  using Kind = RopeScaling::Kind;
  RopeScaling out;
  std::string type;
  for (const char *key : {"rope_type", "type"})
    if (auto value = spec.get(key); value && type.empty())
      type = value->asString();
  const bool mrope = type == "mrope" || spec.has("mrope_section");
  if (mrope) {
    // Three position axes that are equal for text, so text alone gets the plain rotation.
    model.warnings.push_back(spec.where() +
                             ": mrope_section is ignored: for text all position axes are equal");
    if (type == "mrope")
      type = "default";
  }
  std::optional<double> factor = positiveIf(spec, "factor");
  if (type.empty()) {
    if (factor && *factor != 1)
      spec.fail("a factor of " + spec.get("factor")->text() +
                " but no rope_type; add \"rope_type\": \"linear\", "
                "\"llama3\" or \"yarn\"");
    type = "default";
  }
  if (type == "default") {
    if (factor && *factor != 1)
      model.warnings.push_back(spec.where() + ": rope_type \"default\" ignores factor " +
                               spec.get("factor")->text());
    return out;
  }
  if (type == "dynamic") {
    // Its base grows with the length of a request from max_position_embeddings on, and no plan serves longer ones.
    model.warnings.push_back(spec.where() + ": rope_type \"dynamic\" changes nothing up to max_position_embeddings, " +
                             std::to_string(model.maxPositions) + ", which is the longest that is served");
    return out;
  }
  if (type == "linear")
    out.kind = Kind::Linear;
  else if (type == "llama3")
    out.kind = Kind::Llama3;
  else if (type == "yarn")
    out.kind = Kind::Yarn;
  else
    spec.fail("rope scaling " + quote(type) + " is not supported" +
              (type == "longrope" || type == "su" ? " (it keeps two sets of frequencies, for short and for long requests)"
                                                  : "") +
              "; supported are default, linear, llama3, yarn and dynamic");

  // Outside of rope_scaling this key wins, as in transformers; inside is the usual place.
  for (const Json *place : {&text, &spec})
    if (auto original = place->get("original_max_position_embeddings");
        original && out.originalMaxPositions == 0)
      out.originalMaxPositions = positive(*original);
  const bool statesOriginal = out.originalMaxPositions != 0;
  if (!statesOriginal)
    out.originalMaxPositions = static_cast<double>(model.maxPositions);
  if (!factor && out.kind == Kind::Yarn && statesOriginal)
    factor = static_cast<double>(model.maxPositions) / out.originalMaxPositions;
  if (!factor)
    spec.fail("rope scaling " + quote(type) + " needs a \"factor\"");
  out.factor = *factor;
  if (out.factor < 1)
    model.warnings.push_back(spec.where() + ": a rope factor below 1: " + std::to_string(out.factor));

  if (out.kind == Kind::Llama3) {
    for (auto [key, to] :
         {std::pair{"low_freq_factor", &out.lowFreqFactor}, {"high_freq_factor", &out.highFreqFactor}}) {
      auto value = positiveIf(spec, key);
      if (!value)
        spec.fail(std::string("rope scaling \"llama3\" needs \"") + key + "\"");
      *to = *value;
    }
    if (out.highFreqFactor <= out.lowFreqFactor)
      spec.fail("high_freq_factor " + spec.get("high_freq_factor")->text() +
                " must be above low_freq_factor " + spec.get("low_freq_factor")->text());
  }
  if (out.kind == Kind::Yarn) {
    out.betaFast = positiveIf(spec, "beta_fast").value_or(32);
    out.betaSlow = positiveIf(spec, "beta_slow").value_or(1);
    out.attentionFactor = positiveIf(spec, "attention_factor");
    for (auto [key, to] : {std::pair{"mscale", &out.mscale}, {"mscale_all_dim", &out.mscaleAllDim}})
      if (auto value = spec.get(key); value && value->asDouble() != 0)
        *to = positive(*value);
    out.truncate = boolOr(spec, "truncate", true);
  }
  return out;
}

void readRope(const Json &text, ModelSpec &model) {
  // transformers 5 writes rope_parameters, with theta inside; before, rope_scaling with theta outside.
  // Either may be null or empty.
  std::optional<Json> spec;
  for (const char *key : {"rope_scaling", "rope_parameters"})
    if (auto value = text.get(key); value && !spec) {
      value->expectObject();
      if (value->size() > 0)
        spec = value;
    }
  if (spec && (spec->get("full_attention") || spec->get("sliding_attention")))
    spec->fail("rope parameters that differ by layer type are not supported");
  std::optional<Json> theta = spec ? spec->get("rope_theta") : std::nullopt;
  if (!theta)
    if (auto parameters = text.get("rope_parameters"))
      theta = parameters->get("rope_theta");
  if (!theta)
    theta = text.get("rope_theta");
  model.rope.theta = 10000.0;
  if (theta) {
    model.rope.theta = positive(*theta);
    if (model.rope.theta <= 1)
      theta->fail("the rope base must be above 1, found " + theta->text());
  } else {
    model.warnings.push_back(text.where() + ": no rope_theta; taking 10000, as transformers does");
  }
  for (const Json *place : {&text, spec ? &*spec : &text})
    if (auto partial = place->get("partial_rotary_factor"); partial && partial->asDouble() != 1)
      partial->fail("partial rotary positions are not supported for " + quote(model.modelType) + ", found " +
                    partial->text() + " where only 1 will do");

  model.rope.style = RopeStyle::NeoX;
  model.rope.rotaryDim = model.headDim;
  if (model.headDim < 2 || model.headDim > 8192)
    text.fail("the head dimension is " + std::to_string(model.headDim) + "; it must lie between 2 and 8192");
  RopeScaling scaling = spec ? readScaling(*spec, text, model) : RopeScaling{};
  fillRope(model.rope, scaling);
  // Qwen2.5's cards add yarn to a config whose max_position_embeddings stays at the trained length.
  if (scaling.kind == RopeScaling::Kind::Yarn)
    model.maxPositions = std::max(model.maxPositions,
                                  static_cast<int64_t>(std::min(scaling.originalMaxPositions * scaling.factor,
                                                                static_cast<double>(1 << 30))));
}

std::optional<DType> declaredDtype(const Json &text, const Json &root) {
  std::optional<Json> value;
  for (const Json *place : {&text, &root})
    for (const char *key : {"dtype", "torch_dtype"})
      if (!value)
        value = place->get(key);
  if (!value || (value->isString() && value->asString() == "auto"))
    return std::nullopt;
  std::string name = value->asString();
  if (name.compare(0, 6, "torch.") == 0)
    name.erase(0, 6);
  if (name == "bfloat16")
    return DType::BF16;
  if (name == "float16" || name == "half")
    return DType::F16;
  if (name == "float32" || name == "float")
    return DType::F32;
  value->fail("dtype " + quote(name) + " is not supported; supported are bfloat16, float16 and float32");
}

} // namespace

bool readHfConfig(const Json &root, ModelSpec &model) {
  const Json text = textConfig(root);
  model.family = familyOf(text);
  model.modelType = familyName(model.family);
  const bool qwen = model.family == Family::Qwen2 || model.family == Family::Qwen3;
  Sizes sizes(text, root, model.family);
  model.hidden = sizes.read("hidden_size", 4096, 1 << 20);
  model.layers = sizes.read("num_hidden_layers", 32, 4096);
  model.qHeads = sizes.read("num_attention_heads", 32, 8192);
  const int64_t usualFfn = qwen ? 22016 : model.family == Family::Mistral ? 14336 : 11008;
  model.ffn = sizes.read("intermediate_size", usualFfn, 1 << 24);
  auto vocab = getEither(text, root, "vocab_size");
  constexpr int64_t kMostWords = 1 << 26;
  model.vocab = vocab ? sizeFrom(*vocab, kMostWords) : sizes.read("vocab_size", qwen ? 151936 : 32000, kMostWords);
  sizes.warn(model);

  // Defaults of the configuration classes: absent and null differ.
  auto kvHeads = text.find("num_key_value_heads");
  const int64_t absentKvHeads = model.family == Family::Llama     ? model.qHeads
                                : model.family == Family::Mistral ? 8
                                                                  : 32;
  model.kvHeads = !kvHeads ? absentKvHeads : kvHeads->isNull() ? model.qHeads : kvHeads->asInt();
  model.headDim = headDimension(text, model);
  const int64_t absentPositions = model.family == Family::Llama     ? 2048
                                  : model.family == Family::Mistral ? 131072
                                                                    : 32768;
  model.maxPositions = intOr(text, "max_position_embeddings", absentPositions);
  auto eps = text.get("rms_norm_eps");
  model.rmsEps = eps ? positive(*eps) : 1e-6;
  model.activation = activation(text);
  auto tied = getEither(text, root, "tie_word_embeddings");
  model.tiedEmbeddings = tied ? tied->asBool() : false;

  const bool attentionBias = boolOr(text, "attention_bias", false);
  model.qkNorm = model.family == Family::Qwen3;
  model.qkvBias = model.family == Family::Qwen2 || (model.family != Family::Mistral && attentionBias);
  model.oBias = model.family != Family::Mistral && model.family != Family::Qwen2 && attentionBias;
  model.mlpBias = model.family == Family::Llama && boolOr(text, "mlp_bias", false);
  readRope(text, model);
  model.attentionScale = 1.0 / std::sqrt(static_cast<double>(model.headDim));
  model.attention = attentionLayers(text, model);
  checkDimensions(model, text.where());

  for (const Json *place : {&text, &root}) {
    addEosIds(tokenIds(*place, "eos_token_id"), model.text);
    for (auto [key, to] :
         {std::pair{"bos_token_id", &model.text.bosTokenId}, {"pad_token_id", &model.text.padTokenId}})
      if (std::vector<int64_t> ids = tokenIds(*place, key); !ids.empty() && !*to)
        *to = static_cast<int32_t>(ids.front());
  }
  if (text.path() != root.path())
    model.warnings.push_back(root.where() + ": only the text model (text_config) is compiled");
  if (std::optional<DType> dtype = declaredDtype(text, root)) {
    model.storedDtype = *dtype;
    return true;
  }
  return false;
}

} // namespace llmc
