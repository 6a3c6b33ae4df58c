// Attributes of the dist dialect: the machine, the mesh, limits, and how a tensor is spread.
#ifndef LLMC_DIALECTS_DIST_ATTRS_TD
#define LLMC_DIALECTS_DIST_ATTRS_TD

include "dialects/dist/DistDialect.td"

class Dist_Attr<string cppName, string attrMnemonic> : AttrDef<Dist_Dialect, cppName> {
  let mnemonic = attrMnemonic;
}

def Dist_DeviceAttr : Dist_Attr<"Device", "device"> {
  let summary = "One device of the topology";
  let description = [{
    `memory` and `reserved` are bytes, `bandwidth` bytes/s, `flops` dense bf16 FLOP/s, `capability` the CUDA compute
    capability × 10 (0 for a CPU).

    Example: `#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>`.
  }];
  let parameters = (ins StringRefParameter<>:$id, StringRefParameter<>:$kind, StringRefParameter<>:$name,
      StringRefParameter<>:$uuid, StringRefParameter<>:$pci, "int64_t":$host, "uint64_t":$memory, "uint64_t":$reserved,
      "int64_t":$capability, "::mlir::FloatAttr":$bandwidth, "::mlir::FloatAttr":$flops);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Dist_LinkAttr : Dist_Attr<"Link", "link"> {
  let summary = "A link between two devices, by index";
  let description = [{
    `kind` is `nvidia-smi topo`'s own word (NV18, PIX, PXB, PHB, NODE, SYS), NET between hosts, HOST for shared memory;
    bandwidth in bytes/s one way, latency in seconds.

    Example: `#dist.link<a = 0, b = 1, kind = "NV18", bandwidth = 4.0e11, latency = 2.0e-6, p2p = true>`.
  }];
  let parameters = (ins "int64_t":$a, "int64_t":$b, StringRefParameter<>:$kind, "::mlir::FloatAttr":$bandwidth,
      "::mlir::FloatAttr":$latency, "bool":$p2p);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Dist_TopologyAttr : Dist_Attr<"Topology", "topology"> {
  let summary = "The machine that the plan is for (module attribute `dist.topology`)";
  let description = [{
    All that passes know of the machine. Example: `#dist.topology<name = "two", hosts = ["h"], devices = [...], links = []>`.
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::ArrayAttr":$hosts, ArrayRefParameter<"DeviceAttr">:$devices,
      OptionalArrayRefParameter<"LinkAttr">:$links);
  let assemblyFormat = [{
    `<` `name` `=` $name `,` `hosts` `=` $hosts `,` `devices` `=` `[` $devices `]` `,` `links` `=` `[` (`]`) : ($links^ `]`)? `>`
  }];
  let extraClassDeclaration = [{
    /// The link between two devices in either direction; a null attribute where there is none.
    LinkAttr findLink(int64_t a, int64_t b) const;
  }];
  let genVerifyDecl = 1;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "Which device each rank runs on (module attribute `dist.mesh`)";
  let description = [{
    `devices[stage * tp + tp_index]` is an index into the topology's devices.

    Example: `#dist.mesh<tp = 3, pp = 2, devices = [0, 1, 2, 3, 4, 5]>`.
  }];
  let parameters = (ins "int64_t":$tp, "int64_t":$pp, ArrayRefParameter<"int64_t">:$devices);
  let assemblyFormat = "`<` `tp` `=` $tp `,` `pp` `=` $pp `,` `devices` `=` `[` $devices `]` `>`";
  let extraClassDeclaration = [{
    int64_t numRanks() const { return getTp() * getPp(); }
    int64_t rank(int64_t stage, int64_t tpIndex) const { return stage * getTp() + tpIndex; }
  }];
  let genVerifyDecl = 1;
}

def Dist_LimitsAttr : Dist_Attr<"Limits", "limits"> {
  let summary = "What the plan must serve (module attribute `dist.limits`)";
  let description = [{
    Tokens per sequence, sequences at once, tokens per step, rows with logits per step, tokens per KV page, the share of
    device memory to use, and the KV cache's element type.

    Example: `#dist.limits<max_model_len = 2048, max_num_seqs = 8, max_batched_tokens = 512, max_logits_rows = 8, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>`.
  }];
  let parameters = (ins "int64_t":$max_model_len, "int64_t":$max_num_seqs, "int64_t":$max_batched_tokens,
      "int64_t":$max_logits_rows, "int64_t":$page_size, "::mlir::FloatAttr":$memory_utilization, "::mlir::Type":$kv_dtype);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dist_ReplicatedAttr : Dist_Attr<"Replicated", "replicated"> {
  let summary = "Every rank of the stage holds the whole value";
  let description = [{
    Example: `#dist.replicated`.
  }];
}

def Dist_PartialAttr : Dist_Attr<"Partial", "partial"> {
  let summary = "The value is the sum of what the ranks of the stage hold";
  let description = [{
    Example: `#dist.partial`.
  }];
}

def Dist_TilesAttr : Dist_Attr<"Tiles", "tiles"> {
  let summary = "Rank i holds [offsets[i], offsets[i] + sizes[i]) of dimension `dim`";
  let description = [{
    Extents are explicit for every rank, so an even split is a special case. Tiles may overlap: where there are fewer KV
    heads than ranks, several ranks hold the same head. Every element is held by at least one rank.

    Example, 8 KV heads of 128 over 3 ranks: `#dist.tiles<dim = 1, offsets = [0, 384, 768], sizes = [384, 384, 256]>`.
  }];
  let parameters = (ins "int64_t":$dim, ArrayRefParameter<"int64_t">:$offsets, ArrayRefParameter<"int64_t">:$sizes);
  let assemblyFormat = "`<` `dim` `=` $dim `,` `offsets` `=` `[` $offsets `]` `,` `sizes` `=` `[` $sizes `]` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements along `dim` of the whole value.
    int64_t extent() const;
    /// True when no element is held twice.
    bool disjoint() const;
  }];
}

#endif // LLMC_DIALECTS_DIST_ATTRS_TD
