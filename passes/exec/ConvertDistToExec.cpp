// convert-dist-to-exec: the border between values and memory. Behind it an op says where it reads and writes, so that
// memory can be planned; what may be done in place is decided here, once.
#include "passes/exec/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

namespace llmc::exec {
#define GEN_PASS_DEF_CONVERTDISTTOEXEC
#include "passes/exec/Passes.h.inc"
} // namespace llmc::exec

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

namespace {
// Converts the function of one rank.
class RankConverter {
public:
  RankConverter(func::FuncOp source, int64_t device) : source(source), builder(source), device(device) {}
  LogicalResult convert();

private:
  func::FuncOp source;
  OpBuilder builder;
  int64_t device;
  ProgramOp program;
  llvm::DenseMap<Value, Value> buffers;                 // activation → buffer or columns of one
  std::map<std::vector<void *>, Value> weights;         // stacked llm.weights → exec.weight
  int64_t kvLayers = 0;
  std::string prefix;                                   // of names: "layer.3."
  Operation *lastWeight = nullptr;                      // weights stand first, in order of use

  Value buffer(StringRef name, Type tensor, Value rowsOf = {});
  Value bufferOfWidth(StringRef name, Rows rows, int64_t cols, Type element);
  Value weight(ValueRange parts, StringRef name);
  IntegerAttr layerOf(Operation *op) {
    return builder.getI64IntegerAttr(llm::getLayer(op).value_or(-1));
  }
  IntegerAttr i64(int64_t n) { return builder.getI64IntegerAttr(n); }
  FailureOr<Value> takeOver(Operation *op, OpOperand &operand);

  LogicalResult convertOp(Operation &op);
  void convertLinear(llm::LinearOp op);
  LogicalResult convertRope(llm::RopeOp op);
  void convertAttention(llm::AttentionOp op);
  LogicalResult convertAdd(llm::AddOp op);
  LogicalResult convertAddRmsNorm(llm::AddRmsNormOp op);
  LogicalResult convertAllReduce(dist::AllReduceOp op);
  void convertGather(dist::GatherOp op);
};

const auto kNoKernel = StringAttr();
} // namespace

static Rows rowsOf(Value buffer) { return cast<BufferType>(buffer.getType()).getRows(); }

Value RankConverter::bufferOfWidth(StringRef name, Rows rows, int64_t cols, Type element) {
  auto type = BufferType::get(builder.getContext(), rows, cols, element);
  return builder.create<BufferOp>(source.getLoc(), type, builder.getStringAttr(prefix + name.str()), IntegerAttr(),
                                  IntegerAttr(), IntegerAttr());
}

// A new buffer for a value of this tensor type, with the rows of another buffer.
Value RankConverter::buffer(StringRef name, Type tensor, Value like) {
  auto type = cast<RankedTensorType>(tensor);
  return bufferOfWidth(name, like ? rowsOf(like) : Rows::Tokens, type.getDimSize(1), type.getElementType());
}

// One weight stacked of several: matrices by rows, vectors by columns. The same stack is the same weight.
Value RankConverter::weight(ValueRange parts, StringRef name) {
  std::vector<void *> key;
  for (Value part : parts)
    key.push_back(part.getAsOpaquePointer());
  Value &result = weights[key];
  if (result)
    return result;
  SmallVector<Attribute> pieces;
  int64_t rows = 0, cols = 0;
  Type element;
  std::string ownName = prefix + name.str();
  for (Value value : parts) {
    auto op = value.getDefiningOp<llm::WeightOp>();
    RankedTensorType type = op.getResult().getType();
    element = type.getElementType();
    bool vector = type.getRank() == 1;
    if (parts.size() == 1)
      ownName = op.getName().str();
    for (auto box : op.getBoxes()->getAsRange<llm::BoxAttr>()) {
      pieces.push_back(PartAttr::get(builder.getContext(), op.getName(), op.getTensorAttr(), box, vector ? 0 : rows,
                                     vector ? cols : 0));
      (vector ? cols : rows) += vector ? box.getCols() : box.getRows();
    }
    if (vector)
      rows = 1;
    else
      cols = type.getDimSize(1);
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&program.getBody().front());
  auto type = WeightType::get(builder.getContext(), rows, cols, element, Layout::RowMajor);
  auto op = builder.create<WeightOp>(source.getLoc(), type, builder.getStringAttr(ownName),
                                     builder.getArrayAttr(pieces), IntegerAttr());
  if (lastWeight)
    op->moveAfter(lastWeight);
  lastWeight = op;
  return result = op.getResult();
}

