// Verifiers of the llm ops: each names the two numbers that disagree.
#include "dialects/llm/LLMDialect.h"

using namespace mlir;
using namespace llmc::llm;

#define GET_OP_CLASSES
#include "dialects/llm/LLMOps.cpp.inc"

// Width of an activation: its last dimension.
static int64_t width(Value v) {
  return cast<RankedTensorType>(v.getType()).getShape().back();
}

// An activation is [dynamic tokens, static width].
static LogicalResult checkActivation(Operation *op, Value v, StringRef name) {
  auto type = cast<RankedTensorType>(v.getType());
  if (!type.isDynamicDim(0) || type.isDynamicDim(1))
    return op->emitOpError() << name << " must be a tensor<?xWIDTHxT>, but is " << type;
  return success();
}

static LogicalResult checkVector(Operation *op, Value weight, int64_t elements, StringRef name) {
  auto type = cast<RankedTensorType>(weight.getType());
  if (type.getRank() != 1 || type.getDimSize(0) != elements)
    return op->emitOpError() << name << " must have " << elements << " elements, but is " << type;
  return success();
}

// Boxes lie inside the tensor and, stacked along the first dimension, give the op's type.
static LogicalResult verifyBoxes(WeightOp op, ArrayAttr boxes, ArrayRef<int64_t> shape) {
  bool vector = shape.size() == 1;
  int64_t rows = vector ? 1 : shape[0], cols = shape.back(), stacked = 0;
  for (BoxAttr box : boxes.getAsRange<BoxAttr>()) {
    if (box.getRow() < 0 || box.getCol() < 0 || box.getRows() < 1 || box.getCols() < 1 ||
        box.getRows() > rows - box.getRow() || box.getCols() > cols - box.getCol())
      return op.emitOpError() << "box rows [" << box.getRow() << ", +" << box.getRows() << ") columns ["
                              << box.getCol() << ", +" << box.getCols() << ") does not lie inside [" << rows
                              << ", " << cols << "]";
    stacked += vector ? box.getCols() : box.getRows();
    if (!vector && box.getCols() != op.getResult().getType().getDimSize(1))
      return op.emitOpError() << "box has " << box.getCols() << " columns in a weight of "
                              << op.getResult().getType();
  }
  if (stacked != op.getResult().getType().getDimSize(0))
    return op.emitOpError() << "is " << op.getResult().getType() << " but its boxes stack up to " << stacked;
  return success();
}

LogicalResult WeightOp::verify() {
  auto type = getResult().getType();
  if (!type.hasStaticShape())
    return emitOpError() << "must have a static shape, but is " << type;
  auto tensor = getTensorAttr();
  if (!tensor)
    return success();
  ArrayRef<int64_t> shape = tensor.getShape();
  if (shape.size() != static_cast<size_t>(type.getRank()))
    return emitOpError() << "is " << type << " but its tensor has shape [" << shape << "]";
  if (!getBoxes()) {
    if (shape != type.getShape())
      return emitOpError() << "is " << type << " but its tensor has shape [" << shape << "]";
    return success();
  }
  return verifyBoxes(*this, *getBoxes(), shape);
}

LogicalResult EmbeddingOp::verify() {
  if (failed(checkActivation(*this, getResult(), "result")))
    return failure();
  auto table = cast<RankedTensorType>(getTable().getType());
  if (table.getRank() != 2 || table.getDimSize(1) != width(getResult()))
    return emitOpError() << "table " << table << " does not give rows of " << width(getResult())
                         << " elements";
  if (static_cast<int64_t>(getVocabBegin()) < 0)
    return emitOpError() << "vocab_begin must not be negative";
  return success();
}

LogicalResult RmsNormOp::verify() {
  if (failed(checkActivation(*this, getInput(), "input")))
    return failure();
  return checkVector(*this, getWeight(), width(getInput()), "weight");
}

LogicalResult AddRmsNormOp::verify() {
  if (failed(checkActivation(*this, getInput(), "input")))
    return failure();
  return checkVector(*this, getWeight(), width(getInput()), "weight");
}

