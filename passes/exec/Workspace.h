// Bytes that a rank needs beside weights, activations and KV pages: scratch of the kernels, and buffers in which
// communicators hold what is under way. Estimates from above; `llmrt` prints what it measured beside them.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/exec/ExecDialect.h"

namespace llmc::exec {

// Scratch of the kernels of this program, on a device of this kind ("cpu", "cuda").
uint64_t workspaceBytes(ProgramOp program, dist::LimitsAttr limits, llvm::StringRef kind);

// Copies of messages on their way to other ranks.
uint64_t communicationBytes(ProgramOp program, dist::LimitsAttr limits);

// Rows of a buffer at its largest.
int64_t maxRows(Rows rows, dist::LimitsAttr limits);
uint64_t bufferBytes(BufferType type, dist::LimitsAttr limits);

} // namespace llmc::exec
