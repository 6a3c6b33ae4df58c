// Writes the exec phase's module as a plan (runtime/plan/plan.fbs).
#pragma once

#include "compiler/import/model_spec.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

// What the plan says beside the module: who made it, for what machine, and the text assets.
struct EmitOptions {
  std::string planFolder;      // files below it are named relative to it
  std::string servedName;
  std::string commandLine;
  std::string topologyHash;
  std::vector<std::string> warnings;
};

// The module must have passed exec-verify. Deterministic: the same inputs give the same bytes.
std::vector<uint8_t> emitPlan(mlir::ModuleOp module, const ModelSpec &spec, const EmitOptions &options);

} // namespace llmc
