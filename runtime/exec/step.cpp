// The checks of a batch, and its page table.
#include "runtime/exec/step.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

[[noreturn]] void refuse(const StepBatch &batch, const std::string &why) {
  throw Error("step " + std::to_string(batch.id) + " cannot run: " + why);
}

std::string str(int64_t value) { return std::to_string(value); }

void check_size(const StepBatch &batch, const char *name, size_t size, size_t expected) {
  if (size != expected)
    refuse(batch, std::string(name) + " has " + std::to_string(size) + " entries where " + std::to_string(expected) +
                      " belong");
}

void check_at_most(const StepBatch &batch, const char *name, size_t value, uint32_t limit, const char *limit_name) {
  if (value > limit)
    refuse(batch, std::string(name) + " are " + std::to_string(value) + ", more than the plan's " + limit_name +
                      " of " + std::to_string(limit) + "; split the step, or compile with a larger limit");
}

// Starts of ranges: 0 first, rising, `end` last.
void check_starts(const StepBatch &batch, const char *name, const std::vector<int32_t> &starts, size_t end,
                  bool strictly) {
  if (starts.front() != 0 || static_cast<size_t>(starts.back()) != end || starts.back() < 0)
    refuse(batch, std::string(name) + " runs from " + str(starts.front()) + " to " + str(starts.back()) +
                      " where it must run from 0 to " + std::to_string(end));
  for (size_t i = 1; i < starts.size(); ++i)
    if (starts[i] < starts[i - 1] || (strictly && starts[i] == starts[i - 1]))
      refuse(batch, std::string(name) + "[" + std::to_string(i) + "] is " + str(starts[i]) + " after " +
                        str(starts[i - 1]) + ", but must rise");
}

void check_sequence(const StepLimits &limits, const StepBatch &batch, size_t seq) {
  const auto name = [&] { return "sequence " + std::to_string(seq); };
  const int64_t first = batch.seq_starts[seq], rows = batch.seq_starts[seq + 1] - first;
  const int64_t context = batch.context_lens[seq];
  if (context < rows || context > limits.max_model_len)
    refuse(batch, name() + " has a context of " + str(context) + " tokens, which must lie between its " + str(rows) +
                      " new ones and the plan's max_model_len of " + std::to_string(limits.max_model_len));
  const int64_t page_size = limits.page_size, needed = (context + page_size - 1) / page_size;
  const int32_t *pages = batch.pages.data() + batch.page_starts[seq];
  const int64_t given = batch.page_starts[seq + 1] - batch.page_starts[seq];
  if (given < needed)
    refuse(batch, name() + " has " + str(given) + " pages, but its context of " + str(context) + " tokens needs " +
                      str(needed) + " of " + str(page_size));
  if (const int64_t most = (limits.max_model_len + page_size - 1) / page_size; given > most)
    refuse(batch, name() + " has " + str(given) + " pages, more than the " + str(most) + " of " + str(page_size) +
                      " tokens that the plan's max_model_len of " + std::to_string(limits.max_model_len) + " can fill");
  // All are looked at without a branch: the sign bit is set where one is negative or beyond the last page.
  const uint32_t last_page = static_cast<uint32_t>(std::min<int64_t>(limits.num_pages, int64_t{1} << 31) - 1);
  uint32_t wrong = 0;
  for (int64_t i = 0; i < given; ++i)
    wrong |= static_cast<uint32_t>(pages[i]) | (last_page - static_cast<uint32_t>(pages[i]));
  for (int64_t i = 0; i < given && wrong >> 31; ++i)
    if (static_cast<uint32_t>(pages[i]) >= limits.num_pages)
      refuse(batch, name() + " names page " + str(pages[i]) + ", and there are " + std::to_string(limits.num_pages));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = first + i, position = context - rows + i;
    if (batch.positions[row] != position)
      refuse(batch, "row " + str(row) + " of " + name() + " is at position " + str(batch.positions[row]) +
                        ", but its context of " + str(context) + " tokens puts it at " + str(position));
    const int64_t slot = pages[position / page_size] * page_size + position % page_size;
    if (batch.slot_mapping[row] != slot)
      refuse(batch, "row " + str(row) + " of " + name() + " writes slot " + str(batch.slot_mapping[row]) +
                        ", but its pages put position " + str(position) + " at slot " + str(slot));
  }
}

} // namespace

StepLimits StepLimits::of(const plan::Plan &plan) {
  const plan::Limits &from = *plan.limits();
  StepLimits limits;
  limits.max_model_len = from.max_model_len();
  limits.max_num_seqs = from.max_num_seqs();
  limits.max_batched_tokens = from.max_batched_tokens();
  limits.max_logits_rows = from.max_logits_rows();
  limits.page_size = from.page_size();
  limits.num_pages = from.num_pages();
  limits.vocab = plan.model()->vocab();
  return limits;
}