LogicalResult LinearOp::verify() {
  if (failed(checkActivation(*this, getInput(), "input")))
    return failure();
  if (getWeights().empty() || getWeights().size() != getOutputs().size())
    return emitOpError() << "has " << getWeights().size() << " weights for " << getOutputs().size()
                         << " results";
  if (!getBiases().empty() && getBiases().size() != getWeights().size())
    return emitOpError() << "has " << getBiases().size() << " biases for " << getWeights().size()
                         << " weights";
  for (auto [i, weight, output] : llvm::enumerate(getWeights(), getOutputs())) {
    if (failed(checkActivation(*this, output, "result")))
      return failure();
    auto type = cast<RankedTensorType>(weight.getType());
    if (type.getRank() != 2 || type.getDimSize(0) != width(output) || type.getDimSize(1) != width(getInput()))
      return emitOpError() << "weight " << i << " is " << type << " but maps " << width(getInput())
                           << " columns to " << width(output);
    if (!getBiases().empty() && failed(checkVector(*this, getBiases()[i], width(output), "bias")))
      return failure();
  }
  return success();
}

static LogicalResult checkHeads(Operation *op, Value v, int64_t headDim, StringRef name) {
  if (headDim < 1 || width(v) % headDim != 0)
    return op->emitOpError() << name << " has " << width(v)
                             << " columns, which is not a multiple of head_dim " << headDim;
  return success();
}

LogicalResult HeadNormOp::verify() {
  if (failed(checkActivation(*this, getInput(), "input")) ||
      failed(checkHeads(*this, getInput(), getHeadDim(), "input")))
    return failure();
  return checkVector(*this, getWeight(), getHeadDim(), "weight");
}

LogicalResult RopeOp::verify() {
  int64_t headDim = getHeadDim(), rotaryDim = getRotaryDim();
  if (failed(checkActivation(*this, getQ(), "q")) || failed(checkActivation(*this, getK(), "k")) ||
      failed(checkHeads(*this, getQ(), headDim, "q")) || failed(checkHeads(*this, getK(), headDim, "k")))
    return failure();
  if (rotaryDim < 2 || rotaryDim % 2 || rotaryDim > headDim)
    return emitOpError() << "rotary_dim " << rotaryDim << " must be even and at most head_dim " << headDim;
  if (static_cast<int64_t>(getInvFreq().size()) * 2 != rotaryDim)
    return emitOpError() << "has " << getInvFreq().size() << " frequencies for rotary_dim " << rotaryDim;
  if (!getQNorm() != !getKNorm())
    return emitOpError() << "needs both norms or none";
  if (getQNorm() && (failed(checkVector(*this, getQNorm(), headDim, "q_norm")) ||
                     failed(checkVector(*this, getKNorm(), headDim, "k_norm"))))
    return failure();
  return success();
}

LogicalResult AttentionOp::verify() {
  int64_t q = getQHeads(), kv = getKvHeads(), dim = getHeadDim();
  if (failed(checkActivation(*this, getQ(), "q")) || failed(checkActivation(*this, getK(), "k")) ||
      failed(checkActivation(*this, getResult(), "result")))
    return failure();
  if (q < 1 || kv < 1 || dim < 1)
    return emitOpError() << "needs at least one query head, one KV head and head_dim 1";
  if (width(getQ()) != q * dim || width(getResult()) != q * dim)
    return emitOpError() << "q and result must have " << q << " heads x " << dim << " = " << q * dim
                         << " columns, but have " << width(getQ()) << " and " << width(getResult());
  if (width(getK()) != kv * dim)
    return emitOpError() << "k and v must have " << kv << " heads x " << dim << " = " << kv * dim
                         << " columns, but have " << width(getK());
  if (getWindow() > (uint64_t(1) << 31) || static_cast<int64_t>(getLayer()) < 0)
    return emitOpError() << "window and layer must not be negative";
  if (auto map = getKvHeadOfQ()) {
    if (static_cast<int64_t>(map->size()) != q)
      return emitOpError() << "kv_head_of_q has " << map->size() << " entries for " << q << " query heads";
    for (int64_t head : *map)
      if (head < 0 || head >= kv)
        return emitOpError() << "kv_head_of_q names KV head " << head << " of " << kv;
  } else if (q % kv) {
    return emitOpError() << q << " query heads over " << kv << " KV heads need kv_head_of_q";
  }
  if (auto ids = getKvHeadIds(); ids && static_cast<int64_t>(ids->size()) != kv)
    return emitOpError() << "kv_head_ids has " << ids->size() << " entries for " << kv << " KV heads";
  return success();
}

llvm::SmallVector<int64_t> llmc::llm::getKvHeadOfQ(AttentionOp op) {
  if (auto map = op.getKvHeadOfQ())
    return llvm::SmallVector<int64_t>(*map);
  int64_t q = op.getQHeads(), group = q / op.getKvHeads();
  llvm::SmallVector<int64_t> map(q);
  for (int64_t i = 0; i < q; ++i)
    map[i] = i / group;
  return map;
}