void RankConverter::convertLinear(llm::LinearOp op) {
  StringRef name = op.getWeights().size() == 3 ? "qkv" : op.getWeights().size() == 2 ? "gate_up" : "linear";
  Value input = buffers.lookup(op.getInput());
  Value w = weight(op.getWeights(), name);
  Value bias = op.getBiases().empty() ? Value() : weight(op.getBiases(), (name + "_bias").str());
  int64_t width = 0;
  for (Value output : op.getOutputs())
    width += cast<RankedTensorType>(output.getType()).getDimSize(1);
  Type element = cast<RankedTensorType>(op.getOutputs()[0].getType()).getElementType();
  Value out = bufferOfWidth(name, rowsOf(input), width, element);
  IntegerAttr noRows = i64(0);
  builder.create<LinearOp>(op.getLoc(), input, w, bias, out, noRows, noRows, noRows, noRows, kNoKernel, i64(0), layerOf(op));
  if (op.getOutputs().size() == 1) {
    buffers[op.getOutputs()[0]] = out;
    return;
  }
  int64_t begin = 0;
  for (Value output : op.getOutputs()) {
    int64_t cols = cast<RankedTensorType>(output.getType()).getDimSize(1);
    auto type = BufferType::get(builder.getContext(), rowsOf(out), cols, element);
    buffers[output] = builder.create<ColumnsOp>(op.getLoc(), type, out, i64(begin));
    begin += cols;
  }
}

// The buffer of an operand that the op overwrites. Nobody may read the old value behind the op.
FailureOr<Value> RankConverter::takeOver(Operation *op, OpOperand &operand) {
  for (Operation *user : operand.get().getUsers())
    if (op->isBeforeInBlock(user))
      return op->emitOpError() << "works in place, but its operand " << operand.getOperandNumber() << " is read again by '"
                             << user->getName() << "' behind it";
  return buffers.lookup(operand.get());
}

LogicalResult RankConverter::convertRope(llm::RopeOp op) {
  FailureOr<Value> q = takeOver(op, op.getQMutable()), k = takeOver(op, op.getKMutable());
  if (failed(q) || failed(k))
    return failure();
  Value qNorm = op.getQNorm() ? weight(op.getQNorm(), "q_norm") : Value();
  Value kNorm = op.getKNorm() ? weight(op.getKNorm(), "k_norm") : Value();
  int64_t dim = op.getHeadDim();
  builder.create<RopeOp>(op.getLoc(), *q, *k, qNorm, kNorm, i64(cast<BufferType>(q->getType()).getCols() / dim),
                         i64(cast<BufferType>(k->getType()).getCols() / dim), op.getHeadDimAttr(),
                         op.getRotaryDimAttr(), op.getStyleAttr(), op.getInvFreqAttr(), op.getAttentionFactorAttr(),
                         op.getEpsAttr(), kNoKernel, i64(0), layerOf(op));
  buffers[op.getQOut()] = *q;
  buffers[op.getKOut()] = *k;
  return success();
}

void RankConverter::convertAttention(llm::AttentionOp op) {
  Value q = buffers.lookup(op.getQ());
  builder.create<KvAppendOp>(op.getLoc(), buffers.lookup(op.getK()), buffers.lookup(op.getV()), i64(kvLayers),
                             op.getKvHeadsAttr(), op.getHeadDimAttr(), kNoKernel, i64(0), layerOf(op));
  Value out = buffer("attention", op.getType(), q);
  builder.create<AttentionOp>(op.getLoc(), q, out, i64(kvLayers), op.getQHeadsAttr(), op.getKvHeadsAttr(),
                              op.getHeadDimAttr(), builder.getDenseI64ArrayAttr(llm::getKvHeadOfQ(op)),
                              op.getScaleAttr(), op.getWindowAttr(), op.getSoftcapAttr(), kNoKernel, i64(0),
                              layerOf(op));
  buffers[op.getResult()] = out;
  ++kvLayers;
}

