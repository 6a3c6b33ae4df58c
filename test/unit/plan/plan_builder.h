// Builds small valid plans by hand through the object API, for tests that need one: to execute it, or to break it
// and see it refused. The programs are those of a llama-like model, split as the compiler would split it.
#pragma once

#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llmrt::plan::testing {

struct TinySpec {
  uint32_t tp = 2, pp = 2;
  uint64_t hidden = 32, layers = 4, q_heads = 4, kv_heads = 2, head_dim = 8, ffn = 48, vocab = 50;
  bool tied = false;    // lm_head is a second copy of the embedding table
  bool qkv_bias = false;
  bool o_bias = false;  // on the first rank of the stage alone, for the sum counts it once
  bool qk_norm = false;
  DType weight_dtype = DType::F32, activation_dtype = DType::F32, kv_dtype = DType::F32;
  Layout linear_layout = Layout::RowMajor;
  uint32_t window = 0;
  uint32_t max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 32, max_logits_rows = 8;
  uint32_t page_size = 4, num_pages = 64;
  // Empty: every tensor is filled (norms with ones, others normally). Otherwise one file of this path holds all
  // tensors, f32, one after the other in the order of PlanT::tensors, from byte 0 on.
  std::string weight_file;
  std::string kernel_prefix = "cpu."; // kernel_prefix + op (+ ".packed16"); communication is "host." + op
};

// A complete plan that verify() accepts.
PlanT build_tiny_plan(const TinySpec &spec = {});

// Sets lifetimes and arena offsets (no two buffers share bytes), weight offsets, ledgers and parameters anew, after a
// test has changed ops, buffers or weights.
void relayout(PlanT &plan);

std::vector<uint8_t> pack(const PlanT &plan);

// pack() and LoadedPlan::from_bytes().
std::shared_ptr<const LoadedPlan> load(const PlanT &plan);

} // namespace llmrt::plan::testing
