// Shapes, data types and small numbers of every op against its operands, and the plan's limits among each other.
#include "runtime/plan/verify_internal.h"

#include <cmath>

namespace llmrt::plan {

namespace {

constexpr const char *kCheck = "shapes";

// The checks of one op. `at` messages name the operands, the columns found and the columns needed.
class OpShapes {
public:
  OpShapes(const Plan &plan, const Program &program, uint32_t index, Reporter &report)
      : plan_(plan), program_(program), op_(*program.ops()->Get(index)), index_(index), report_(report) {}

  void run();

private:
  template <typename... Parts> void bad(const Parts &...parts) {
    report_.add(kCheck, program_.rank(), index_, &op_, cat(parts...));
  }
  const Buffer &buffer(const View &view) { return *program_.buffers()->Get(view.buffer()); }
  std::string show(const View &view) { return describe(program_, view); }

  void cols(const char *name, const View &view, uint64_t want, const char *why) {
    if (view.cols() != want)
      bad("Its ", name, " ", show(view), " has ", view.cols(), " columns and needs ", want, ": ", why, ".");
  }
  void heads(const char *name, const View &view, uint64_t heads, uint64_t head_dim) {
    uint64_t want = 0;
    if (heads == 0 || head_dim == 0 || !mul_fits(heads, head_dim, want) || want != view.cols())
      bad("Its ", name, " ", show(view), " has ", view.cols(), " columns and needs ", heads, " heads × ", head_dim,
          " = ", want, ".");
  }
  void same_dtype(const char *a, const View &va, const char *b, const View &vb) {
    if (buffer(va).dtype() != buffer(vb).dtype())
      bad("Its ", a, " is ", name_of(buffer(va).dtype()), " and its ", b, " is ", name_of(buffer(vb).dtype()),
          "; both must be the same.");
  }
  void rows(const char *name, const View &view, Rows want) {
    if (buffer(view).rows() != want)
      bad("Its ", name, " ", show(view), " has one row per ", buffer(view).rows() == Rows::Tokens ? "token" : "logits row",
          ", and needs one per ", want == Rows::Tokens ? "token" : "logits row", ".");
  }
  void vector_weight(const char *name, int64_t index, uint64_t want) {
    if (index < 0)
      return;
    const Weight &weight = *program_.weights()->Get(uint32_t(index));
    if (weight.rows() != 1 || weight.cols() != want || weight.layout() != Layout::RowMajor ||
        !is_plain_float(weight.dtype()))
      bad("Its ", name, " ", quoted(weight.name()), " is ", name_of(weight.dtype()), " ", name_of(weight.layout()),
          " [", weight.rows(), " × ", weight.cols(), "], and must be plain floats, row-major, [1 × ", want, "].");
  }
  void number(const char *name, float value, bool positive) {
    if (!std::isfinite(value) || (positive && value <= 0) || value < 0)
      bad("Its ", name, " is ", value, ", and must be a finite number ", positive ? "above" : "of at least", " 0.");
  }
  void general();
  void linear(const Linear &o);
  void embedding(const Embedding &o);
  void rope(const Rope &o);
  void gather(const View *out, const View &input, const CommInfo &comm);