LogicalResult RankConverter::convertAdd(llm::AddOp op) {
  // Either side can be the one that is added to.
  bool lhsDies = llvm::none_of(op.getLhs().getUsers(), [&](Operation *user) { return op->isBeforeInBlock(user); });
  OpOperand &residual = lhsDies ? op.getLhsMutable() : op.getRhsMutable();
  OpOperand &input = lhsDies ? op.getRhsMutable() : op.getLhsMutable();
  FailureOr<Value> target = takeOver(op, residual);
  if (failed(target))
    return failure();
  builder.create<AddOp>(op.getLoc(), buffers.lookup(input.get()), *target, kNoKernel, i64(0), layerOf(op));
  buffers[op.getResult()] = *target;
  return success();
}

LogicalResult RankConverter::convertAddRmsNorm(llm::AddRmsNormOp op) {
  FailureOr<Value> residual = takeOver(op, op.getResidualMutable());
  if (failed(residual))
    return failure();
  Value out = buffer("normed", op.getNormed().getType(), *residual);
  builder.create<AddRmsNormOp>(op.getLoc(), *residual, buffers.lookup(op.getInput()), weight(op.getWeight(), "norm"),
                               out, op.getEpsAttr(), op.getWeightOffsetAttr(), kNoKernel, i64(0), layerOf(op));
  buffers[op.getSum()] = *residual;
  buffers[op.getNormed()] = out;
  return success();
}

LogicalResult RankConverter::convertAllReduce(dist::AllReduceOp op) {
  FailureOr<Value> data = takeOver(op, op.getInputMutable());
  if (failed(data))
    return failure();
  builder.create<AllReduceOp>(op.getLoc(), *data, op.getGroupAttr(), op.getSeqAttr(), CommAttr(), AlgorithmAttr(),
                              i64(0), i64(0), kNoKernel, i64(0), layerOf(op));
  buffers[op.getResult()] = *data;
  return success();
}

void RankConverter::convertGather(dist::GatherOp op) {
  Value input = buffers.lookup(op.getInput()), out;
  if (op.getResult()) {
    out = buffer("logits", op.getResult().getType(), input);
    buffers[op.getResult()] = out;
  }
  builder.create<GatherOp>(op.getLoc(), input, out, builder.getDenseI64ArrayAttr(op.getTiles().getSizes()),
                           op.getRootAttr(), op.getGroupAttr(), op.getSeqAttr(), CommAttr(), AlgorithmAttr(), kNoKernel,
                           i64(0), layerOf(op));
}

