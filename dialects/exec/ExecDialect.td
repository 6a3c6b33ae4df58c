// The exec dialect: one program a rank, over planned buffers, one op a kernel.
#ifndef LLMC_DIALECTS_EXEC_DIALECT_TD
#define LLMC_DIALECTS_EXEC_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::llmc::exec";
  let summary = "What a rank executes: buffers, weights, kernels, collectives";
  let description = [{
    The last form before the plan. Ops are one to one with the op tables of runtime/plan/plan.fbs, with the same
    names. They pass buffers: an op reads and writes the values it is given and has no results; only `exec.weight`,
    `exec.buffer` and `exec.columns` make values. Order in the block is order of execution on a stream.

    docs/rationale-exec.md says why, and what the dialect refuses to express.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::llmc::llm::LLMDialect"];
}

#endif // LLMC_DIALECTS_EXEC_DIALECT_TD
