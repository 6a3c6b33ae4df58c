// Tables of names and sizes, and the one switch over op kinds that says what each op reads and writes.
#include "runtime/plan/access.h"

namespace llmrt::plan {

std::string quoted(const flatbuffers::String *text) {
  constexpr size_t kMost = 80;
  std::string_view raw = view_of(text);
  std::string out = "'";
  for (char c : raw.substr(0, kMost))
    out += (c >= 0x20 && c < 0x7f) ? c : '?';
  if (raw.size() > kMost)
    out += "…";
  return out + "'";
}

uint64_t block_elements(DType dtype) {
  switch (dtype) {
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    return 1;
  case DType::Q4_0:
  case DType::Q4_1:
  case DType::Q5_0:
  case DType::Q5_1:
  case DType::Q8_0:
    return 32;
  case DType::Q4_K:
  case DType::Q5_K:
  case DType::Q6_K:
    return 256;
  }
  return 1;
}

uint64_t block_bytes(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return 4;
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::Q4_0:
    return 2 + 16;
  case DType::Q4_1:
    return 4 + 16;
  case DType::Q5_0:
    return 2 + 4 + 16;
  case DType::Q5_1:
    return 4 + 4 + 16;
  case DType::Q8_0:
    return 2 + 32;
  case DType::Q4_K:
    return 4 + 12 + 128;
  case DType::Q5_K:
    return 4 + 12 + 32 + 128;
  case DType::Q6_K:
    return 128 + 64 + 16 + 2;
  }
  return 1;
}

bool is_plain_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

bool row_major_bytes(DType dtype, uint64_t rows, uint64_t cols, uint64_t &bytes) {
  if (cols % block_elements(dtype) != 0)
    return false;
  uint64_t row = 0;
  return !__builtin_mul_overflow(cols / block_elements(dtype), block_bytes(dtype), &row) &&
         !__builtin_mul_overflow(row, rows, &bytes);
}

bool weight_bytes(DType dtype, Layout layout, uint64_t rows, uint64_t cols, uint64_t &bytes) {
  if (layout == Layout::RowMajor)
    return row_major_bytes(dtype, rows, cols, bytes);
  const bool blocks = dtype == DType::Q8_0 || dtype == DType::Q4_1;
  if ((!is_plain_float(dtype) && !blocks) || rows > UINT64_MAX - 15 || cols == UINT64_MAX)
    return false;
  if (!blocks && dtype != DType::F32)
    cols += cols % 2;
  return row_major_bytes(dtype, (rows + 15) / 16 * 16, cols, bytes);
}

const char *name_of(DType dtype) {
  static const char *const names[] = {"f32",  "f16",  "bf16", "q4_0", "q4_1", "q5_0",
                                      "q5_1", "q8_0", "q4_k", "q5_k", "q6_k"};
  return dtype >= DType::MIN && dtype <= DType::MAX ? names[size_t(dtype)] : "unknown";
}

const char *name_of(DeviceKind kind) {
  return kind == DeviceKind::Cpu ? "cpu" : kind == DeviceKind::Cuda ? "cuda" : "unknown";
}

const char *name_of(Rows rows) {
  return rows == Rows::Tokens ? "tokens" : rows == Rows::Logits ? "logits" : "unknown";
}

const char *name_of(Layout layout) {
  return layout == Layout::RowMajor ? "row_major" : layout == Layout::Packed16 ? "packed16" : "unknown";
}

const char *name_of(RopeStyle style) {
  return style == RopeStyle::NeoX ? "neox" : style == RopeStyle::Interleaved ? "interleaved" : "unknown";
}

const char *name_of(Activation activation) {
  static const char *const names[] = {"silu", "gelu_tanh", "gelu"};
  return activation >= Activation::MIN && activation <= Activation::MAX ? names[size_t(activation)] : "unknown";
}

const char *name_of(Comm comm) {
  static const char *const names[] = {"host", "peer", "nccl"};
  return comm >= Comm::MIN && comm <= Comm::MAX ? names[size_t(comm)] : "unknown";
}

const char *name_of(Algorithm algorithm) {
  static const char *const names[] = {"ring", "one_shot", "two_shot", "ordered"};
  return algorithm >= Algorithm::MIN && algorithm <= Algorithm::MAX ? names[size_t(algorithm)] : "unknown";
}

const char *name_of(Fill fill) {
  static const char *const names[] = {"from_file", "normal", "ones", "zeros"};
  return fill >= Fill::MIN && fill <= Fill::MAX ? names[size_t(fill)] : "unknown";
}

const char *name_of(OpKind op) {
  switch (op) {
  case OpKind::NONE:
    return "none";
  case OpKind::Embedding:
    return "embedding";
  case OpKind::RmsNorm:
    return "rms_norm";
  case OpKind::AddRmsNorm:
    return "add_rms_norm";
  case OpKind::Add:
    return "add";
  case OpKind::Linear:
    return "linear";
  case OpKind::Rope:
    return "rope";
  case OpKind::KvAppend:
    return "kv_append";
  case OpKind::Attention:
    return "attention";
  case OpKind::GatedAct:
    return "gated_act";
  case OpKind::SelectRows:
    return "select_rows";
  case OpKind::AllReduce:
    return "all_reduce";
  case OpKind::AllGather:
    return "all_gather";
  case OpKind::Gather:
    return "gather";
  case OpKind::Send:
    return "send";
  case OpKind::Recv:
    return "recv";
  }
  return "unknown";
}

