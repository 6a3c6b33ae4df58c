// Types, attributes and enums of the exec dialect.
#ifndef LLMC_DIALECTS_EXEC_ATTRS_TD
#define LLMC_DIALECTS_EXEC_ATTRS_TD

include "dialects/exec/ExecDialect.td"

class Exec_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::exec";
  let genSpecializedAttr = 0;
}

def Exec_RowsEnum : Exec_Enum<"Rows", "what the rows of a buffer count", [
    I32EnumAttrCase<"Tokens", 0, "tokens">, I32EnumAttrCase<"Logits", 1, "logits">]>;
def Exec_LayoutEnum : Exec_Enum<"Layout", "how a weight lies in device memory", [
    I32EnumAttrCase<"RowMajor", 0, "row_major">, I32EnumAttrCase<"Packed16", 1, "packed16">]>;
def Exec_CommEnum : Exec_Enum<"Comm", "which communicator carries a collective", [
    I32EnumAttrCase<"Host", 0, "host">, I32EnumAttrCase<"Peer", 1, "peer">, I32EnumAttrCase<"Nccl", 2, "nccl">]>;
def Exec_AlgorithmEnum : Exec_Enum<"Algorithm", "how a collective is carried out", [
    I32EnumAttrCase<"Ring", 0, "ring">, I32EnumAttrCase<"OneShot", 1, "one_shot">,
    I32EnumAttrCase<"TwoShot", 2, "two_shot">, I32EnumAttrCase<"Ordered", 3, "ordered">]>;

def Exec_QuantFormatEnum : Exec_Enum<"QuantFormat", "block format of a quantised weight", [
    I32EnumAttrCase<"Q8_0", 0, "q8_0">, I32EnumAttrCase<"Q4_1", 1, "q4_1">]>;

def Exec_CommAttr : EnumAttr<Exec_Dialect, Exec_CommEnum, "comm"> {
  let summary = "The communicator of a collective: host memory, own peer kernels, or NCCL";
  let description = [{ Example: `#exec.comm<host>`. }];
  let assemblyFormat = "`<` $value `>`";
}

def Exec_AlgorithmAttr : EnumAttr<Exec_Dialect, Exec_AlgorithmEnum, "algorithm"> {
  let summary = "The algorithm of a collective; `ordered` sums in rank order, the same bits every time";
  let description = [{ Example: `#exec.algorithm<ordered>`. }];
  let assemblyFormat = "`<` $value `>`";
}

def Exec_QuantType : TypeDef<Exec_Dialect, "Quant"> {
  let mnemonic = "quant";
  let summary = "Element type of a weight that stays quantised, in blocks of 32 columns";
  let description = [{
    `q8_0`: a scale a block; `q4_1`: a scale and an offset. As in GGUF files.

    Example: `!exec.quant<q8_0>`.
  }];
  let parameters = (ins EnumParameter<Exec_QuantFormatEnum>:$format);
  let assemblyFormat = "`<` $format `>`";
  let extraClassDeclaration = [{
    /// Columns of a block, and its bytes.
    static constexpr int64_t kBlock = 32;
    int64_t getBlockBytes() const;
  }];
}

def Exec_BufferType : TypeDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Activations in a rank's arena, or a range of their columns";
  let description = [{
    Rows count the tokens of the step (`tokens`) or the rows that want logits (`logits`).

    Example: `!exec.buffer<tokens, 576, f32>`.
  }];
  let parameters = (ins EnumParameter<Exec_RowsEnum>:$rows, "int64_t":$cols, "::mlir::Type":$element);
  let assemblyFormat = "`<` $rows `,` $cols `,` $element `>`";
  let genVerifyDecl = 1;
}

def Exec_WeightType : TypeDef<Exec_Dialect, "Weight"> {
  let mnemonic = "weight";
  let summary = "A weight in a rank's weight region";
  let description = [{
    A matrix [rows, cols] or, with one row, a vector. `packed16` holds panels of 16 rows (see plan.fbs). Elements are
    f32, f16, bf16 or, packed and with whole blocks of columns, a `!exec.quant`.

    Example: `!exec.weight<960, 576, bf16, packed16>`.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element, EnumParameter<Exec_LayoutEnum>:$layout);
  let assemblyFormat = "`<` $rows `,` $cols `,` $element `,` $layout `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes in device memory, padding of the layout included.
    uint64_t getBytes() const;
  }];
}

def Exec_PartAttr : AttrDef<Exec_Dialect, "Part"> {
  let mnemonic = "part";
  let summary = "A box of a checkpoint tensor and where it goes in a weight";
  let description = [{
    Example: `#exec.part<name = "w", tensor = #llm.tensor<file = 0, offset = 0, bytes = 64, dtype = "f32", shape = [4, 4]>, box = #llm.box<row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>`.
  }];
  let parameters = (ins StringRefParameter<>:$name, "::llmc::llm::TensorAttr":$tensor, "::llmc::llm::BoxAttr":$box,
                        "int64_t":$dst_row, "int64_t":$dst_col);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Exec_KvAttr : AttrDef<Exec_Dialect, "Kv"> {
  let mnemonic = "kv";
  let summary = "The KV cache of a rank";
  let description = [{
    Model-wide indices of its layers and KV heads, the geometry of a page, and how many of its heads a lower rank of the
    stage holds too. A page of one layer is 2 × heads × page_size × head_dim elements.

    Example: `#exec.kv<layers = [0, 1], heads = [2], head_dim = 64, element = bf16, layer_page_bytes = 4096, duplicated = 0>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$layers, ArrayRefParameter<"int64_t">:$heads, "int64_t":$head_dim,
                        "::mlir::Type":$element, "int64_t":$layer_page_bytes, "int64_t":$duplicated);
  let assemblyFormat = [{
    `<` `layers` `=` `[` $layers `]` `,` `heads` `=` `[` $heads `]` `,` `head_dim` `=` $head_dim `,`
    `element` `=` $element `,` `layer_page_bytes` `=` $layer_page_bytes `,` `duplicated` `=` $duplicated `>`
  }];
  let extraClassDeclaration = [{
    /// Bytes of one page over all local layers.
    int64_t getPageBytes() const { return getLayerPageBytes() * static_cast<int64_t>(getLayers().size()); }
  }];
}

#endif // LLMC_DIALECTS_EXEC_ATTRS_TD