  const Plan &plan_;
  const Program &program_;
  const Op &op_;
  uint32_t index_;
  Reporter &report_;
};

// Operands are plain floats, have one kind of rows (select_rows changes it), and an output shares no column with
// another operand: no kernel works in place unless its table says so.
void OpShapes::general() {
  Operands operands = operands_of(op_);
  const ViewOperand *first = nullptr;
  for (const ViewOperand &a : operands) {
    if (!a.view)
      continue;
    if (!is_plain_float(buffer(*a.view).dtype()))
      bad("Its ", a.name, " ", show(*a.view), " is ", name_of(buffer(*a.view).dtype()),
          "; activations are f32, f16 or bf16.");
    if (!first)
      first = &a;
    else if (op_.op_type() != OpKind::SelectRows && buffer(*a.view).rows() != buffer(*first->view).rows())
      bad("Its ", first->name, " has ", name_of(buffer(*first->view).rows()), " rows and its ", a.name, " ",
          name_of(buffer(*a.view).rows()), " rows; both must be the same.");
    for (const ViewOperand &b : operands) {
      if (&b == &a || !b.view || a.access == Access::Read || b.view->buffer() != a.view->buffer())
        continue;
      uint64_t a_end = uint64_t(a.view->col()) + a.view->cols(), b_end = uint64_t(b.view->col()) + b.view->cols();
      if (a.view->col() < b_end && b.view->col() < a_end && (b.access == Access::Read || &a < &b))
        bad("Its ", a.name, " ", show(*a.view), " and its ", b.name, " ", show(*b.view),
            " share columns; an op writes nothing that it also reads under another name.");
    }
  }
}

void OpShapes::embedding(const Embedding &o) {
  const Weight &table = *program_.weights()->Get(o.table());
  rows("out", *o.out(), Rows::Tokens);
  cols("out", *o.out(), table.cols(), "as the table");
  if (table.rows() != o.vocab_count())
    bad("Its table ", quoted(table.name()), " has ", table.rows(), " rows, and it serves ", o.vocab_count(),
        " token ids.");
  if (!inside(o.vocab_begin(), o.vocab_count(), plan_.model()->vocab()))
    bad("It serves ", o.vocab_count(), " token ids from ", o.vocab_begin(), " on, and the vocabulary has ",
        plan_.model()->vocab(), ".");
  if (!std::isfinite(o.scale()))
    bad("Its scale is not a finite number.");
}

void OpShapes::linear(const Linear &o) {
  const Weight &weight = *program_.weights()->Get(o.weight());
  if (weight.rows() != o.out()->cols() || weight.cols() != o.input()->cols())
    bad("Its weight ", quoted(weight.name()), " is [", weight.rows(), " × ", weight.cols(), "], its out ",
        show(*o.out()), " has ", o.out()->cols(), " columns and its input ", show(*o.input()), " ", o.input()->cols(),
        "; a weight is [out columns × input columns].");
  vector_weight("bias", o.bias(), o.out()->cols());
}

void OpShapes::rope(const Rope &o) {
  rows("q", *o.q(), Rows::Tokens);
  heads("q", *o.q(), o.q_heads(), o.head_dim());
  heads("k", *o.k(), o.kv_heads(), o.head_dim());
  same_dtype("q", *o.q(), "k", *o.k());
  vector_weight("q_norm", o.q_norm(), o.head_dim());
  vector_weight("k_norm", o.k_norm(), o.head_dim());
  uint32_t frequencies = size_of(plan_.rope_tables()->Get(o.table())->inv_freq());
  if (o.rotary_dim() == 0 || o.rotary_dim() % 2 != 0 || o.rotary_dim() > o.head_dim() ||
      frequencies != o.rotary_dim() / 2)
    bad("It rotates ", o.rotary_dim(), " of ", o.head_dim(), " elements with ", frequencies,
        " frequencies; it needs an even number of at most ", o.head_dim(), " and half as many frequencies.");
  if (o.q_norm() >= 0 || o.k_norm() >= 0)
    number("eps", o.eps(), true);
}

void OpShapes::gather(const View *out, const View &input, const CommInfo &comm) {
  const auto &ranks = *plan_.groups()->Get(comm.group)->ranks();
  uint64_t sum = 0;
  bool fits = true;
  for (uint64_t count : each(comm.counts))
    fits &= add_fits(sum, count, sum);
  if (!fits)
    bad("Its counts do not fit in 64 bits.");
  else if (out && out->cols() != sum)
    cols("out", *out, sum, "the sum of its counts");
  if (out)
    same_dtype("out", *out, "input", input);
  for (uint32_t i = 0; i < ranks.size(); ++i)
    if (ranks.Get(i) == program_.rank() && comm.counts->Get(i) != input.cols())
      bad("Its input ", show(input), " has ", input.cols(), " columns, and its counts give this rank (member ", i,
          ") ", comm.counts->Get(i), ".");
}

void OpShapes::run() {
  general();
  switch (op_.op_type()) {
  case OpKind::NONE:
    break;
  case OpKind::Embedding:
    embedding(*op_.op_as_Embedding());
    break;
  case OpKind::RmsNorm: {
    const RmsNorm &o = *op_.op_as_RmsNorm();
    cols("out", *o.out(), o.input()->cols(), "as its input");
    vector_weight("weight", o.weight(), o.input()->cols());
    number("eps", o.eps(), true);
    number("weight_offset", o.weight_offset(), false);
    break;
  }
  case OpKind::AddRmsNorm: {
    const AddRmsNorm &o = *op_.op_as_AddRmsNorm();
    cols("out", *o.out(), o.residual()->cols(), "as its residual");
    cols("input", *o.input(), o.residual()->cols(), "as its residual");
    vector_weight("weight", o.weight(), o.residual()->cols());
    number("eps", o.eps(), true);
    number("weight_offset", o.weight_offset(), false);
    break;
  }
  case OpKind::Add:
    cols("input", *op_.op_as_Add()->input(), op_.op_as_Add()->residual()->cols(), "as its residual");
    break;
  case OpKind::Linear:
    linear(*op_.op_as_Linear());
    break;
  case OpKind::Rope:
    rope(*op_.op_as_Rope());
    break;
  case OpKind::KvAppend: {
    const KvAppend &o = *op_.op_as_KvAppend();
    rows("k", *o.k(), Rows::Tokens);
    heads("k", *o.k(), o.kv_heads(), o.head_dim());
    heads("v", *o.v(), o.kv_heads(), o.head_dim());
    same_dtype("k", *o.k(), "v", *o.v());
    break;
  }
  case OpKind::Attention: {
    const Attention &o = *op_.op_as_Attention();
    rows("q", *o.q(), Rows::Tokens);
    heads("q", *o.q(), o.q_heads(), o.head_dim());
    heads("out", *o.out(), o.q_heads(), o.head_dim());
    number("scale", o.scale(), true);
    number("softcap", o.softcap(), false);
    break;
  }
  case OpKind::GatedAct: {
    const GatedAct &o = *op_.op_as_GatedAct();
    cols("gate", *o.gate(), o.out()->cols(), "as its out");
    cols("up", *o.up(), o.out()->cols(), "as its out");
    same_dtype("gate", *o.gate(), "up", *o.up());
    break;
  }
  case OpKind::SelectRows: {
    const SelectRows &o = *op_.op_as_SelectRows();
    rows("input", *o.input(), Rows::Tokens);
    rows("out", *o.out(), Rows::Logits);
    cols("out", *o.out(), o.input()->cols(), "as its input");
    same_dtype("out", *o.out(), "input", *o.input());
    break;
  }
  case OpKind::AllGather:
    gather(op_.op_as_AllGather()->out(), *op_.op_as_AllGather()->input(), comm_of(op_));
    break;
  case OpKind::Gather:
    gather(op_.op_as_Gather()->out(), *op_.op_as_Gather()->input(), comm_of(op_));
    break;
  case OpKind::AllReduce: // counts and types across ranks: verify_communication.cpp
  case OpKind::Send:
  case OpKind::Recv:
    break;
  }
}

} // namespace

void verify_shapes(const Plan &plan, Reporter &report) {
  for (const Program *program : *plan.programs())
    for (uint32_t i = 0; i < size_of(program->ops()); ++i)
      OpShapes(plan, *program, i, report).run();
}

void verify_limits(const Plan &plan, Reporter &report) {
  constexpr const char *kLimits = "limits";
  const Limits &limits = *plan.limits();
  struct {
    const char *name;
    uint32_t value;
  } const positive[] = {{"max_model_len", limits.max_model_len()},
                        {"max_num_seqs", limits.max_num_seqs()},
                        {"max_batched_tokens", limits.max_batched_tokens()},
                        {"max_logits_rows", limits.max_logits_rows()},
                        {"page_size", limits.page_size()},
                        {"num_pages", limits.num_pages()}};
  for (const auto &limit : positive)
    if (limit.value == 0 || limit.value > INT32_MAX)
      report.add(kLimits, -1, cat(limit.name, " is ", limit.value, ", and must lie between 1 and ", INT32_MAX, "."));
  uint64_t tokens = uint64_t(limits.num_pages()) * limits.page_size();
  if (limits.max_model_len() > tokens)
    report.add(kLimits, -1,
               cat("A sequence may have ", limits.max_model_len(), " tokens (max_model_len), and the KV cache holds ",
                   limits.num_pages(), " pages × ", limits.page_size(), " = ", tokens,
                   "; compile with --max-model-len ", tokens, " or with more memory."));
  if (limits.max_logits_rows() > limits.max_batched_tokens())
    report.add(kLimits, -1,
               cat("A step may want ", limits.max_logits_rows(), " logits rows, and has at most ",
                   limits.max_batched_tokens(), " tokens; every logits row is a token's."));
  if (!(limits.memory_utilization() > 0 && limits.memory_utilization() <= 1))
    report.add(kLimits, -1,
               cat("memory_utilization is ", limits.memory_utilization(), ", and must lie above 0 and at most at 1."));
  const Model &model = *plan.model();
  if (model.q_heads() % model.kv_heads() != 0)
    report.add(kLimits, -1,
               cat("The model has ", model.q_heads(), " query heads and ", model.kv_heads(),
                   " KV heads; each KV head serves the same number of query heads."));
  if (!is_plain_float(model.activation_dtype()) || !is_plain_float(model.kv_dtype()))
    report.add(kLimits, -1,
               cat("Activations are ", name_of(model.activation_dtype()), " and the KV cache is ",
                   name_of(model.kv_dtype()), "; both must be f32, f16 or bf16."));
}

} // namespace llmrt::plan
