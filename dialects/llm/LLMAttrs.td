// Attributes and enums of the llm dialect.
#ifndef LLMC_DIALECTS_LLM_ATTRS_TD
#define LLMC_DIALECTS_LLM_ATTRS_TD

include "dialects/llm/LLMDialect.td"

def LLM_ActivationEnum : I32EnumAttr<"Activation", "activation function of a gated feed-forward block", [
    I32EnumAttrCase<"Silu", 0, "silu">,
    I32EnumAttrCase<"GeluTanh", 1, "gelu_tanh">,
    I32EnumAttrCase<"Gelu", 2, "gelu">]> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}

def LLM_ActivationAttr : EnumAttr<LLM_Dialect, LLM_ActivationEnum, "act"> {
  let summary = "Which activation a gated block applies";
  let description = [{
    Example: `#llm.act<silu>`.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def LLM_RopeStyleEnum : I32EnumAttr<"RopeStyle", "which elements of a head rotate together", [
    I32EnumAttrCase<"NeoX", 0, "neox">,
    I32EnumAttrCase<"Interleaved", 1, "interleaved">]> {
  let cppNamespace = "::llmc::llm";
  let genSpecializedAttr = 0;
}

def LLM_RopeStyleAttr : EnumAttr<LLM_Dialect, LLM_RopeStyleEnum, "rope_style"> {
  let summary = "Rotary pairing: halves (neox) or neighbours (interleaved)";
  let description = [{
    `neox` pairs element i with i + rotary_dim/2; `interleaved` pairs 2i with 2i+1, the form that llama-type GGUF
    files need, whose q and k rows are permuted. Example: `#llm.rope_style<neox>`.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def LLM_TensorAttr : AttrDef<LLM_Dialect, "Tensor"> {
  let mnemonic = "tensor";
  let summary = "Where a checkpoint tensor's bytes lie";
  let description = [{
    `file` is an index into the module's list of files (`llm.files`), or -1 for a tensor without a file
    (`--load-format dummy`). `offset` and `bytes` are absolute in the file; `dtype` is the file's element type by
    its short name (`bf16`, `q4_1`, …); `shape` is outermost first.

    Example: `#llm.tensor<file = 0, offset = 4096, bytes = 2048, dtype = "bf16", shape = [32, 32]>`.
  }];
  let parameters = (ins "int64_t":$file, "uint64_t":$offset, "uint64_t":$bytes, StringRefParameter<>:$dtype,
                        ArrayRefParameter<"int64_t">:$shape);
  let assemblyFormat = [{
    `<` `file` `=` $file `,` `offset` `=` $offset `,` `bytes` `=` $bytes `,` `dtype` `=` $dtype `,`
    `shape` `=` `[` $shape `]` `>`
  }];
}

def LLM_BoxAttr : AttrDef<LLM_Dialect, "Box"> {
  let mnemonic = "box";
  let summary = "The part of a checkpoint tensor that one rank holds";
  let description = [{
    Rows [row, row + rows) × columns [col, col + cols) of the tensor, 1-D tensors being one row. `replica` marks
    elements whose first holder is another weight op, on this or on a lower rank; the parts that are not replicas
    tile the tensor exactly once over all ranks.

    Example: `#llm.box<row = 0, rows = 24, col = 8, cols = 8, replica = false>`.
  }];
  let parameters = (ins "int64_t":$row, "int64_t":$rows, "int64_t":$col, "int64_t":$cols, "bool":$replica);
  let assemblyFormat = [{
    `<` `row` `=` $row `,` `rows` `=` $rows `,` `col` `=` $col `,` `cols` `=` $cols `,` `replica` `=` $replica `>`
  }];
}

#endif // LLMC_DIALECTS_LLM_ATTRS_TD
