#include "compiler/import/build_ir.h"

#include "compiler/import/import.h"
#include "compiler/support/error.h"
#include "dialects/llm/LLMDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace llmc;

namespace {

// Emits the ops of one model. Locations name the layer, or the part of the model outside the layers.
class ModelBuilder {
public:
  ModelBuilder(MLIRContext *context, const ModelSpec &spec, const BuildOptions &options)
      : spec(spec), options(options), builder(context) {
    for (const TensorRef &tensor : spec.tensors)
      tensors[tensor.name] = &tensor;
  }

  OwningOpRef<ModuleOp> build();

private:
  const ModelSpec &spec;
  const BuildOptions &options;
  OpBuilder builder;
  llvm::StringMap<const TensorRef *> tensors;
  llvm::StringMap<Value> weights; // loaded once, whoever uses them
  std::optional<int64_t> layer;
  Location loc = builder.getUnknownLoc();
  Value ids, positions, logitsRows;

  void enter(std::optional<int64_t> newLayer, StringRef name) {
    layer = newLayer;
    loc = NameLoc::get(builder.getStringAttr(name));
  }

  template <typename OpTy, typename... Args>
  OpTy emit(Args &&...args) {
    auto op = builder.create<OpTy>(loc, std::forward<Args>(args)...);
    if (layer)
      llm::setLayer(op, layer);
    return op;
  }

  Type activation(int64_t width) {
    return RankedTensorType::get({ShapedType::kDynamic, width}, options.activationType);
  }

  Value weight(const std::string &name);
  Value linear(Value input, const std::string &name, bool bias, Type elementType = {});
  Value attention(Value x, const std::string &prefix);
  Value feedForward(Value x, const std::string &prefix);
  Value rmsNorm(Value x, const std::string &name) {
    return emit<llm::RmsNormOp>(x, weight(name), builder.getF32FloatAttr(spec.rmsEps), builder.getF32FloatAttr(0));
  }
  void setModuleAttributes(ModuleOp module);
};

} // namespace

Value ModelBuilder::weight(const std::string &name) {
  Value &value = weights[name];
  if (value)
    return value;
  auto found = tensors.find(name);
  if (found == tensors.end())
    throw Error("internal: the importer left out tensor '" + name + "'");
  const TensorRef &ref = *found->second;
  Type element = ref.shape.size() == 1 ? builder.getF32Type() : options.weightType;
  auto tensor = llm::TensorAttr::get(builder.getContext(), ref.file, ref.offset, ref.bytes, dtypeName(ref.dtype),
                                     ref.shape);
  auto op = emit<llm::WeightOp>(RankedTensorType::get(ref.shape, element), builder.getStringAttr(name), tensor,
                                ArrayAttr());
  return value = op.getResult();
}

Value ModelBuilder::linear(Value input, const std::string &name, bool bias, Type elementType) {
  Value w = weight(name + ".weight");
  SmallVector<Value, 1> biases;
  if (bias)
    biases.push_back(weight(name + ".bias"));
  int64_t width = cast<RankedTensorType>(w.getType()).getDimSize(0);
  Type type = RankedTensorType::get({ShapedType::kDynamic, width},
                                    elementType ? elementType : options.activationType);
  return emit<llm::LinearOp>(TypeRange(type), input, ValueRange(w), ValueRange(biases)).getOutputs()[0];
}

Value ModelBuilder::attention(Value x, const std::string &prefix) {
  Value q = linear(x, prefix + "q_proj", spec.qkvBias);
  Value k = linear(x, prefix + "k_proj", spec.qkvBias);
  Value v = linear(x, prefix + "v_proj", spec.qkvBias);
  auto headDim = builder.getI64IntegerAttr(spec.headDim);
  auto eps = builder.getF32FloatAttr(spec.rmsEps);
  if (spec.qkNorm) {
    q = emit<llm::HeadNormOp>(q, weight(prefix + "q_norm.weight"), headDim, eps);
    k = emit<llm::HeadNormOp>(k, weight(prefix + "k_norm.weight"), headDim, eps);
  }
  auto style = spec.rope.style == RopeStyle::NeoX ? llm::RopeStyle::NeoX : llm::RopeStyle::Interleaved;
  auto rope = emit<llm::RopeOp>(
      q.getType(), k.getType(), q, k, positions, Value(), Value(), headDim,
      builder.getI64IntegerAttr(spec.rope.rotaryDim), llm::RopeStyleAttr::get(builder.getContext(), style),
      builder.getDenseF32ArrayAttr(spec.rope.invFreq), builder.getF32FloatAttr(spec.rope.attentionFactor), eps);
  Value out = emit<llm::AttentionOp>(
      q.getType(), rope.getQOut(), rope.getKOut(), v, builder.getI64IntegerAttr(*layer),
      builder.getI64IntegerAttr(spec.qHeads), builder.getI64IntegerAttr(spec.kvHeads), headDim,
      builder.getF32FloatAttr(spec.attentionScale), builder.getI64IntegerAttr(spec.attention[*layer].window),
      builder.getF32FloatAttr(0), DenseI64ArrayAttr(), DenseI64ArrayAttr());
  return linear(out, prefix + "o_proj", spec.oBias);
}

