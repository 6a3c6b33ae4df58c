#include "runtime/exec/neighbours.h"

#include "runtime/plan/access.h"

namespace llmrt::exec {

namespace {

class Finder {
public:
  Finder(const plan::LoadedPlan &plan, uint32_t rank, uint32_t op)
      : plan_(plan), ops_(*plan.program(rank).ops()), rank_(rank), op_(op), linear_(*ops_.Get(op)->op_as_Linear()) {}

  Neighbours find() {
    Neighbours n;
    n.result = linear_.out();
    find_norm(n);
    if (const plan::Op *next = at(op_ + 1)) {
      if (const plan::Add *add = next->op_as_Add())
        find_add(n, *add->residual(), *add->input());
      else if (const plan::AddRmsNorm *norm = next->op_as_AddRmsNorm())
        find_add(n, *norm->residual(), *norm->input());
      else if (const plan::GatedAct *act = next->op_as_GatedAct())
        find_gate(n, *act);
      else if (const plan::Rope *rope = next->op_as_Rope())
        find_rope(n, *rope);
    }
    n.input_apart = apart(*n.result, *linear_.input());
    n.norm_apart = n.norm && apart(*n.result, *n.norm_rows);
    return n;
  }

private:
  const plan::Op *at(uint32_t index) const { return index < ops_.size() ? ops_.Get(index) : nullptr; }
  const plan::Buffer &buffer(const plan::View &view) const { return plan_.buffer(rank_, view); }
  static bool same(const plan::View &a, const plan::View &b) {
    return a.buffer() == b.buffer() && a.col() == b.col() && a.cols() == b.cols();
  }
  // Columns [from, from + cols) of the product.
  bool columns(const plan::View &v, uint64_t from, uint64_t cols) const {
    const plan::View &out = *linear_.out();
    return v.buffer() == out.buffer() && v.col() == out.col() + from && v.cols() == cols;
  }
  bool alike(const plan::View &a, const plan::View &b) const {
    return buffer(a).dtype() == buffer(b).dtype() && buffer(a).rows() == buffer(b).rows() && a.cols() == b.cols();
  }
  bool apart(const plan::View &a, const plan::View &b) const {
    const plan::Buffer &x = buffer(a), &y = buffer(b);
    return x.offset() + x.bytes() <= y.offset() || y.offset() + y.bytes() <= x.offset();
  }
  void find_norm(Neighbours &n) const {
    const plan::Op *before = op_ > 0 ? at(op_ - 1) : nullptr;
    const plan::View *rows = nullptr, *out = nullptr;
    if (const plan::RmsNorm *norm = before ? before->op_as_RmsNorm() : nullptr)
      rows = norm->input(), out = norm->out();
    else if (const plan::AddRmsNorm *sum = before ? before->op_as_AddRmsNorm() : nullptr)
      rows = sum->residual(), out = sum->out();
    if (!rows || !same(*out, *linear_.input()) || read_after(plan_, rank_, *out, op_) || !alike(*rows, *out) ||
        buffer(*rows).last_op() < op_ || !apart(*rows, *linear_.out()))
      return;
    n.norm = op_ - 1;
    n.norm_rows = rows;
  }

  void find_add(Neighbours &n, const plan::View &residual, const plan::View &input) const {
    const plan::View &out = *linear_.out();
    if (!same(input, out) || read_after(plan_, rank_, out, op_ + 1) || !alike(residual, out) || !apart(residual, out))
      return;
    n.add = op_ + 1;
    n.result = &residual;
  }

  void find_gate(Neighbours &n, const plan::GatedAct &act) const {
    const plan::View &out = *linear_.out();
    const uint64_t half = out.cols() / 2;
    if (out.cols() % 2 != 0 || !columns(*act.gate(), 0, half) || !columns(*act.up(), half, half) || read_after(plan_, rank_, out, op_ + 1) ||
        !alike(*act.out(), *act.gate()))
      return;
    n.gate = op_ + 1;
    n.result = act.out();
  }

  // The product's result stays in its place, so it does not matter who else reads it.
  void find_rope(Neighbours &n, const plan::Rope &rope) const {
    const plan::KvAppend *append = at(op_ + 2) ? at(op_ + 2)->op_as_KvAppend() : nullptr;
    const uint64_t q = uint64_t{rope.q_heads()} * rope.head_dim(), kv = uint64_t{rope.kv_heads()} * rope.head_dim();
    if (append && same(*append->k(), *rope.k()) && columns(*rope.q(), 0, q) && columns(*rope.k(), q, kv) &&
        columns(*append->v(), q + kv, kv) && linear_.out()->cols() == q + 2 * kv)
      n.rope = op_ + 1;
  }

  const plan::LoadedPlan &plan_;
  const flatbuffers::Vector<flatbuffers::Offset<plan::Op>> &ops_;
  uint32_t rank_, op_;
  const plan::Linear &linear_;
};

} // namespace

bool read_after(const plan::LoadedPlan &plan, uint32_t rank, const plan::View &view, uint32_t op) {
  const plan::Program &program = plan.program(rank);
  for (uint32_t i = op + 1; i < plan::size_of(program.ops()); ++i) {
    bool overwritten = false;
    for (const plan::ViewOperand &use : plan::operands_of(*program.ops()->Get(i))) {
      if (!use.view || use.view->buffer() != view.buffer())
        continue;
      const bool whole = use.view->col() <= view.col() && use.view->col() + use.view->cols() >= view.col() + view.cols();
      if (use.access != plan::Access::Write || !whole)
        return true;
      overwritten = true; // from here on it is another value
    }
    if (overwritten)
      return false;
  }
  return program.logits() && program.logits()->buffer() == view.buffer();
}

Neighbours neighbours_of(const plan::LoadedPlan &plan, uint32_t rank, uint32_t op) { return Finder(plan, rank, op).find(); }

} // namespace llmrt::exec
