// Verifiers of the exec ops: shapes agree, and each message has the two numbers that do not.
#include "dialects/exec/ExecDialect.h"

#include "dialects/dist/DistDialect.h"

#include <numeric>

using namespace mlir;
using namespace llmc::exec;

#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.cpp.inc"

bool llmc::exec::isExecuted(Operation *op) { return !isa<WeightOp, BufferOp, ColumnsOp, OutputOp>(op); }

Operation *llmc::exec::nextExecuted(Operation *op) {
  do
    op = op->getNextNode();
  while (op && !isExecuted(op));
  return op;
}

std::pair<BufferOp, int64_t> llmc::exec::resolveView(Value value) {
  int64_t begin = 0;
  while (auto columns = value.getDefiningOp<ColumnsOp>()) {
    begin += columns.getBegin();
    value = columns.getSource();
  }
  return {value.getDefiningOp<BufferOp>(), begin};
}

static LogicalResult same(Operation *op, StringRef what, int64_t a, int64_t b) {
  if (a != b)
    return op->emitOpError() << what << ": " << a << " and " << b << " disagree";
  return success();
}

static LogicalResult sameRows(Operation *op, BufferType a, BufferType b) {
  if (a.getRows() != b.getRows())
    return op->emitOpError() << "mixes rows of " << stringifyRows(a.getRows()) << " and " << stringifyRows(b.getRows());
  return success();
}

// A vector weight of so many elements.
static LogicalResult vectorOf(Operation *op, StringRef what, WeightType weight, int64_t elements) {
  if (weight.getRows() != 1)
    return op->emitOpError() << what << " must be a vector, but has " << weight.getRows() << " rows";
  return same(op, what, weight.getCols(), elements);
}

