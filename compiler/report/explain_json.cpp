// The JSON form. Field names are those of the structs in explain.h.
#include "compiler/report/explain.h"

#include "runtime/plan/dump.h"

#include <cmath>
#include <cstdio>

namespace llmc::report {

namespace {

std::string quoted(const std::string &text) {
  std::string out;
  llmrt::plan::append_json_string(out, text);
  return out;
}

// Builds one object; values come as JSON.
class Object {
public:
  Object &raw(const char *name, const std::string &value) {
    text_ += (text_.empty() ? "" : ", ") + quoted(name) + ": " + value;
    return *this;
  }
  Object &add(const char *name, const std::string &value) { return raw(name, quoted(value)); }
  Object &add(const char *name, uint64_t value) { return raw(name, std::to_string(value)); }
  Object &add(const char *name, const std::vector<uint32_t> &values) {
    std::string list;
    for (uint32_t value : values)
      list += (list.empty() ? "" : ", ") + std::to_string(value);
    return raw(name, "[" + list + "]");
  }
  std::string str() const { return "{" + text_ + "}"; }

private:
  std::string text_;
};

std::string rank_json(const RankShare &r) {
  Object ledger;
  for (const auto &line : r.ledger)
    ledger.add(line.name.c_str(), line.bytes);
  Object o;
  o.add("rank", r.rank).add("stage", r.stage).add("tp_index", r.tp_index).add("device", r.device_id);
  o.add("layers", r.layers).add("q_heads", r.q_heads).add("kv_heads", r.kv_heads);
  o.add("duplicated_kv_heads", r.duplicated_kv_heads).add("ffn_columns", r.ffn_columns);
  o.add("embedding_rows", r.embedding_rows).add("lm_head_rows", r.lm_head_rows);
  o.add("weight_elements", r.weight_elements).add("kv_bytes_per_token", r.kv_bytes_per_token);
  o.add("duplicated_kv_bytes", r.duplicated_kv_bytes);
  o.raw("ledger", ledger.str()).add("total", r.total).add("budget", r.budget).add("memory", r.memory);
  // A rank without layers keeps no pages, so any number fits.
  o.raw("pages_that_fit", r.pages_that_fit == UINT64_MAX ? "null" : std::to_string(r.pages_that_fit));
  o.add("sent_per_token", r.sent_per_token).add("sent_per_logits_row", r.sent_per_logits_row);
  o.add("collectives", r.collectives).add("transfers", r.transfers);
  return o.str();
}

} // namespace

std::string to_json(const Explanation &e) {
  char sequences[64];
  std::snprintf(sequences, sizeof sequences, "%.3f", e.capacity_sequences);
  std::string ranks;
  for (const RankShare &r : e.ranks)
    ranks += (ranks.empty() ? "\n  " : ",\n  ") + rank_json(r);
  Object o;
  o.add("model", e.model).add("model_type", e.model_type).add("source", e.source).add("parameters", e.parameters);
  o.add("held_elements", e.held_elements).add("tp", e.tp).add("pp", e.pp).add("page_size", e.page_size);
  o.add("num_pages", e.num_pages).add("capacity_tokens", e.capacity_tokens);
  o.raw("capacity_sequences", sequences).add("max_model_len", e.max_model_len).add("max_num_seqs", e.max_num_seqs);
  o.add("kv_bytes_per_token", e.kv_bytes_per_token).add("duplicated_kv_bytes", e.duplicated_kv_bytes);
  o.add("binding_rank", e.binding_rank).raw("memory_bound", e.memory_bound ? "true" : "false");
  o.add("sent_per_token", e.sent_per_token).add("sent_per_logits_row", e.sent_per_logits_row);
  o.raw("ranks", "[" + ranks + "]");
  return o.str() + "\n";
}

} // namespace llmc::report
