#include "passes/exec/Workspace.h"

#include "passes/exec/KernelScratch.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

// A CPU rank's regions (weights, arena, pages, angles, f32 copies) end on pages of this size.
static constexpr uint64_t kPage = 4096, kRegions = 5;

int64_t llmc::exec::maxRows(Rows rows, dist::LimitsAttr limits) {
  return rows == Rows::Tokens ? limits.getMaxBatchedTokens() : limits.getMaxLogitsRows();
}

uint64_t llmc::exec::bufferBytes(BufferType type, dist::LimitsAttr limits) {
  return uint64_t(maxRows(type.getRows(), limits)) * type.getCols() * (type.getElement().getIntOrFloatBitWidth() / 8);
}

static bool is16Bit(Type type) { return type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 16; }

// The CPU computes in f32. An op on 16-bit activations works on f32 copies of its operands, which live for that op.
static uint64_t f32CopyBytes(Operation &op, dist::LimitsAttr limits) {
  uint64_t bytes = 0;
  if (!isExecuted(&op) || isa<SendOp, RecvOp>(op)) // which move bytes as they are
    return 0;
  for (Value operand : op.getOperands())
    if (auto type = dyn_cast<BufferType>(operand.getType()); type && is16Bit(type.getElement()))
      bytes += roundUp(uint64_t(maxRows(type.getRows(), limits)) * type.getCols() * 4, 64);
  return bytes;
}

// 16-bit norm weights and biases are widened once.
static uint64_t f32VectorBytes(ProgramOp program) {
  llvm::SetVector<Value> vectors;
  for (Operation &op : program.getBody().front()) {
    Value matrix;
    if (auto linear = dyn_cast<LinearOp>(op))
      matrix = linear.getWeight();
    else if (auto embedding = dyn_cast<EmbeddingOp>(op))
      matrix = embedding.getTable();
    for (Value operand : op.getOperands())
      if (auto type = dyn_cast<WeightType>(operand.getType()); type && operand != matrix && is16Bit(type.getElement()))
        vectors.insert(operand);
  }
  uint64_t bytes = 0;
  for (Value vector : vectors)
    bytes += uint64_t(cast<WeightType>(vector.getType()).getCols()) * 4;
  return bytes;
}

// One table of angles for all layers that turn alike.
static uint64_t angleBytes(ProgramOp program, uint64_t tokens) {
  llvm::SetVector<std::tuple<Attribute, Attribute, uint64_t>> tables;
  uint64_t bytes = 0;
  for (auto rope : program.getBody().getOps<RopeOp>())
    if (tables.insert({rope.getInvFreqAttr(), rope.getAttentionFactorAttr(), uint64_t(rope.getRotaryDim())}))
      bytes += roundUp(tokens * rope.getRotaryDim() * 4, 64);
  return bytes;
}

static uint64_t cpuWorkspace(ProgramOp program, dist::LimitsAttr limits, uint64_t team) {
  uint64_t tokens = limits.getMaxBatchedTokens();
  uint64_t scratch = 0, copies = 0; // kernels run one after the other and share their scratch
  for (Operation &op : program.getBody().front()) {
    copies = std::max(copies, f32CopyBytes(op, limits));
    if (auto linear = dyn_cast<LinearOp>(op))
      scratch = std::max(scratch, cpuLinearScratch(team, maxRows(linear.getOut().getType().getRows(), limits),
                                                   linear.getInput().getType().getCols()));
    else if (auto attention = dyn_cast<AttentionOp>(op))
      scratch = std::max(scratch, cpuAttentionScratch(team, attention.getQHeads(), attention.getKvHeads(),
                                                      attention.getHeadDim(), tokens, limits.getMaxModelLen()));
  }
  return roundUp(scratch, 64) + copies + angleBytes(program, tokens) + f32VectorBytes(program) + kRegions * kPage;
}

static uint64_t cudaWorkspace(ProgramOp program, dist::LimitsAttr limits) {
  uint64_t seqs = limits.getMaxNumSeqs(), rows = limits.getMaxLogitsRows();
  uint64_t attentionScratch = 0, constants = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      attentionScratch = std::max(attentionScratch, cudaAttentionScratch(seqs, attention.getQHeads(), attention.getHeadDim()));
      constants += uint64_t(attention.getQHeads()) * 2; // which KV head each query head reads
    } else if (auto rope = dyn_cast<RopeOp>(op)) {
      constants += uint64_t(rope.getRotaryDim()) / 2 * 4; // frequencies
    } else if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getBias()) {
      constants += is16Bit(linear.getOut().getType().getElement()) ? uint64_t(linear.getOut().getType().getCols()) * 2 : 0;
    }
  }
  return kCudaProductWorkspace + attentionScratch + constants + rows * kCudaTokenBytes +
         cudaStepInputs(limits.getMaxBatchedTokens(), seqs, rows, limits.getMaxModelLen(), limits.getPageSize());
}