// Where the module says what devices and ranks there are, a program names no others.
static LogicalResult checkNumbers(ProgramOp program) {
  Operation *module = program->getParentOp();
  if (auto topology = module->getAttrOfType<llmc::dist::TopologyAttr>(llmc::dist::kTopologyAttr))
    if (program.getDevice() >= topology.getDevices().size())
      return program.emitOpError() << "names device " << static_cast<int64_t>(program.getDevice()) << " of "
                                   << topology.getDevices().size();
  auto mesh = module->getAttrOfType<llmc::dist::MeshAttr>(llmc::dist::kMeshAttr);
  if (!mesh)
    return success();
  for (Operation &op : program.getBody().front()) {
    SmallVector<int64_t> ranks;
    if (auto group = op.getAttrOfType<DenseI64ArrayAttr>("group"))
      llvm::append_range(ranks, group.asArrayRef());
    if (auto peer = op.getAttrOfType<IntegerAttr>("peer"))
      ranks.push_back(peer.getInt());
    for (int64_t rank : ranks)
      if (rank < 0 || rank >= mesh.numRanks())
        return op.emitOpError() << "names rank " << rank << " of " << mesh.numRanks();
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  Block &block = getBody().front();
  for (Operation &op : block) {
    if (!isa<ExecDialect>(op.getDialect()))
      return op.emitOpError() << "does not belong in a program";
    if (isa<OutputOp>(op) && op.getNextNode())
      return op.emitOpError() << "must stand last";
  }
  return checkNumbers(*this);
}

LogicalResult WeightOp::verify() {
  WeightType type = getResult().getType();
  int64_t elements = 0;
  for (auto part : getParts().getAsRange<PartAttr>()) {
    auto box = part.getBox();
    if (part.getDstRow() < 0 || part.getDstCol() < 0 || part.getDstRow() + box.getRows() > type.getRows() ||
        part.getDstCol() + box.getCols() > type.getCols())
      return emitOpError() << "part of '" << part.getName() << "', " << box.getRows() << " x " << box.getCols()
                           << " at (" << part.getDstRow() << ", " << part.getDstCol() << "), does not fit " << type;
    elements += box.getRows() * box.getCols();
  }
  if (elements != type.getRows() * type.getCols())
    return emitOpError() << "has parts of " << elements << " elements in all for the "
                         << type.getRows() * type.getCols() << " of " << type;
  return success();
}

LogicalResult ColumnsOp::verify() {
  BufferType from = getSource().getType(), to = getResult().getType();
  if (from.getRows() != to.getRows() || from.getElement() != to.getElement())
    return emitOpError() << "turns " << from << " into " << to;
  if (static_cast<int64_t>(getBegin()) < 0 || static_cast<int64_t>(getBegin()) + to.getCols() > from.getCols())
    return emitOpError() << "takes columns [" << getBegin() << ", +" << to.getCols() << ") of " << from.getCols();
  return success();
}

LogicalResult EmbeddingOp::verify() {
  return same(*this, "columns of table and out", getTable().getType().getCols(), getOut().getType().getCols());
}

LogicalResult RmsNormOp::verify() {
  BufferType in = getInput().getType(), out = getOut().getType();
  if (failed(sameRows(*this, in, out)) || failed(same(*this, "columns of input and out", in.getCols(), out.getCols())))
    return failure();
  return vectorOf(*this, "weight", getWeight().getType(), in.getCols());
}

LogicalResult AddRmsNormOp::verify() {
  BufferType residual = getResidual().getType(), in = getInput().getType(), out = getOut().getType();
  if (failed(sameRows(*this, in, out)) || failed(sameRows(*this, residual, out)) ||
      failed(same(*this, "columns of input and out", in.getCols(), out.getCols())) ||
      failed(same(*this, "columns of residual and out", residual.getCols(), out.getCols())))
    return failure();
  return vectorOf(*this, "weight", getWeight().getType(), in.getCols());
}

LogicalResult AddOp::verify() {
  BufferType residual = getResidual().getType(), in = getInput().getType();
  if (failed(sameRows(*this, residual, in)))
    return failure();
  return same(*this, "columns of input and residual", in.getCols(), residual.getCols());
}

LogicalResult LinearOp::verify() {
  BufferType in = getInput().getType(), out = getOut().getType();
  WeightType weight = getWeight().getType();
  if (failed(sameRows(*this, in, out)) ||
      failed(same(*this, "columns of input and weight", in.getCols(), weight.getCols())) ||
      failed(same(*this, "rows of weight and columns of out", weight.getRows(), out.getCols())))
    return failure();
  return getBias() ? vectorOf(*this, "bias", cast<WeightType>(getBias().getType()), weight.getRows()) : success();
}

// Heads times head_dim must be the columns.
static LogicalResult heads(Operation *op, StringRef what, BufferType buffer, int64_t count, int64_t dim) {
  if (count < 1 || dim < 1)
    return op->emitOpError() << what << " needs at least one head of one element";
  return same(op, (what + " heads x head_dim and columns").str(), count * dim, buffer.getCols());
}

LogicalResult RopeOp::verify() {
  if (failed(heads(*this, "query", getQ().getType(), getQHeads(), getHeadDim())) ||
      failed(heads(*this, "key", getK().getType(), getKvHeads(), getHeadDim())) ||
      failed(same(*this, "twice the frequencies and rotary_dim", 2 * getInvFreq().size(), getRotaryDim())))
    return failure();
  if (getRotaryDim() > getHeadDim())
    return emitOpError() << "rotary_dim " << getRotaryDim() << " exceeds head_dim " << getHeadDim();
  if (!getQNorm() != !getKNorm())
    return emitOpError() << "needs both norms or none";
  if (getQNorm() && (failed(vectorOf(*this, "q_norm", cast<WeightType>(getQNorm().getType()), getHeadDim())) ||
                     failed(vectorOf(*this, "k_norm", cast<WeightType>(getKNorm().getType()), getHeadDim()))))
    return failure();
  return success();
}

LogicalResult KvAppendOp::verify() {
  if (failed(heads(*this, "key", getK().getType(), getKvHeads(), getHeadDim())))
    return failure();
  return heads(*this, "value", getV().getType(), getKvHeads(), getHeadDim());
}

LogicalResult AttentionOp::verify() {
  if (failed(heads(*this, "query", getQ().getType(), getQHeads(), getHeadDim())) ||
      failed(same(*this, "columns of q and out", getQ().getType().getCols(), getOut().getType().getCols())) ||
      failed(same(*this, "entries of kv_head_of_q and query heads", getKvHeadOfQ().size(), getQHeads())))
    return failure();
  for (int64_t head : getKvHeadOfQ())
    if (head < 0 || head >= static_cast<int64_t>(getKvHeads()))
      return emitOpError() << "kv_head_of_q names KV head " << head << " of " << getKvHeads();
  return success();
}

LogicalResult GatedActOp::verify() {
  BufferType gate = getGate().getType(), up = getUp().getType(), out = getOut().getType();
  if (failed(sameRows(*this, gate, out)) || failed(sameRows(*this, up, out)) ||
      failed(same(*this, "columns of gate and out", gate.getCols(), out.getCols())))
    return failure();
  return same(*this, "columns of up and out", up.getCols(), out.getCols());
}

LogicalResult SelectRowsOp::verify() {
  BufferType in = getInput().getType(), out = getOut().getType();
  if (in.getRows() != Rows::Tokens || out.getRows() != Rows::Logits)
    return emitOpError() << "takes rows of tokens to rows of logits, not " << in << " to " << out;
  return same(*this, "columns of input and out", in.getCols(), out.getCols());
}

static LogicalResult checkGather(Operation *op, ArrayRef<int64_t> counts, ArrayRef<int64_t> group, BufferType in,
                                 BufferType out) {
  if (failed(same(op, "counts and members of the group", counts.size(), group.size())))
    return failure();
  if (!llvm::is_contained(counts, in.getCols()))
    return op->emitOpError() << "gives " << in.getCols() << " columns, which none of its counts is";
  if (!out)
    return success();
  return same(op, "sum of counts and columns of out",
              std::accumulate(counts.begin(), counts.end(), int64_t(0)), out.getCols());
}

LogicalResult AllGatherOp::verify() {
  return checkGather(*this, getCounts(), getGroup(), getInput().getType(), getOut().getType());
}

LogicalResult GatherOp::verify() {
  if (getRoot() >= getGroup().size())
    return emitOpError() << "root " << getRoot() << " is not among " << getGroup().size() << " members";
  return checkGather(*this, getCounts(), getGroup(), getInput().getType(),
                     getOut() ? cast<BufferType>(getOut().getType()) : BufferType());
}
