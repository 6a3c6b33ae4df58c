// The programs of a plan, from exec.program ops: internal to the emitter.
#pragma once

#include "dialects/dist/DistDialect.h"
#include "dialects/exec/ExecDialect.h"
#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace llmc {

// Tables that all ranks' programs refer to by index, filled as programs are emitted.
class PlanTables {
public:
  explicit PlanTables(llmrt::plan::PlanT &plan) : plan(plan) {}

  uint32_t tensor(exec::PartAttr part);
  uint32_t ropeTable(llvm::ArrayRef<float> invFreq, float attentionFactor);
  uint32_t group(llvm::ArrayRef<int64_t> ranks);

private:
  llmrt::plan::PlanT &plan;
  llvm::StringMap<uint32_t> tensors;
  std::map<std::pair<std::vector<float>, float>, uint32_t> ropeTables;
  std::map<std::vector<int64_t>, uint32_t> groups;
};

llmrt::plan::DType planDType(mlir::Type type);

std::unique_ptr<llmrt::plan::ProgramT> emitProgram(exec::ProgramOp program, int64_t numPages, PlanTables &tables);

} // namespace llmc
