#include "passes/exec/Workspace.h"

#include <algorithm>

using namespace mlir;
using namespace llmc;
using namespace llmc::exec;

// A CPU rank's products work on blocks of at most this many rows, widened to f32.
static constexpr uint64_t kLinearBlockRows = 192;
// CPU threads of one rank that the estimate provides for.
static constexpr uint64_t kTeam = 8;
// Attention splits the context into parts of this many keys, and merges at most this many rows of a part.
static constexpr uint64_t kSplitKeys = 512, kSplitRows = 16;
// cuBLAS on Hopper wants 32 MiB; attention's split results take as much again.
static constexpr uint64_t kCudaWorkspace = 64ull << 20;

int64_t llmc::exec::maxRows(Rows rows, dist::LimitsAttr limits) {
  return rows == Rows::Tokens ? limits.getMaxBatchedTokens() : limits.getMaxLogitsRows();
}

uint64_t llmc::exec::bufferBytes(BufferType type, dist::LimitsAttr limits) {
  return uint64_t(maxRows(type.getRows(), limits)) * type.getCols() * (type.getElement().getIntOrFloatBitWidth() / 8);
}

uint64_t llmc::exec::workspaceBytes(ProgramOp program, dist::LimitsAttr limits, StringRef kind) {
  if (kind != "cpu")
    return kCudaWorkspace;
  uint64_t tokens = limits.getMaxBatchedTokens(), seqs = limits.getMaxNumSeqs();
  uint64_t pagesPerSeq = (limits.getMaxModelLen() + limits.getPageSize() - 1) / limits.getPageSize();
  uint64_t splits = (limits.getMaxModelLen() + kSplitKeys - 1) / kSplitKeys;
  uint64_t scratch = 0, angles = 0; // kernels run one after the other and share their scratch
  for (Operation &op : program.getBody().front()) {
    if (auto linear = dyn_cast<LinearOp>(op)) {
      uint64_t rows = std::min(std::max(tokens, seqs), kLinearBlockRows);
      scratch = std::max(scratch, rows * linear.getInput().getType().getCols() * 4 + kTeam * rows * 2 * 16 * 4);
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      uint64_t items = tokens * attention.getQHeads() * 32;
      uint64_t partials = kTeam * 4 * kSplitRows * splits * (attention.getHeadDim() + 2) * 4;
      scratch = std::max(scratch, items + partials + kTeam * (64 << 10));
    } else if (auto rope = dyn_cast<RopeOp>(op)) {
      angles = std::max<uint64_t>(angles, tokens * rope.getRotaryDim() * 4);
    }
  }
  uint64_t metadata = seqs * pagesPerSeq * 4 + tokens * 32; // page tables, ids, positions, slots
  return scratch + angles + metadata;
}

uint64_t llmc::exec::communicationBytes(ProgramOp program, dist::LimitsAttr limits) {
  uint64_t bytes = 0;
  for (Operation &op : program.getBody().front())
    if (auto send = dyn_cast<SendOp>(op))
      bytes += 2 * bufferBytes(send.getInput().getType(), limits); // two messages may be under way
  return bytes;
}