void validate(const StepLimits &limits, const StepBatch &batch) {
  const size_t tokens = batch.ids.size(), seqs = batch.context_lens.size();
  if (tokens == 0 || seqs == 0)
    refuse(batch, "it has " + std::to_string(tokens) + " tokens in " + std::to_string(seqs) +
                      " sequences; both must be at least 1");
  check_at_most(batch, "its tokens", tokens, limits.max_batched_tokens, "max_batched_tokens");
  check_at_most(batch, "its sequences", seqs, limits.max_num_seqs, "max_num_seqs");
  check_at_most(batch, "its rows of logits", batch.logits_rows.size(), limits.max_logits_rows, "max_logits_rows");
  check_size(batch, "positions", batch.positions.size(), tokens);
  check_size(batch, "slot_mapping", batch.slot_mapping.size(), tokens);
  check_size(batch, "seq_starts", batch.seq_starts.size(), seqs + 1);
  check_size(batch, "page_starts", batch.page_starts.size(), seqs + 1);
  check_starts(batch, "seq_starts", batch.seq_starts, tokens, true);
  check_starts(batch, "page_starts", batch.page_starts, batch.pages.size(), false);
  for (size_t row = 0; row < tokens; ++row)
    if (batch.ids[row] < 0 || static_cast<uint64_t>(batch.ids[row]) >= limits.vocab)
      refuse(batch, "row " + std::to_string(row) + " has token id " + str(batch.ids[row]) +
                        ", outside the vocabulary of " + std::to_string(limits.vocab));
  for (size_t seq = 0; seq < seqs; ++seq)
    check_sequence(limits, batch, seq);
  if (!batch.sampling.empty())
    check_size(batch, "sampling", batch.sampling.size(), batch.logits_rows.size());
  for (size_t i = 0; i < batch.logits_rows.size(); ++i) {
    const int32_t row = batch.logits_rows[i];
    if (row < 0 || static_cast<size_t>(row) >= tokens || (i > 0 && row <= batch.logits_rows[i - 1]))
      refuse(batch, "logits_rows[" + std::to_string(i) + "] is " + str(row) + ", but they must rise within the " +
                        std::to_string(tokens) + " rows");
  }
}

void validate_from_rows(const StepBatch &batch, const StepBatch *before) {
  check_size(batch, "from_rows", batch.from_rows.size(), batch.ids.size());
  const size_t drawn = before ? before->sampling.size() : 0;
  for (size_t row = 0; row < batch.from_rows.size(); ++row) {
    const int32_t from = batch.from_rows[row];
    if (from >= 0 && (static_cast<size_t>(from) >= drawn || !before->sampling[static_cast<size_t>(from)].draw))
      refuse(batch, "row " + std::to_string(row) + " takes its token from row " + str(from) +
                        " of the logits of the step before, which does not draw it");
  }
}

void FollowedStep::set(const StepBatch &batch) {
  id_ = batch.id;
  contexts_.clear();
  const size_t seqs = batch.context_lens.size();
  const auto drawn = [](const RowSampling &row) { return row.draw; };
  if (batch.ids.size() == seqs && batch.sampling.size() == seqs && std::all_of(batch.sampling.begin(), batch.sampling.end(), drawn))
    contexts_.assign(batch.context_lens.begin(), batch.context_lens.end());
}

void FollowedStep::validate(const StepLimits &limits, const StepBatch &batch) const {
  if (batch.follows != id_ || contexts_.empty())
    refuse(batch, "it follows step " + std::to_string(batch.follows) + ", and the one before it is step " + std::to_string(id_) +
                      (contexts_.empty() ? ", which does not draw one token for each of its sequences" : ""));
  const std::pair<const char *, size_t> lists[] = {
      {"ids", batch.ids.size()},
      {"positions", batch.positions.size()},
      {"seq_starts", batch.seq_starts.size()},
      {"context_lens", batch.context_lens.size()},
      {"page_starts", batch.page_starts.size()},
      {"pages", batch.pages.size()},
      {"slot_mapping", batch.slot_mapping.size()},
      {"logits_rows", batch.logits_rows.size()},
      {"sampling", batch.sampling.size()},
      {"from_rows", batch.from_rows.size()},
  };
  for (const auto &[name, size] : lists)
    check_size(batch, name, size, 0);
  size_t given = 0;
  for (size_t seq = 0; seq < contexts_.size(); ++seq) {
    const uint32_t position = contexts_[seq]; // of its new token
    const auto name = [&] { return "sequence " + std::to_string(seq); };
    if (position >= limits.max_model_len)
      refuse(batch, name() + " has a context of " + str(int64_t{position} + 1) + " tokens, more than the plan's max_model_len of " +
                        std::to_string(limits.max_model_len));
    if (position % limits.page_size != 0)
      continue;
    if (given == batch.new_pages.size() || batch.new_pages[given].seq != static_cast<int64_t>(seq))
      refuse(batch, name() + " begins a page of " + std::to_string(limits.page_size) + " tokens with position " + str(position) +
                        ", but new_pages[" + std::to_string(given) + "] is not for it");
    if (const int32_t page = batch.new_pages[given++].page; page < 0 || static_cast<uint32_t>(page) >= limits.num_pages)
      refuse(batch, name() + " gets page " + str(page) + ", and there are " + std::to_string(limits.num_pages));
  }
  if (given != batch.new_pages.size())
    refuse(batch, "new_pages[" + std::to_string(given) + "] is for sequence " + str(batch.new_pages[given].seq) +
                      ", which begins no page, or is not in its place");
}

void FollowedStep::advance(const StepBatch &batch) {
  id_ = batch.id;
  for (uint32_t &context : contexts_)
    ++context;
}

void Step::assign(const StepLimits &limits, std::shared_ptr<const StepBatch> given, bool with_page_table) {
  batch = std::move(given);
  if (!with_page_table)
    return;
  const auto pages_of = [&](int32_t context) {
    return (static_cast<int64_t>(context) + limits.page_size - 1) / limits.page_size;
  };
  page_stride = 1;
  for (const int32_t context : batch->context_lens)
    page_stride = std::max(page_stride, pages_of(context));
  page_table.resize(static_cast<size_t>(seqs() * page_stride));
  for (int64_t seq = 0; seq < seqs(); ++seq)
    std::copy_n(batch->pages.begin() + batch->page_starts[seq], pages_of(batch->context_lens[seq]),
                page_table.begin() + seq * page_stride);
}

} // namespace llmrt::exec