Operands operands_of(const Op &op) {
  Operands list;
  auto view = [&](const char *name, const View *at, Access access, bool optional = false) {
    list.views[list.num_views++] = {name, at, access, optional};
  };
  auto weight = [&](const char *name, int64_t index, bool optional = false) {
    list.weights[list.num_weights++] = {name, index, optional};
  };
  if (!op.op())
    return list;
  switch (op.op_type()) {
  case OpKind::NONE:
    break;
  case OpKind::Embedding: {
    const Embedding &o = *op.op_as_Embedding();
    view("out", o.out(), Access::Write);
    weight("table", o.table());
    break;
  }
  case OpKind::RmsNorm: {
    const RmsNorm &o = *op.op_as_RmsNorm();
    view("out", o.out(), Access::Write);
    view("input", o.input(), Access::Read);
    weight("weight", o.weight());
    break;
  }
  case OpKind::AddRmsNorm: {
    const AddRmsNorm &o = *op.op_as_AddRmsNorm();
    view("out", o.out(), Access::Write);
    view("residual", o.residual(), Access::ReadWrite);
    view("input", o.input(), Access::Read);
    weight("weight", o.weight());
    break;
  }
  case OpKind::Add: {
    const Add &o = *op.op_as_Add();
    view("residual", o.residual(), Access::ReadWrite);
    view("input", o.input(), Access::Read);
    break;
  }
  case OpKind::Linear: {
    const Linear &o = *op.op_as_Linear();
    view("out", o.out(), Access::Write);
    view("input", o.input(), Access::Read);
    weight("weight", o.weight());
    weight("bias", o.bias(), true);
    break;
  }
  case OpKind::Rope: {
    const Rope &o = *op.op_as_Rope();
    view("q", o.q(), Access::ReadWrite);
    view("k", o.k(), Access::ReadWrite);
    weight("q_norm", o.q_norm(), true);
    weight("k_norm", o.k_norm(), true);
    break;
  }
  case OpKind::KvAppend: {
    const KvAppend &o = *op.op_as_KvAppend();
    view("k", o.k(), Access::Read);
    view("v", o.v(), Access::Read);
    break;
  }
  case OpKind::Attention: {
    const Attention &o = *op.op_as_Attention();
    view("out", o.out(), Access::Write);
    view("q", o.q(), Access::Read);
    break;
  }
  case OpKind::GatedAct: {
    const GatedAct &o = *op.op_as_GatedAct();
    view("out", o.out(), Access::Write);
    view("gate", o.gate(), Access::Read);
    view("up", o.up(), Access::Read);
    break;
  }
  case OpKind::SelectRows: {
    const SelectRows &o = *op.op_as_SelectRows();
    view("out", o.out(), Access::Write);
    view("input", o.input(), Access::Read);
    break;
  }
  case OpKind::AllReduce:
    view("data", op.op_as_AllReduce()->data(), Access::ReadWrite);
    break;
  case OpKind::AllGather: {
    const AllGather &o = *op.op_as_AllGather();
    view("out", o.out(), Access::Write);
    view("input", o.input(), Access::Read);
    break;
  }
  case OpKind::Gather: {
    const Gather &o = *op.op_as_Gather();
    view("out", o.out(), Access::Write, true);
    view("input", o.input(), Access::Read);
    break;
  }
  case OpKind::Send:
    view("input", op.op_as_Send()->input(), Access::Read);
    break;
  case OpKind::Recv:
    view("out", op.op_as_Recv()->out(), Access::Write);
    break;
  }
  return list;
}

CommInfo comm_of(const Op &op) {
  CommInfo info;
  if (!op.op())
    return info;
  auto collective = [&](const auto &o) {
    info.is_comm = true;
    info.group = o.group();
    info.seq = o.seq();
    info.comm = o.comm();
    info.algorithm = o.algorithm();
  };
  auto transfer = [&](const auto &o) {
    info.is_comm = info.is_transfer = true;
    info.peer = o.peer();
    info.seq = o.seq();
    info.comm = o.comm();
  };
  switch (op.op_type()) {
  case OpKind::AllReduce:
    collective(*op.op_as_AllReduce());
    info.one_shot_bytes = op.op_as_AllReduce()->one_shot_bytes();
    info.two_shot_bytes = op.op_as_AllReduce()->two_shot_bytes();
    info.payload = op.op_as_AllReduce()->data();
    break;
  case OpKind::AllGather:
    collective(*op.op_as_AllGather());
    info.payload = op.op_as_AllGather()->input();
    info.counts = op.op_as_AllGather()->counts();
    break;
  case OpKind::Gather:
    collective(*op.op_as_Gather());
    info.payload = op.op_as_Gather()->input();
    info.counts = op.op_as_Gather()->counts();
    info.root = op.op_as_Gather()->root();
    break;
  case OpKind::Send:
    transfer(*op.op_as_Send());
    info.payload = op.op_as_Send()->input();
    break;
  case OpKind::Recv:
    transfer(*op.op_as_Recv());
    info.payload = op.op_as_Recv()->out();
    break;
  default:
    break;
  }
  return info;
}

} // namespace llmrt::plan
