// Passes over the dist dialect: from one model to one function a rank.
#ifndef LLMC_PASSES_DIST_PASSES_TD
#define LLMC_PASSES_DIST_PASSES_TD

include "mlir/Pass/PassBase.td"

def DistAssignMesh : Pass<"dist-assign-mesh", "::mlir::ModuleOp"> {
  let summary = "Chooses the device of each rank";
  let description = [{
    Reads `dist.topology`, writes `dist.mesh`. The ranks of a stage talk at every layer, so each stage gets devices
    that the best links join, of like memory, on one host; stages talk once a step and go across. Where there are GPUs, only
    they are used. Before:

    ```mlir
    module attributes {dist.topology = #dist.topology<... four devices, 0-1 and 2-3 joined by NVLink ...>}
    ```
    After `dist-assign-mesh{tp=2 pp=2}`:
    ```mlir
    module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 1, 2, 3]>, dist.topology = ...}
    ```
    Fails, naming the numbers and the (tp, pp) pairs that are legal, where the model or the topology cannot be split so.
  }];
  let options = [
    Option<"tp", "tp", "int64_t", "1", "Ranks that share each layer (tensor parallelism)">,
    Option<"pp", "pp", "int64_t", "1", "Pipeline stages">
  ];
}

def DistAssignShardings : Pass<"dist-assign-shardings", "::mlir::ModuleOp"> {
  let summary = "Says of every operand and result how the ranks of a stage share it";
  let description = [{
    Writes `dist.in` and `dist.out`. Attention is split by whole KV groups (or, with fewer KV heads than ranks, by query
    heads with KV heads replicated), the feed-forward block by columns, the vocabulary by rows. A product whose input
    is tiled by columns is row-parallel and gives a partial sum. Example, tp = 2:

    ```mlir
    %h = llm.linear %x weights(%w) {dist.in = [#dist.replicated, #dist.tiles<dim = 0, offsets = [0, 32], sizes = [32, 32]>],
                                    dist.out = [#dist.tiles<dim = 1, offsets = [0, 32], sizes = [32, 32]>]} : ...
    ```
  }];
}

def DistInsertCollectives : Pass<"dist-insert-collectives", "::mlir::func::FuncOp"> {
  let summary = "Makes every value whole where it is defined and cuts it where it is used";
  let description = [{
    Each op is treated by itself, which is trivially right: a partial result is all-reduced, a tiled one all-gathered,
    and an operand that an op wants tiled is sliced. `dist-simplify-collectives` removes what was not needed. A value
    whose tiles overlap (replicated KV heads) must be wanted exactly as it is, and stays as it is.

    ```mlir
    %h = llm.gated_act %g, %u {dist.out = [#tiles]}          %h = llm.gated_act ...
    %y = llm.linear %h ... {dist.in = [#tiles, ...],    =>   %h1 = dist.all_gather %h {tiles = #tiles}
                            dist.out = [#dist.partial]}      %h2 = dist.slice %h1 {tiles = #tiles}
                                                             %y = llm.linear %h2 ...
                                                             %y1 = dist.all_reduce %y
    ```
  }];
  let dependentDialects = ["::llmc::dist::DistDialect"];
}

def DistSimplifyCollectives : Pass<"dist-simplify-collectives", "::mlir::func::FuncOp"> {
  let summary = "Removes collectives whose result nobody needs whole";
  let description = [{
    `slice(all_gather(x))` over the same tiles is x, so the all-gather in front of a row-parallel product goes; gathers
    with no user left go; logits are gathered to the sampling rank only.

    ```mlir
    %h1 = dist.all_gather %h {tiles = #tiles}
    %h2 = dist.slice %h1 {tiles = #tiles}        =>    %y = llm.linear %h ...
    %y = llm.linear %h2 ...
    ```
  }];
}

def DistSplitStages : Pass<"dist-split-stages", "::mlir::ModuleOp"> {
  let summary = "Cuts the layers into pipeline stages";
  let description = [{
    Writes `dist.stage` on every op and inserts a `dist.transfer` where a value crosses. Among all cuts at layer
    boundaries those are taken whose slowest stage is fastest (bytes of weights over the device's bandwidth, embedding,
    final norm and lm_head counted), and among these the one whose smallest KV capacity is largest. A fused
    add + norm on a boundary is taken apart: the sum is sent, the norm belongs to the next stage.
  }];
  let dependentDialects = ["::llmc::dist::DistDialect"];
}

def DistLocalize : Pass<"dist-localize", "::mlir::ModuleOp"> {
  let summary = "Writes one function a rank, over that rank's own shapes";
  let description = [{
    `@forward` becomes `@rank0` … `@rankN`. Weights get the boxes that the rank holds, each element having one first
    holder and replicas elsewhere; heads and vocabulary ranges become local; collectives get their group and
    sequence number; transfers become send and recv; a bias behind a row-parallel product is added by the first rank
    alone. With one rank in a stage collectives vanish.

    ```mlir
    func.func @rank1(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>)
        attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64}
    ```
  }];
  let dependentDialects = ["::llmc::dist::DistDialect"];
}

def DistVerify : Pass<"dist-verify", "::mlir::ModuleOp"> {
  let summary = "Checks the dist phase as a whole";
  let description = [{
    Closes the phase. In the local form: all ranks are there; in each group every member meets the same collectives in the
    same order, with matching widths; sends and recvs pair up; the boxes of each tensor that are not replicas add up to
    the tensor; just one rank returns logits.
  }];
}

#endif // LLMC_PASSES_DIST_PASSES_TD
