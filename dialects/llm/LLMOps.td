// Ops of the llm dialect. Shapes: T tokens of a step, H hidden width, R rows that want logits.
#ifndef LLMC_DIALECTS_LLM_OPS_TD
#define LLMC_DIALECTS_LLM_OPS_TD

include "dialects/llm/LLMAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class LLM_Op<string mnemonic, list<Trait> traits = []> : Op<LLM_Dialect, mnemonic, traits>;

// Activations [T, width]: the first dimension is dynamic.
def LLM_Activation : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[2]>], "activation [tokens, width]">;
def LLM_Weight : RankedTensorOf<[F32, F16, BF16], [HasAnyRankOfPred<[1, 2]>], "weight vector or matrix">;
def LLM_Index : 1DTensorOf<[I32]>;

def LLM_WeightOp : LLM_Op<"weight", [Pure]> {
  let summary = "A tensor of the checkpoint, or one rank's part of it";
  let description = [{
    The result's type is what device memory holds; `tensor` says where the bytes lie. Before localisation the
    value is the whole tensor. Afterwards `boxes` names the parts this rank holds; stacked along the first dimension
    they give the result (a rank needs more than one only where a part of its rows is a replica).

    Example:
    ```mlir
    %w = llm.weight "model.norm.weight" {tensor = #llm.tensor<file = 0, offset = 64, bytes = 128, dtype = "f32", shape = [32]>} : tensor<32xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<LLM_TensorAttr>:$tensor, OptionalAttr<TypedArrayAttrBase<LLM_BoxAttr, "boxes">>:$boxes);
  let results = (outs LLM_Weight:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def LLM_EmbeddingOp : LLM_Op<"embedding", [Pure]> {
  let summary = "Looks token ids up in a table";
  let description = [{
    `result[t] = table[ids[t] - vocab_begin] * scale`. An id outside the table's rows gives a zero row, which is what
    a rank that holds a part of the vocabulary contributes to the sum.

    Example:
    ```mlir
    %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<512x32xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins LLM_Index:$ids, LLM_Weight:$table, DefaultValuedAttr<I64Attr, "0">:$vocab_begin,
                       DefaultValuedAttr<F32Attr, "1.0">:$scale);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` type($ids) `,` type($table) `->` type($result)";
  let hasVerifier = 1;
}

def LLM_RmsNormOp : LLM_Op<"rms_norm", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Root-mean-square normalisation over the last dimension";
  let description = [{
    `result = input / sqrt(mean(input²) + eps) * (weight + weight_offset)` (Zhang and Sennrich, 2019).

    Example:
    ```mlir
    %y = llm.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
    ```
  }];
  let arguments = (ins LLM_Activation:$input, LLM_Weight:$weight, F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "0.0">:$weight_offset);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1;
}

def LLM_AddOp : LLM_Op<"add", [Pure, AllTypesMatch<["lhs", "rhs", "result"]>]> {
  let summary = "Adds two activations";
  let description = [{
    Example:
    ```mlir
    %y = llm.add %residual, %x : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins LLM_Activation:$lhs, LLM_Activation:$rhs);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def LLM_AddRmsNormOp : LLM_Op<"add_rms_norm", [Pure, AllTypesMatch<["residual", "input", "sum", "normed"]>]> {
  let summary = "A residual addition and the normalisation that follows it, as one op";
  let description = [{
    `sum = residual + input; normed = rms_norm(sum)`. Made by `llm-fuse-add-norm`.

    Example:
    ```mlir
    %sum, %y = llm.add_rms_norm %residual, %x, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
    ```
  }];
  let arguments = (ins LLM_Activation:$residual, LLM_Activation:$input, LLM_Weight:$weight, F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "0.0">:$weight_offset);
  let results = (outs LLM_Activation:$sum, LLM_Activation:$normed);
  let assemblyFormat = "$residual `,` $input `,` $weight attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1;
}

def LLM_LinearOp : LLM_Op<"linear", [Pure, AttrSizedOperandSegments]> {
  let summary = "One or several linear layers over the same input";
  let description = [{
    `result_i = input · weight_iᵀ (+ bias_i)`, weight_i being [out_i, in] as checkpoints hold it. Several weights over
    one input are one product with the weights stacked; `llm-fuse-qkv` and `llm-fuse-gate-up` make these. There are
    as many biases as weights, or none.

    Example:
    ```mlir
    %q, %k = llm.linear %x weights(%wq, %wk) biases(%bq, %bk)
      : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<8x32xf32>), (tensor<32xf32>, tensor<8xf32>) -> (tensor<?x32xf32>, tensor<?x8xf32>)
    ```
  }];
  let arguments = (ins LLM_Activation:$input, Variadic<LLM_Weight>:$weights, Variadic<LLM_Weight>:$biases);
  let results = (outs Variadic<LLM_Activation>:$outputs);
  let assemblyFormat = [{
    $input `weights` `(` $weights `)` (`biases` `(` $biases^ `)`)? attr-dict `:`
    type($input) `,` `(` type($weights) `)` (`,` `(` type($biases)^ `)`)? `->` `(` type($outputs) `)`
  }];
  let hasVerifier = 1;
}

def LLM_HeadNormOp : LLM_Op<"head_norm", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "RMS normalisation of each head by itself (Qwen3's q_norm and k_norm)";
  let description = [{
    The row is heads of `head_dim` elements; each is normalised and scaled by the same weight.
    `llm-fuse-qk-norm` folds it into `llm.rope`.

    Example:
    ```mlir
    %q1 = llm.head_norm %q, %w {head_dim = 8 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins LLM_Activation:$input, LLM_Weight:$weight, I64Attr:$head_dim, F32Attr:$eps);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1;
}

def LLM_RopeOp : LLM_Op<"rope", [Pure, AttrSizedOperandSegments, AllTypesMatch<["q", "q_out"]>,
                                 AllTypesMatch<["k", "k_out"]>]> {
  let summary = "Rotary position embedding of queries and keys";
  let description = [{
    Rotates the first `rotary_dim` elements of every head by `position * inv_freq[i]`, cos and sin multiplied by
    `attention_factor` (Su et al., 2021). All scalings (linear, llama3, yarn) are in `inv_freq` already. Where
    `q_norm` and `k_norm` are given, each head is RMS-normalised first.

    Example:
    ```mlir
    %q1, %k1 = llm.rope %q, %k, %positions {head_dim = 8 : i64, rotary_dim = 8 : i64, style = #llm.rope_style<neox>,
      inv_freq = array<f32: 1.0, 0.1, 0.01, 0.001>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins LLM_Activation:$q, LLM_Activation:$k, LLM_Index:$positions, Optional<LLM_Weight>:$q_norm,
                       Optional<LLM_Weight>:$k_norm, I64Attr:$head_dim, I64Attr:$rotary_dim, LLM_RopeStyleAttr:$style,
                       DenseF32ArrayAttr:$inv_freq, DefaultValuedAttr<F32Attr, "1.0">:$attention_factor,
                       DefaultValuedAttr<F32Attr, "1.0e-6">:$eps);
  let results = (outs LLM_Activation:$q_out, LLM_Activation:$k_out);
  let assemblyFormat = [{
    $q `,` $k `,` $positions (`norms` `(` $q_norm^ `,` $k_norm `:` type($q_norm) `,` type($k_norm) `)`)? attr-dict `:`
    type($q) `,` type($k) `,` type($positions)
  }];
  let hasVerifier = 1;
}

def LLM_AttentionOp : LLM_Op<"attention", [AllTypesMatch<["k", "v"]>]> {
  let summary = "Causal attention over the KV cache of one layer, which it extends";
  let description = [{
    Appends `k` and `v` to the cache of `layer`, then attends causally, each query head to the KV head that
    `kv_head_of_q` names (grouped-query attention; absent means q_heads / kv_heads neighbours share one). A `window` of W
    (0: none) limits a token to the last W positions, itself included. `softcap` c (0: none) replaces a score s by
    c·tanh(s/c). `kv_head_ids`, set by localisation, gives the model-wide index of each local KV head.

    Example:
    ```mlir
    %o = llm.attention %q, %k, %v {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32}
      : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins LLM_Activation:$q, LLM_Activation:$k, LLM_Activation:$v, I64Attr:$layer, I64Attr:$q_heads,
                       I64Attr:$kv_heads, I64Attr:$head_dim, F32Attr:$scale, DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F32Attr, "0.0">:$softcap, OptionalAttr<DenseI64ArrayAttr>:$kv_head_of_q,
                       OptionalAttr<DenseI64ArrayAttr>:$kv_head_ids);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$q `,` $k `,` $v attr-dict `:` type($q) `,` type($k) `->` type($result)";
  let hasVerifier = 1;
}

def LLM_GatedActOp : LLM_Op<"gated_act", [Pure, AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "act(gate) * up, elementwise";
  let description = [{
    Example:
    ```mlir
    %h = llm.gated_act %gate, %up {act = #llm.act<silu>} : tensor<?x64xf32>
    ```
  }];
  let arguments = (ins LLM_Activation:$gate, LLM_Activation:$up, LLM_ActivationAttr:$act);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($result)";
}

def LLM_SelectRowsOp : LLM_Op<"select_rows", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "Picks the rows that want logits";
  let description = [{
    `result[r] = input[rows[r]]`: from here on the dynamic dimension counts those rows.

    Example:
    ```mlir
    %y = llm.select_rows %x, %rows : tensor<?x32xf32>, tensor<?xi32>
    ```
  }];
  let arguments = (ins LLM_Activation:$input, LLM_Index:$rows);
  let results = (outs LLM_Activation:$result);
  let assemblyFormat = "$input `,` $rows attr-dict `:` type($input) `,` type($rows)";
}

#endif // LLMC_DIALECTS_LLM_OPS_TD