uint64_t llmc::exec::workspaceBytes(ProgramOp program, dist::LimitsAttr limits, StringRef kind, int64_t ranksOnHost) {
  if (kind == "cpu")
    return cpuWorkspace(program, limits, ceilDiv(kCpuCores, std::max<int64_t>(ranksOnHost, 1)));
  return cudaWorkspace(program, limits);
}

// What NCCL holds for an op; a rank has one communicator, and ops share it.
static uint64_t ncclBytes(Operation &op) {
  auto comm = op.getAttrOfType<CommAttr>("comm");
  auto group = op.getAttrOfType<DenseI64ArrayAttr>("group");
  if (!comm || comm.getValue() != Comm::Nccl || !group)
    return 0;
  uint64_t ranks = group.size(), peers = 0;
  if (auto gather = dyn_cast<GatherOp>(op))
    peers = 1 + (gather.getOut() ? ranks : 0);
  else if (isa<AllGatherOp>(op))
    peers = 2 * ranks;
  return kCudaNcclGroup + peers * kCudaNcclPeer;
}

namespace {
// Inboxes of sums that kernels push to other members, and of the tokens that the members draw together.
struct PushedSums {
  uint64_t ranks = 0, oneBytes = 0, oneRows = 0, twoBytes = 0, twoRows = 0, rowBytes = 0;

  void add(AllReduceOp reduce, dist::LimitsAttr limits) {
    uint64_t whole = bufferBytes(reduce.getData().getType(), limits);
    uint64_t row = whole / maxRows(reduce.getData().getType().getRows(), limits);
    auto grow = [&](int64_t most, uint64_t &mostBytes, uint64_t &mostRows) {
      if (most == 0)
        return;
      uint64_t bytes = std::min<uint64_t>(most, whole);
      ranks = reduce.getGroup().size();
      mostBytes = std::max(mostBytes, bytes);
      mostRows = std::max(mostRows, bytes / row);
      rowBytes = std::max(rowBytes, row);
    };
    grow(reduce.getOneShotBytes(), oneBytes, oneRows);
    grow(reduce.getTwoShotBytes(), twoBytes, twoRows);
  }
  uint64_t bytes(dist::LimitsAttr limits) const {
    if (ranks == 0)
      return 0;
    return (oneBytes ? cudaOneShotInbox(ranks, oneBytes, rowBytes, oneRows) : 0) +
           (twoBytes ? cudaTwoShotInbox(ranks, twoBytes, rowBytes, twoRows) : 0) + kCudaSumStates +
           cudaTokenBox(ranks, limits.getMaxLogitsRows());
  }
};
} // namespace

uint64_t llmc::exec::communicationBytes(ProgramOp program, dist::LimitsAttr limits, StringRef kind, int64_t stages,
                                        llvm::function_ref<bool(int64_t)> reaches) {
  // Messages to other stages, in as many slots as can be under way: on CPUs two of every send; on GPUs one a step in flight and one
  // more, where the receiver reads them there, and none where they go through the host's memory.
  uint64_t slots = kind == "cpu" ? 2 : std::max<int64_t>(stages, 1) + 1;
  struct Channel {
    uint64_t sends = 0, largest = 0;
  };
  llvm::DenseMap<int64_t, Channel> channels; // by peer
  uint64_t scratch = 0, nccl = 0;
  PushedSums pushed;
  for (Operation &op : program.getBody().front()) {
    if (auto send = dyn_cast<SendOp>(op); send && (kind == "cpu" || reaches(send.getPeer()))) {
      Channel &channel = channels[send.getPeer()];
      ++channel.sends;
      channel.largest = std::max(channel.largest, bufferBytes(send.getInput().getType(), limits));
    }
    if (kind == "cpu")
      continue; // collectives read the other ranks' memory where it lies
    nccl = std::max(nccl, ncclBytes(op));
    // On GPUs what is gathered arrives one part behind the other first, and sums that are pushed have inboxes.
    BufferType gathered;
    if (auto gather = dyn_cast<GatherOp>(op); gather && gather.getOut())
      gathered = cast<BufferType>(gather.getOut().getType());
    else if (auto gather = dyn_cast<AllGatherOp>(op))
      gathered = gather.getOut().getType();
    if (gathered)
      scratch = std::max(scratch, bufferBytes(gathered, limits) / maxRows(gathered.getRows(), limits) *
                                      std::max(maxRows(gathered.getRows(), limits), limits.getMaxLogitsRows()));
    else if (auto reduce = dyn_cast<AllReduceOp>(op)) {
      uint64_t whole = bufferBytes(reduce.getData().getType(), limits);
      scratch = std::max(scratch, std::min(whole, kCudaMetScratch));
      pushed.add(reduce, limits);
    }
  }
  uint64_t bytes = scratch + nccl + pushed.bytes(limits);
  for (auto &[peer, channel] : channels)
    bytes += (kind == "cpu" ? channel.sends : 1) * slots * channel.largest;
  return bytes;
}
