// Ops of the exec dialect. T = tokens of the step, R = rows that want logits; shapes are [rows, columns].
#ifndef LLMC_DIALECTS_EXEC_OPS_TD
#define LLMC_DIALECTS_EXEC_OPS_TD

include "dialects/exec/ExecAttrs.td"
include "dialects/llm/LLMAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Structure and memory
//===----------------------------------------------------------------------===//

def Exec_ProgramOp : Exec_Op<"program", [IsolatedFromAbove, Symbol, NoRegionArguments, SingleBlock, NoTerminator]> {
  let summary = "What one rank executes";
  let description = [{
    `device` is an index into the topology. The sizes are set by `exec-plan-memory` (bytes of the weight region, the
    activation arena and the workspace) and `exec-plan-kv-pages` (`kv`; `ledger`, all bytes of the device by name).

    Example:
    ```mlir
    exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$rank, I64Attr:$stage, I64Attr:$tp_index, I64Attr:$device,
                       OptionalAttr<Exec_KvAttr>:$kv, OptionalAttr<I64Attr>:$weight_bytes,
                       OptionalAttr<I64Attr>:$arena_bytes, OptionalAttr<I64Attr>:$workspace_bytes,
                       OptionalAttr<I64Attr>:$comm_bytes, OptionalAttr<DictionaryAttr>:$ledger);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "int64_t":$rank, "int64_t":$stage, "int64_t":$tp_index,
                                 "int64_t":$device), [{
    $_state.getOrAddProperties<Properties>().sym_name = $_builder.getStringAttr(name);
    $_state.getOrAddProperties<Properties>().rank = $_builder.getI64IntegerAttr(rank);
    $_state.getOrAddProperties<Properties>().stage = $_builder.getI64IntegerAttr(stage);
    $_state.getOrAddProperties<Properties>().tp_index = $_builder.getI64IntegerAttr(tp_index);
    $_state.getOrAddProperties<Properties>().device = $_builder.getI64IntegerAttr(device);
    $_state.addRegion()->emplaceBlock();
  }]>];
}

def Exec_WeightOp : Exec_Op<"weight", [Pure]> {
  let summary = "A weight of this rank, stacked of boxes of checkpoint tensors";
  let description = [{
    `offset` in the weight region is set by `exec-plan-memory`.

    Example:
    ```mlir
    %w = exec.weight "layer.0.qkv" {parts = [#exec.part<name = "w", tensor = #llm.tensor<file = -1, offset = 0, bytes = 64, dtype = "f32", shape = [4, 4]>, box = #llm.box<row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4, f32, row_major>
    ```
  }];
  let arguments = (ins StrAttr:$name, TypedArrayAttrBase<Exec_PartAttr, "parts">:$parts, OptionalAttr<I64Attr>:$offset);
  let results = (outs Exec_WeightType:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Exec_BufferOp : Exec_Op<"buffer"> {
  let summary = "A range of the activation arena";
  let description = [{
    Two buffers may share bytes when no op needs both at once; `offset` is set by `exec-plan-memory`, as are the first
    and last op that touch the buffer, counted over the program's executed ops.

    Example:
    ```mlir
    %b = exec.buffer "x" : !exec.buffer<tokens, 576, f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$first_op,
                       OptionalAttr<I64Attr>:$last_op);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Exec_ColumnsOp : Exec_Op<"columns", [Pure]> {
  let summary = "A range of a buffer's columns; nothing moves";
  let description = [{
    Example:
    ```mlir
    %q = exec.columns %qkv {begin = 0 : i64} : !exec.buffer<tokens, 960, f32> -> !exec.buffer<tokens, 576, f32>
    ```
  }];
  let arguments = (ins Exec_BufferType:$source, I64Attr:$begin);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Exec_OutputOp : Exec_Op<"output"> {
  let summary = "Names the logits of the step, [R, vocab] f32";
  let description = [{
    Stands last in the program of the output rank, and in no other.

    Example:
    ```mlir
    exec.output %logits : !exec.buffer<logits, 49152, f32>
    ```
  }];
  let arguments = (ins Exec_BufferType:$logits);
  let assemblyFormat = "$logits attr-dict `:` type($logits)";
}

//===----------------------------------------------------------------------===//
// Executed ops: one to one with plan.fbs
//===----------------------------------------------------------------------===//

// Ops that become an entry of the plan's program. `kernel` is set by exec-select-kernels; `layer` is the model layer.
class Exec_Executed<string mnemonic, list<Trait> traits = []> : Exec_Op<mnemonic, traits>;
defvar Exec_Common = (ins OptionalAttr<StrAttr>:$kernel, DefaultValuedAttr<I64Attr, "0">:$stream,
                          DefaultValuedAttr<I64Attr, "-1">:$layer);

def Exec_EmbeddingOp : Exec_Executed<"embedding"> {
  let summary = "out[T] = table[ids - vocab_begin] * scale, zero outside the table";
  let description = [{
    Example:
    ```mlir
    exec.embedding %t into %x {vocab_begin = 0 : i64} : !exec.weight<64, 32, f32, row_major>, !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_WeightType:$table, Exec_BufferType:$out, DefaultValuedAttr<I64Attr, "0">:$vocab_begin,
                            DefaultValuedAttr<F32Attr, "1.0">:$scale), Exec_Common);
  let assemblyFormat = "$table `into` $out attr-dict `:` type($table) `,` type($out)";
  let hasVerifier = 1;
}

def Exec_RmsNormOp : Exec_Executed<"rms_norm"> {
  let summary = "out = input / rms(input) * (weight + weight_offset)";
  let description = [{
    Example:
    ```mlir
    exec.rms_norm %x, %w into %y {eps = 1.0e-5 : f32} : !exec.buffer<tokens, 32, f32>, !exec.weight<1, 32, f32, row_major>, !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, Exec_WeightType:$weight, Exec_BufferType:$out, F32Attr:$eps,
                            DefaultValuedAttr<F32Attr, "0.0">:$weight_offset), Exec_Common);
  let assemblyFormat = "$input `,` $weight `into` $out attr-dict `:` type($input) `,` type($weight) `,` type($out)";
  let hasVerifier = 1;
}

def Exec_AddRmsNormOp : Exec_Executed<"add_rms_norm"> {
  let summary = "residual += input; out = rms_norm(residual)";
  let description = [{
    Example:
    ```mlir
    exec.add_rms_norm %r, %x, %w into %y {eps = 1.0e-5 : f32} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>, !exec.weight<1, 32, f32, row_major>, !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$residual, Exec_BufferType:$input, Exec_WeightType:$weight,
                            Exec_BufferType:$out, F32Attr:$eps, DefaultValuedAttr<F32Attr, "0.0">:$weight_offset),
                       Exec_Common);
  let assemblyFormat = [{
    $residual `,` $input `,` $weight `into` $out attr-dict `:` type($residual) `,` type($input) `,` type($weight) `,`
    type($out)
  }];
  let hasVerifier = 1;
}

def Exec_AddOp : Exec_Executed<"add"> {
  let summary = "residual += input";
  let description = [{
    Example:
    ```mlir
    exec.add %x into %r : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, Exec_BufferType:$residual), Exec_Common);
  let assemblyFormat = "$input `into` $residual attr-dict `:` type($input) `,` type($residual)";
  let hasVerifier = 1;
}

def Exec_LinearOp : Exec_Executed<"linear"> {
  let summary = "out[rows, N] = input[rows, K] · weight[N, K]ᵀ + bias[N]";
  let description = [{
    On GPUs the kernel depends on the rows of the step: up to `stream_rows` the one that streams the weight, up to
    `wide_rows` those for large weights (of a product with a gate behind it, of any number), beyond that the library's. Up to
    `fused_rows` the launch also does the norm in front and the add, gate, or rotation behind; of more than two rows and up to
    `paired_rows`, the gate or rotation alone. All set by exec-select-kernels.

    Example:
    ```mlir
    exec.linear %x, %w into %y : !exec.buffer<tokens, 32, f32>, !exec.weight<48, 32, f32, row_major>, !exec.buffer<tokens, 48, f32>
    exec.linear %x, %w bias(%b : !exec.weight<1, 48, f32, row_major>) into %y : !exec.buffer<tokens, 32, f32>, !exec.weight<48, 32, f32, row_major>, !exec.buffer<tokens, 48, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, Exec_WeightType:$weight, Optional<Exec_WeightType>:$bias,
                            Exec_BufferType:$out, DefaultValuedAttr<I64Attr, "0">:$stream_rows,
                            DefaultValuedAttr<I64Attr, "0">:$wide_rows, DefaultValuedAttr<I64Attr, "0">:$fused_rows,
                            DefaultValuedAttr<I64Attr, "0">:$paired_rows), Exec_Common);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? `into` $out attr-dict `:`
    type($input) `,` type($weight) `,` type($out)
  }];
  let hasVerifier = 1;
}

def Exec_RopeOp : Exec_Executed<"rope", [AttrSizedOperandSegments]> {
  let summary = "Rotary embedding of q and k in place, behind a norm of each head where weights are given";
  let description = [{
    Example:
    ```mlir
    exec.rope %q, %k {q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, rotary_dim = 8 : i64, style = #llm.rope_style<neox>,
      inv_freq = array<f32: 1.0, 0.1, 0.01, 0.001>} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 8, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$q, Exec_BufferType:$k, Optional<Exec_WeightType>:$q_norm,
                            Optional<Exec_WeightType>:$k_norm, I64Attr:$q_heads, I64Attr:$kv_heads, I64Attr:$head_dim,
                            I64Attr:$rotary_dim, LLM_RopeStyleAttr:$style, DenseF32ArrayAttr:$inv_freq,
                            DefaultValuedAttr<F32Attr, "1.0">:$attention_factor,
                            DefaultValuedAttr<F32Attr, "1.0e-6">:$eps), Exec_Common);
  let assemblyFormat = [{
    $q `,` $k (`norms` `(` $q_norm^ `,` $k_norm `:` type($q_norm) `,` type($k_norm) `)`)? attr-dict `:`
    type($q) `,` type($k)
  }];
  let hasVerifier = 1;
}

def Exec_KvAppendOp : Exec_Executed<"kv_append"> {
  let summary = "Writes k and v rows into the pages of a local layer";
  let description = [{
    `kv_layer` counts this rank's layers.

    Example:
    ```mlir
    exec.kv_append %k, %v {kv_layer = 0 : i64, kv_heads = 1 : i64, head_dim = 8 : i64} : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$k, Exec_BufferType:$v, I64Attr:$kv_layer, I64Attr:$kv_heads,
                            I64Attr:$head_dim), Exec_Common);
  let assemblyFormat = "$k `,` $v attr-dict `:` type($k) `,` type($v)";
  let hasVerifier = 1;
}

def Exec_AttentionOp : Exec_Executed<"attention"> {
  let summary = "Causal attention over the pages of a local layer";
  let description = [{
    `kv_head_of_q` names, for each local query head, the local KV head it reads.

    Example:
    ```mlir
    exec.attention %q into %o {kv_layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, kv_head_of_q = array<i64: 0, 0, 0, 0>,
      scale = 0.35 : f32} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$q, Exec_BufferType:$out, I64Attr:$kv_layer, I64Attr:$q_heads,
                            I64Attr:$kv_heads, I64Attr:$head_dim, DenseI64ArrayAttr:$kv_head_of_q, F32Attr:$scale,
                            DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<F32Attr, "0.0">:$softcap),
                       Exec_Common);
  let assemblyFormat = "$q `into` $out attr-dict `:` type($q) `,` type($out)";
  let hasVerifier = 1;
}

def Exec_GatedActOp : Exec_Executed<"gated_act"> {
  let summary = "out = act(gate) * up";
  let description = [{
    Example:
    ```mlir
    exec.gated_act %g, %u into %h {act = #llm.act<silu>} : !exec.buffer<tokens, 48, f32>, !exec.buffer<tokens, 48, f32>, !exec.buffer<tokens, 48, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$gate, Exec_BufferType:$up, Exec_BufferType:$out, LLM_ActivationAttr:$act),
                       Exec_Common);
  let assemblyFormat = "$gate `,` $up `into` $out attr-dict `:` type($gate) `,` type($up) `,` type($out)";
  let hasVerifier = 1;
}

def Exec_SelectRowsOp : Exec_Executed<"select_rows"> {
  let summary = "out[R] = input[logits_rows]";
  let description = [{
    Example:
    ```mlir
    exec.select_rows %x into %y : !exec.buffer<tokens, 32, f32>, !exec.buffer<logits, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, Exec_BufferType:$out), Exec_Common);
  let assemblyFormat = "$input `into` $out attr-dict `:` type($input) `,` type($out)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Communication. `comm` and `algorithm` are set by exec-select-kernels.
//===----------------------------------------------------------------------===//

defvar Exec_Collective = (ins DenseI64ArrayAttr:$group, I64Attr:$seq, OptionalAttr<Exec_CommAttr>:$comm,
                              OptionalAttr<Exec_AlgorithmAttr>:$algorithm);

def Exec_AllReduceOp : Exec_Executed<"all_reduce"> {
  let summary = "In place sum over the group, the same bits on every member";
  let description = [{
    Example:
    ```mlir
    exec.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<tokens, 32, f32>
    ```
    Sums of at most `one_shot_bytes` of a member's rows go in one shot, by kernels that write to all members at once, and larger
    ones of at most `two_shot_bytes` in two: each row to the member that sums it, and from there to all. Both are set by
    exec-select-kernels from the links between the members.
  }];
  let arguments = !con((ins Exec_BufferType:$data), Exec_Collective,
                       (ins DefaultValuedAttr<I64Attr, "0">:$one_shot_bytes,
                            DefaultValuedAttr<I64Attr, "0">:$two_shot_bytes), Exec_Common);
  let assemblyFormat = "$data attr-dict `:` type($data)";
}

def Exec_AllGatherOp : Exec_Executed<"all_gather"> {
  let summary = "out = the columns of all members, in group order";
  let description = [{
    Example:
    ```mlir
    exec.all_gather %x into %y {counts = array<i64: 16, 16>, group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<tokens, 16, f32>, !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, Exec_BufferType:$out, DenseI64ArrayAttr:$counts), Exec_Collective,
                       Exec_Common);
  let assemblyFormat = "$input `into` $out attr-dict `:` type($input) `,` type($out)";
  let hasVerifier = 1;
}

def Exec_GatherOp : Exec_Executed<"gather"> {
  let summary = "As all_gather, into the buffer of member `root` only";
  let description = [{
    Example:
    ```mlir
    exec.gather %x into %y {counts = array<i64: 16, 16>, root = 0 : i64, group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<logits, 16, f32>, !exec.buffer<logits, 32, f32>
    exec.gather %x {counts = array<i64: 16, 16>, root = 0 : i64, group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<logits, 16, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, Optional<Exec_BufferType>:$out, DenseI64ArrayAttr:$counts,
                            I64Attr:$root), Exec_Collective, Exec_Common);
  let assemblyFormat = "$input (`into` $out^)? attr-dict `:` type($input) (`,` type($out)^)?";
  let hasVerifier = 1;
}

def Exec_SendOp : Exec_Executed<"send"> {
  let summary = "Sends a buffer's rows to a peer rank";
  let description = [{
    Example:
    ```mlir
    exec.send %x {peer = 3 : i64, seq = 0 : i64} : !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$input, I64Attr:$peer, I64Attr:$seq, OptionalAttr<Exec_CommAttr>:$comm),
                       Exec_Common);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def Exec_RecvOp : Exec_Executed<"recv"> {
  let summary = "Receives a buffer's rows from a peer rank";
  let description = [{
    Example:
    ```mlir
    exec.recv %x {peer = 0 : i64, seq = 0 : i64} : !exec.buffer<tokens, 32, f32>
    ```
  }];
  let arguments = !con((ins Exec_BufferType:$out, I64Attr:$peer, I64Attr:$seq, OptionalAttr<Exec_CommAttr>:$comm),
                       Exec_Common);
  let assemblyFormat = "$out attr-dict `:` type($out)";
}

#endif // LLMC_DIALECTS_EXEC_OPS_TD