Value ModelBuilder::feedForward(Value x, const std::string &prefix) {
  auto act = llvm::StringSwitch<std::optional<llm::Activation>>(spec.activation)
                 .Case("silu", llm::Activation::Silu)
                 .Case("gelu", llm::Activation::Gelu)
                 .Case("gelu_tanh", llm::Activation::GeluTanh)
                 .Default(std::nullopt);
  if (!act)
    throw Error("activation '" + spec.activation + "' is not supported: use silu, gelu or gelu_tanh");
  Value gate = linear(x, prefix + "gate_proj", spec.mlpBias);
  Value up = linear(x, prefix + "up_proj", spec.mlpBias);
  Value h = emit<llm::GatedActOp>(gate.getType(), gate, up, llm::ActivationAttr::get(builder.getContext(), *act));
  return linear(h, prefix + "down_proj", spec.mlpBias);
}

void ModelBuilder::setModuleAttributes(ModuleOp module) {
  SmallVector<Attribute> files;
  for (const FileRef &file : spec.files)
    files.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("path", builder.getStringAttr(file.path)),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(static_cast<int64_t>(file.bytes)))}));
  module->setAttr(llm::kFilesAttr, builder.getArrayAttr(files));

  auto number = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  module->setAttr("llm.model",
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr("name", builder.getStringAttr(spec.name)),
                       builder.getNamedAttr("model_type", builder.getStringAttr(spec.modelType)),
                       number("hidden", spec.hidden), number("layers", spec.layers), number("q_heads", spec.qHeads),
                       number("kv_heads", spec.kvHeads), number("head_dim", spec.headDim), number("ffn", spec.ffn),
                       number("vocab", spec.vocab), number("max_positions", spec.maxPositions)}));
}

OwningOpRef<ModuleOp> ModelBuilder::build() {
  OwningOpRef<ModuleOp> module(ModuleOp::create(NameLoc::get(builder.getStringAttr(spec.name))));
  setModuleAttributes(*module);

  enter(std::nullopt, "embedding");
  Type index = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  Type logitsType = RankedTensorType::get({ShapedType::kDynamic, spec.vocab}, builder.getF32Type());
  builder.setInsertionPointToEnd(module->getBody());
  auto forward = builder.create<func::FuncOp>(
      loc, "forward", builder.getFunctionType({index, index, index}, {logitsType}));
  Block *entry = forward.addEntryBlock();
  ids = entry->getArgument(0), positions = entry->getArgument(1), logitsRows = entry->getArgument(2);
  builder.setInsertionPointToEnd(entry);

  Value x = emit<llm::EmbeddingOp>(activation(spec.hidden), ids, weight("model.embed_tokens.weight"),
                                   builder.getI64IntegerAttr(0), builder.getF32FloatAttr(1));
  for (int64_t i = 0; i < spec.layers; ++i) {
    std::string prefix = "model.layers." + std::to_string(i) + ".";
    enter(i, "layer." + std::to_string(i));
    Value a = attention(rmsNorm(x, prefix + "input_layernorm.weight"), prefix + "self_attn.");
    x = emit<llm::AddOp>(x.getType(), x, a);
    Value f = feedForward(rmsNorm(x, prefix + "post_attention_layernorm.weight"), prefix + "mlp.");
    x = emit<llm::AddOp>(x.getType(), x, f);
  }
  enter(std::nullopt, "lm_head");
  // Rows are picked behind the final norm, so that the last addition fuses with it as every other one does.
  x = rmsNorm(x, "model.norm.weight");
  x = emit<llm::SelectRowsOp>(x.getType(), x, logitsRows);
  Value logits = linear(x, spec.tiedEmbeddings ? "model.embed_tokens" : "lm_head", false, builder.getF32Type());
  builder.create<func::ReturnOp>(loc, logits);
  return module;
}

OwningOpRef<ModuleOp> llmc::buildModel(MLIRContext *context, const ModelSpec &spec, const BuildOptions &options) {
  return ModelBuilder(context, spec, options).build();
}
