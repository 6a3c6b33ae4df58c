// The dist dialect: how a model is laid over ranks, and what they say to each other.
#ifndef LLMC_DIALECTS_DIST_DIALECT_TD
#define LLMC_DIALECTS_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::llmc::dist";
  let summary = "Topology, mesh, tiles of tensors, stages and collectives";
  let description = [{
    Two forms share the dialect. In the *logical* form there is one function for all ranks; tensors keep their whole
    shapes, `dist.in` and `dist.out` on each op say how operands and results are spread over the ranks of a stage,
    and `dist.stage` says which pipeline stage runs it. `dist-localize` turns that into the *local* form: one function
    a rank, tensors of that rank's own shapes, collectives with their group and sequence number.

    Ranks are numbered stage by stage: rank = stage * tp + tp_index.

    docs/rationale-dist.md says why we have our own dialect, and what it refuses to express.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

#endif // LLMC_DIALECTS_DIST_DIALECT_TD
