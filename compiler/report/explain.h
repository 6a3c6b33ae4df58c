// What a plan means for its owner: who runs what, what memory goes where, how much fits, what crosses between ranks.
// Plain C++ over the plan; no MLIR.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llmc::report {

// One rank's share of the model, read off its program.
struct RankShare {
  uint32_t rank = 0, stage = 0, tp_index = 0, device = 0;
  std::string device_id;
  std::vector<uint32_t> layers;        // the model's layers
  uint64_t q_heads = 0;                // query heads (of its widest layer)
  std::vector<uint32_t> kv_heads;      // the model's KV heads
  uint32_t duplicated_kv_heads = 0;    // of these, held by a lower rank of the stage too
  uint64_t ffn_columns = 0;            // of its widest layer
  uint64_t embedding_rows = 0, lm_head_rows = 0; // vocabulary rows; 0: none
  uint64_t weight_elements = 0;        // replicas included
  uint64_t kv_bytes_per_token = 0;
  uint64_t duplicated_kv_bytes = 0;    // over the whole pool
  struct Line {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<Line> ledger;
  uint64_t total = 0, budget = 0, memory = 0;
  uint64_t pages_that_fit = 0;         // pages that this rank alone would have room for
  // Bytes that this rank puts onto links, per token of a step and per row with logits.
  uint64_t sent_per_token = 0, sent_per_logits_row = 0;
  uint32_t collectives = 0, transfers = 0; // per step
};

struct Explanation {
  std::string model, model_type, source;
  uint64_t parameters = 0, held_elements = 0; // held over all ranks; more than parameters where parts are replicated
  uint32_t tp = 0, pp = 0;
  uint32_t page_size = 0, num_pages = 0;
  uint64_t capacity_tokens = 0;
  uint32_t max_model_len = 0, max_num_seqs = 0;
  double capacity_sequences = 0;              // of max_model_len tokens
  uint64_t kv_bytes_per_token = 0;            // over all ranks
  uint64_t duplicated_kv_bytes = 0;           // over all ranks
  // The rank that has room for the fewest pages. Its device is full to the budget only when `memory_bound`; otherwise
  // the page count is what max_num_seqs sequences of max_model_len tokens can use.
  uint32_t binding_rank = 0;
  bool memory_bound = false;
  uint64_t sent_per_token = 0, sent_per_logits_row = 0; // over all ranks
  std::vector<RankShare> ranks;
};

// The plan must have passed verify().
Explanation explain(const llmrt::plan::Plan &plan);

// A page of text for a terminal.
std::string to_text(const Explanation &explanation);

// The same as JSON; docs/plan-format.md documents the fields.
std::string to_json(const Explanation &explanation);

} // namespace llmc::report
