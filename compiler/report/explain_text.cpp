// The terminal's form: a table of stages and ranks, the ledger in columns, and three sentences on capacity and traffic.
#include "compiler/report/explain.h"

#include <algorithm>
#include <cstdio>

namespace llmc::report {

namespace {

std::string human(uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

std::string grouped(uint64_t n) {
  std::string text = std::to_string(n);
  for (size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

// [0, 1, 2, 5] → "0-2, 5"
std::string ranges(const std::vector<uint32_t> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end - i > 1)
      text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text.empty() ? "-" : text;
}

// Rows of cells, each column as wide as its widest cell; the first row is the heading.
std::string table(const std::vector<std::vector<std::string>> &rows, size_t left_aligned) {
  std::vector<size_t> widths;
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto &row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (i < left_aligned ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string layout(const Explanation &e) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "rank", "device", "layers", "kv heads", "q heads", "ffn columns", "embedding rows", "lm_head rows"}};
  auto count = [](uint64_t n) { return n ? std::to_string(n) : std::string("-"); };
  for (const RankShare &r : e.ranks) {
    std::string kv = ranges(r.kv_heads);
    if (r.duplicated_kv_heads)
      kv += " (" + std::to_string(r.duplicated_kv_heads) + " copied)";
    rows.push_back({std::to_string(r.stage), std::to_string(r.rank), r.device_id, ranges(r.layers), kv, count(r.q_heads),
                    count(r.ffn_columns), count(r.embedding_rows), count(r.lm_head_rows)});
  }
  return table(rows, 5);
}

std::string ledger(const Explanation &e) {
  std::vector<std::string> names;
  for (const RankShare &r : e.ranks)
    for (const auto &line : r.ledger)
      if (std::find(names.begin(), names.end(), line.name) == names.end())
        names.push_back(line.name);
  std::vector<std::vector<std::string>> rows(1, {"rank", "device"});
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  rows[0].insert(rows[0].end(), {"total", "budget", "memory"});
  for (const RankShare &r : e.ranks) {
    std::vector<std::string> row = {std::to_string(r.rank), r.device_id};
    for (const std::string &name : names) {
      uint64_t bytes = 0;
      for (const auto &line : r.ledger)
        bytes += line.name == name ? line.bytes : 0;
      row.push_back(human(bytes));
    }
    row.insert(row.end(), {human(r.total), human(r.budget), human(r.memory)});
    rows.push_back(row);
  }
  return table(rows, 2);
}

} // namespace

std::string to_text(const Explanation &e) {
  std::string text = "Model " + e.model + " (" + e.model_type + ", " + e.source + "): " + grouped(e.parameters) +
                     " parameters on " + std::to_string(e.ranks.size()) + " ranks, tp " + std::to_string(e.tp) +
                     " x pp " + std::to_string(e.pp) + "\n\nLayout\n" + layout(e) + "\nMemory ledger, per rank\n" +
                     ledger(e) + "\n";
  char number[64];
  std::snprintf(number, sizeof number, "%.1f", e.capacity_sequences);
  const RankShare &binding = e.ranks[e.binding_rank];
  text += "Capacity: " + grouped(e.num_pages) + " pages of " + std::to_string(e.page_size) + " tokens = " +
          grouped(e.capacity_tokens) + " tokens, " + number + " sequences of " + grouped(e.max_model_len) +
          " tokens (at most " + std::to_string(e.max_num_seqs) + " at once)\n";
  text += e.memory_bound ? "  bound by the memory of device " + binding.device_id + " (rank " +
                               std::to_string(binding.rank) + ", stage " + std::to_string(binding.stage) + ")\n"
                         : "  bound by --max-num-seqs; the tightest device, " + binding.device_id + " (rank " +
                               std::to_string(binding.rank) + ", stage " + std::to_string(binding.stage) +
                               "), has room for " + grouped(binding.pages_that_fit) + " pages\n";
  text += "KV cache: " + grouped(e.kv_bytes_per_token) + " bytes a token over all ranks";
  if (e.duplicated_kv_bytes)
    text += ", of which copies of KV heads take " + human(e.duplicated_kv_bytes) + " in all";
  text += "\nTraffic: " + human(e.sent_per_token) + " sent a token, " + human(e.sent_per_logits_row) +
          " a row of logits, over all ranks; rank 0 runs " + std::to_string(e.ranks[0].collectives) +
          " collectives and " + std::to_string(e.ranks[0].transfers) + " transfers a step\n";
  return text;
}

} // namespace llmc::report
