// The llm dialect: a decoder-only model as logical tensors, before any device is known.
#ifndef LLMC_DIALECTS_LLM_DIALECT_TD
#define LLMC_DIALECTS_LLM_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def LLM_Dialect : Dialect {
  let name = "llm";
  let cppNamespace = "::llmc::llm";
  let summary = "A decoder-only language model as logical tensors, with no devices";
  let description = [{
    One function `@forward` takes the ragged tokens of a step (`ids`, `positions`, `logits_rows`, each
    `tensor<?xi32>`) and returns logits. Token count is the one dynamic dimension, always the first. Layers are
    unrolled; every op of layer L carries the discardable attribute `llm.layer = L : i32`, and its location names
    the layer. The KV cache is implicit: `llm.attention` appends to, and reads, the cache of its `layer`.

    docs/rationale-llm.md says why the dialect looks so, and what it refuses to express.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

#endif // LLMC_DIALECTS_LLM_DIALECT_TD
