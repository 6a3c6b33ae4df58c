// Reading the numbers off the programs. Bytes on links count what a rank puts in: a ring all-reduce moves
// 2 (n-1)/n of the data per member, an ordered one (n-1) reads of it, a gather each member's part to its receivers.
#include "compiler/report/explain.h"

#include "runtime/plan/access.h"

#include <algorithm>

namespace llmc::report {

using namespace llmrt::plan;

namespace {

class Reader {
public:
  explicit Reader(const Plan &plan) : plan_(plan) {}

  Explanation run() {
    head();
    for (const Program *program : *plan_.programs())
      out_.ranks.push_back(share(*program));
    sums();
    return std::move(out_);
  }

private:
  void head();
  RankShare share(const Program &program);
  void op(const Program &program, const Op &op, RankShare &share);
  void communication(const Program &program, const Op &op, RankShare &share);
  void sums();

  const Plan &plan_;
  Explanation out_;
};

void Reader::head() {
  const Model &model = *plan_.model();
  const Limits &limits = *plan_.limits();
  out_.model = std::string(view_of(model.served_name()));
  out_.model_type = std::string(view_of(model.model_type()));
  out_.source = std::string(view_of(model.source()));
  out_.parameters = model.parameters();
  out_.tp = plan_.tp();
  out_.pp = plan_.pp();
  out_.page_size = limits.page_size();
  out_.num_pages = limits.num_pages();
  out_.max_model_len = limits.max_model_len();
  out_.max_num_seqs = limits.max_num_seqs();
  out_.capacity_tokens = uint64_t(limits.num_pages()) * limits.page_size();
  uint32_t pages_per_sequence = (limits.max_model_len() + limits.page_size() - 1) / limits.page_size();
  out_.capacity_sequences = double(limits.num_pages()) / pages_per_sequence;
}

RankShare Reader::share(const Program &program) {
  RankShare share;
  share.rank = program.rank();
  share.stage = program.stage();
  share.tp_index = program.tp_index();
  share.device = program.device();
  share.device_id = std::string(view_of(plan_.topology()->devices()->Get(program.device())->id()));
  const KvCache &kv = *program.kv();
  share.layers.assign(each(kv.layers()).begin(), each(kv.layers()).end());
  share.kv_heads.assign(each(kv.heads()).begin(), each(kv.heads()).end());
  share.duplicated_kv_heads = kv.duplicated_heads();
  share.kv_bytes_per_token = kv.page_bytes() / plan_.limits()->page_size();
  if (!share.kv_heads.empty())
    share.duplicated_kv_bytes = kv.bytes() / share.kv_heads.size() * kv.duplicated_heads();
  for (const Weight *weight : each(program.weights()))
    share.weight_elements += weight->rows() * weight->cols();
  const Ledger &ledger = *program.ledger();
  for (const LedgerLine *line : each(ledger.lines()))
    share.ledger.push_back({std::string(view_of(line->name())), line->bytes()});
  share.total = ledger.total();
  share.budget = ledger.budget();
  share.memory = ledger.memory();
  uint64_t fixed = ledger.total() - kv.bytes();
  share.pages_that_fit = kv.page_bytes() ? (ledger.budget() - fixed) / kv.page_bytes() : UINT64_MAX;
  for (const Op *op : *program.ops())
    this->op(program, *op, share);
  // The product that makes the logits, or this rank's part of them.
  for (const Op *op : *program.ops())
    if (const Linear *linear = op->op_as_Linear())
      if (program.buffers()->Get(linear->out()->buffer())->rows() == Rows::Logits)
        share.lm_head_rows = std::max<uint64_t>(share.lm_head_rows, linear->out()->cols());
  return share;
}

void Reader::op(const Program &program, const Op &op, RankShare &share) {
  if (const Embedding *o = op.op_as_Embedding())
    share.embedding_rows = o->vocab_count();
  else if (const Attention *o = op.op_as_Attention())
    share.q_heads = std::max<uint64_t>(share.q_heads, o->q_heads());
  else if (const GatedAct *o = op.op_as_GatedAct())
    share.ffn_columns = std::max<uint64_t>(share.ffn_columns, o->out()->cols());
  communication(program, op, share);
}

void Reader::communication(const Program &program, const Op &op, RankShare &share) {
  CommInfo comm = comm_of(op);
  if (!comm.is_comm)
    return;
  const Buffer &buffer = *program.buffers()->Get(comm.payload->buffer());
  uint64_t bytes = comm.payload->cols() * block_bytes(buffer.dtype()), sent = 0;
  if (comm.is_transfer) {
    ++share.transfers;
    sent = op.op_type() == OpKind::Send ? bytes : 0;
  } else {
    ++share.collectives;
    uint64_t others = size_of(plan_.groups()->Get(comm.group)->ranks()) - 1;
    if (op.op_type() == OpKind::Gather)
      sent = plan_.groups()->Get(comm.group)->ranks()->Get(comm.root) == program.rank() ? 0 : bytes;
    else if (op.op_type() == OpKind::AllReduce && comm.algorithm != Algorithm::Ordered && comm.algorithm != Algorithm::OneShot)
      sent = 2 * bytes * others / (others + 1);
    else
      sent = bytes * others;
  }
  (buffer.rows() == Rows::Tokens ? share.sent_per_token : share.sent_per_logits_row) += sent;
}

void Reader::sums() {
  for (const RankShare &share : out_.ranks) {
    out_.held_elements += share.weight_elements;
    out_.kv_bytes_per_token += share.kv_bytes_per_token;
    out_.duplicated_kv_bytes += share.duplicated_kv_bytes;
    out_.sent_per_token += share.sent_per_token;
    out_.sent_per_logits_row += share.sent_per_logits_row;
    if (share.pages_that_fit < out_.ranks[out_.binding_rank].pages_that_fit)
      out_.binding_rank = share.rank;
  }
  out_.memory_bound = out_.ranks[out_.binding_rank].pages_that_fit <= out_.num_pages;
}

} // namespace

Explanation explain(const Plan &plan) { return Reader(plan).run(); }

} // namespace llmc::report
