// Bytes that a rank needs beside weights, activations and KV pages: scratch of the kernels, and buffers in which
// communicators hold what is under way. Never less than the runtime takes; `llmrt` prints what it measured beside them.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/exec/ExecDialect.h"

namespace llmc::exec {

// Cores of one machine that the ledger provides for; its CPU ranks share them. With more, each further thread takes its own
// scratch on top (for 1,536 columns and head_dim 64, 0.7 MB), which `llmrt` shows beside the plan.
inline constexpr int64_t kCpuCores = 16;

// Memory beside weights, arena and pages on a device of this kind ("cpu", "cuda"). `ranksOnHost`: ranks that share the
// device's machine.
uint64_t workspaceBytes(ProgramOp program, dist::LimitsAttr limits, llvm::StringRef kind, int64_t ranksOnHost);

// What is under way to other ranks, or arrives from them in pieces. `stages`: of the pipeline. `reaches(rank)`: whether that rank's
// device reads the memory of this program's.
uint64_t communicationBytes(ProgramOp program, dist::LimitsAttr limits, llvm::StringRef kind, int64_t stages,
                            llvm::function_ref<bool(int64_t)> reaches);

// Rows of a buffer at its largest.
int64_t maxRows(Rows rows, dist::LimitsAttr limits);
uint64_t bufferBytes(BufferType type, dist::LimitsAttr limits);

} // namespace llmc::exec
