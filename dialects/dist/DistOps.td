// Ops of the dist dialect: what moves between ranks. `group` and `seq` stand only in the local form.
#ifndef LLMC_DIALECTS_DIST_OPS_TD
#define LLMC_DIALECTS_DIST_OPS_TD

include "dialects/dist/DistAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_Tensor : RankedTensorOf<[F32, F16, BF16]>;

def Dist_AllReduceOp : Dist_Op<"all_reduce", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Sums a partial value over the ranks of a stage";
  let description = [{
    Every rank receives the same bits. `group` (local form) lists the ranks, `seq` numbers the collectives of a group.

    Example:
    ```mlir
    %y = dist.all_reduce %x : tensor<?x32xf32>
    %z = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 3 : i64} : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, OptionalAttr<DenseI64ArrayAttr>:$group, OptionalAttr<I64Attr>:$seq);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Dist_AllGatherOp : Dist_Op<"all_gather"> {
  let summary = "Makes a tiled value whole on every rank";
  let description = [{
    In the logical form input and result have the same type; in the local form the input is this rank's tile.

    Example:
    ```mlir
    %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>} : tensor<?x32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_TilesAttr:$tiles, OptionalAttr<DenseI64ArrayAttr>:$group,
                       OptionalAttr<I64Attr>:$seq);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_GatherOp : Dist_Op<"gather"> {
  let summary = "Makes a tiled value whole on one rank of the stage";
  let description = [{
    As `dist.all_gather`, but only the member `root` (a position in the group) has the result; in the local form the op
    has no result elsewhere. Used for logits, which only the sampling rank needs.

    Example:
    ```mlir
    %y = dist.gather %x {root = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>} : tensor<?x32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_TilesAttr:$tiles, I64Attr:$root,
                       OptionalAttr<DenseI64ArrayAttr>:$group, OptionalAttr<I64Attr>:$seq);
  let results = (outs Optional<Dist_Tensor>:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) (`->` type($result)^)?";
  let hasVerifier = 1;
}

def Dist_SliceOp : Dist_Op<"slice", [Pure]> {
  let summary = "Each rank keeps its tile of a value that it holds whole; nothing moves";
  let description = [{
    Example:
    ```mlir
    %y = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>} : tensor<?x32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_TilesAttr:$tiles);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_TransferOp : Dist_Op<"transfer", [AllTypesMatch<["input", "result"]>]> {
  let summary = "Carries a value from one pipeline stage to another (logical form)";
  let description = [{
    Rank i of stage `from` sends to rank i of stage `to`. Localisation turns it into a send and a recv.

    Example:
    ```mlir
    %y = dist.transfer %x {from = 0 : i64, to = 1 : i64} : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$from, I64Attr:$to);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Dist_SendOp : Dist_Op<"send"> {
  let summary = "Sends a value to another rank (local form)";
  let description = [{
    The send with number `seq` to `peer` meets the peer's recv with the same number from here.

    Example:
    ```mlir
    dist.send %x {peer = 3 : i64, seq = 0 : i64} : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$peer, I64Attr:$seq);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Dist_RecvOp : Dist_Op<"recv"> {
  let summary = "Receives a value from another rank (local form)";
  let description = [{
    Example:
    ```mlir
    %x = dist.recv {peer = 0 : i64, seq = 0 : i64} : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins I64Attr:$peer, I64Attr:$seq);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // LLMC_DIALECTS_DIST_OPS_TD
