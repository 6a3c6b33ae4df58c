// The ops of a program, prepared once: raw pointers, strides and constants in place of indices and names, so that a
// step does no lookup. One struct per op of plan.fbs, plus the conversions around ops on 16-bit activations.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/step.h"

namespace llmrt::exec {

// A column range of an activation buffer, as f32. Rows: how many this step has.
struct Matrix {
  float *data = nullptr;
  int64_t stride = 0; // floats
  int64_t cols = 0;
  plan::Rows rows = plan::Rows::Tokens;
};

// The same as bytes of whatever type, for copies.
struct Bytes {
  std::byte *data = nullptr;
  size_t stride = 0;    // bytes
  size_t row_bytes = 0;
  plan::Rows rows = plan::Rows::Tokens;
};

// What ops run with.
struct RankContext {
  cpu::Team &team;
  comm::Communicator &comm;
};

struct EmbeddingOp {
  cpu::Embedding call; // ids and T come with the step
};
struct RmsNormOp {
  Matrix out, input;
  const float *weight;
  float eps, weight_offset;
};
struct AddRmsNormOp {
  Matrix out, residual, input;
  const float *weight;
  float eps, weight_offset;
};
struct AddOp {
  Matrix residual, input;
};
struct LinearOp {
  cpu::Linear call; // M comes with the step
  plan::Rows rows;
};
struct RopeOp {
  cpu::Rope q, k; // T comes with the step
};
struct KvAppendOp {
  cpu::KvPool pool;
  Matrix k, v;
};
struct AttentionOp {
  cpu::PagedAttention call; // sequences and pages come with the step
  std::vector<int32_t> kv_head_of_q;
};
struct GatedActOp {
  Matrix out, gate, up;
  cpu::Act act;
};
struct SelectRowsOp {
  Matrix out, input;
};
struct AllReduceOp {
  Matrix data;
  uint32_t group, seq;
};
struct AllGatherOp {
  Bytes out, input;
  std::vector<uint64_t> part_bytes;
  uint32_t group, seq;
};
struct GatherOp {
  Bytes out, input; // out.data null where this rank is not the root
  std::vector<uint64_t> part_bytes;
  uint32_t root, group, seq;
};
struct SendOp {
  Bytes input;
  uint32_t peer, seq;
};
struct RecvOp {
  Bytes out;
  uint32_t peer, seq;
};
// A 16-bit view to its f32 shadow before an op that reads it, and back after an op that writes it.
struct WidenOp {
  Matrix shadow;
  Bytes view;
  cpu::DType dtype;
};
struct NarrowOp {
  Matrix shadow;
  Bytes view;
  cpu::DType dtype;
};

using PreparedOp = std::variant<EmbeddingOp, RmsNormOp, AddRmsNormOp, AddOp, LinearOp, RopeOp, KvAppendOp, AttentionOp,
                                GatedActOp, SelectRowsOp, AllReduceOp, AllGatherOp, GatherOp, SendOp, RecvOp, WidenOp,
                                NarrowOp>;

// Angles of one rope table, computed at the start of each step for all layers.
struct RopeAngles {
  float *table = nullptr; // [max_batched_tokens, rotary_dim / 2, 2]
  std::vector<float> inv_freq;
  float attention_factor = 1;
  int rotary_dim = 0;
};

void run(PreparedOp &op, const Step &step, const RankContext &context);
void run(const RopeAngles &angles, const Step &step, const RankContext &context);

} // namespace llmrt::exec