LogicalResult RankConverter::convertOp(Operation &op) {
  auto layer = llm::getLayer(&op);
  prefix = layer ? "layer." + std::to_string(*layer) + "." : "";
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](llm::WeightOp) { return success(); }) // made where it is used
      .Case([&](llm::EmbeddingOp e) {
        Value out = buffer("residual", e.getType());
        builder.create<EmbeddingOp>(e.getLoc(), weight(e.getTable(), "embedding"), out, e.getVocabBeginAttr(),
                                    e.getScaleAttr(), kNoKernel, i64(0), layerOf(e));
        buffers[e.getResult()] = out;
        return success();
      })
      .Case([&](llm::RmsNormOp n) {
        Value input = buffers.lookup(n.getInput()), out = buffer("normed", n.getType(), input);
        builder.create<RmsNormOp>(n.getLoc(), input, weight(n.getWeight(), "norm"), out, n.getEpsAttr(),
                                  n.getWeightOffsetAttr(), kNoKernel, i64(0), layerOf(n));
        buffers[n.getResult()] = out;
        return success();
      })
      .Case([&](llm::LinearOp l) {
        convertLinear(l);
        return success();
      })
      .Case([&](llm::AttentionOp a) {
        convertAttention(a);
        return success();
      })
      .Case([&](llm::GatedActOp g) {
        Value gate = buffers.lookup(g.getGate()), out = buffer("activated", g.getType(), gate);
        builder.create<GatedActOp>(g.getLoc(), gate, buffers.lookup(g.getUp()), out, g.getActAttr(), kNoKernel, i64(0),
                                   layerOf(g));
        buffers[g.getResult()] = out;
        return success();
      })
      .Case([&](llm::SelectRowsOp s) {
        auto type = cast<RankedTensorType>(s.getType());
        Value out = bufferOfWidth("selected", Rows::Logits, type.getDimSize(1), type.getElementType());
        builder.create<SelectRowsOp>(s.getLoc(), buffers.lookup(s.getInput()), out, kNoKernel, i64(0), layerOf(s));
        buffers[s.getResult()] = out;
        return success();
      })
      .Case([&](dist::AllGatherOp g) {
        Value input = buffers.lookup(g.getInput()), out = buffer("gathered", g.getType(), input);
        builder.create<AllGatherOp>(g.getLoc(), input, out, builder.getDenseI64ArrayAttr(g.getTiles().getSizes()),
                                    g.getGroupAttr(), g.getSeqAttr(), CommAttr(), AlgorithmAttr(), kNoKernel, i64(0),
                                    layerOf(g));
        buffers[g.getResult()] = out;
        return success();
      })
      .Case([&](dist::GatherOp g) {
        convertGather(g);
        return success();
      })
      .Case([&](dist::SendOp s) {
        builder.create<SendOp>(s.getLoc(), buffers.lookup(s.getInput()), s.getPeerAttr(), s.getSeqAttr(), CommAttr(),
                               kNoKernel, i64(0), layerOf(s));
        return success();
      })
      .Case([&](dist::RecvOp r) {
        Value out = buffer("received", r.getType());
        builder.create<RecvOp>(r.getLoc(), out, r.getPeerAttr(), r.getSeqAttr(), CommAttr(), kNoKernel, i64(0),
                               layerOf(r));
        buffers[r.getResult()] = out;
        return success();
      })
      .Case([&](func::ReturnOp r) {
        for (Value logits : r.getOperands())
          builder.create<OutputOp>(r.getLoc(), buffers.lookup(logits));
        return success();
      })
      .Case([&](llm::RopeOp r) { return convertRope(r); })
      .Case([&](llm::AddOp a) { return convertAdd(a); })
      .Case([&](llm::AddRmsNormOp a) { return convertAddRmsNorm(a); })
      .Case([&](dist::AllReduceOp a) { return convertAllReduce(a); })
      .Default([](Operation *other) {
        return other->emitOpError() << "has no form in the exec dialect; run the llm and dist pipelines first";
      });
}

LogicalResult RankConverter::convert() {
  auto number = [&](StringRef name) { return source->getAttrOfType<IntegerAttr>(name); };
  program = builder.create<ProgramOp>(source.getLoc(), source.getName(), number(dist::kRankAttr).getInt(),
                                      number(dist::kStageAttr).getInt(), number(dist::kTpIndexAttr).getInt(), device);
  builder.setInsertionPointToEnd(&program.getBody().front());
  for (Operation &op : source.getBody().front())
    if (failed(convertOp(op)))
      return failure();
  return success();
}

namespace {
struct ConvertPass : llmc::exec::impl::ConvertDistToExecBase<ConvertPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      auto rank = function->getAttrOfType<IntegerAttr>(dist::kRankAttr);
      if (!mesh || !rank || rank.getInt() >= mesh.numRanks() || !function->hasAttr(dist::kStageAttr) ||
          !function->hasAttr(dist::kTpIndexAttr)) {
        function.emitError() << "is no rank's function: run the dist pipeline first";
        return signalPassFailure();
      }
      if (failed(RankConverter(function, mesh.getDevices()[rank.getInt()]).convert()))
        return signalPassFailure();
      function.erase();
    }
  }
};
} // namespace
