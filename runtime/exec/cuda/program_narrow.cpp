// Which ops of a program are halves of narrow layers, and which of those follow each other.
#include "runtime/exec/cuda/program_builder.h"

namespace llmrt::exec::cuda {

namespace {

bool same(const plan::View &a, const plan::View &b) { return a.buffer() == b.buffer() && a.col() == b.col() && a.cols() == b.cols(); }

} // namespace

// The half whose first product is the op at `op`; none where its ops are others, or its results are wanted elsewhere.
std::optional<ProgramBuilder::HalfLayer> ProgramBuilder::halfLayerAt(uint32_t op) {
  const Neighbours first = product(op).neighbours;
  if (!first.norm || !(first.gate || first.rope))
    return std::nullopt;
  const uint32_t last = first.gate ? op + 2 : op + 4;
  const plan::Op *end = opAt(last);
  if (!end || !end->op_as_Linear() || !product(last).neighbours.add)
    return std::nullopt;
  const plan::Linear &a = *program_.ops()->Get(op)->op_as_Linear(), &b = *end->op_as_Linear();
  const ProductParts &one = product(op).call->parts(), &two = product(last).call->parts();
  if (!one.norm || !same(*first.norm_rows, *product(last).neighbours.result) || one.linear.out_type != k::DType::bf16 ||
      one.linear.act != k::DType::bf16 || one.linear.weight_type != k::DType::bf16 || two.linear.act != k::DType::bf16 ||
      two.linear.weight_type != k::DType::bf16 || two.linear.out_type != k::DType::bf16)
    return std::nullopt;
  HalfLayer half;
  half.first = op, half.last = last;
  half.rows = std::min(one.rows.fused, two.rows.fused);
  const int64_t H = one.linear.K;
  const k::NarrowResidual in = {one.norm_rows, one.ld_norm_rows, nullptr, 0, const_cast<void *>(one.norm_rows), one.ld_norm_rows};
  if (first.gate) {
    if (!same(*first.result, *b.input()) || read_after(plan_, rank_, *first.result, last))
      return std::nullopt;
    k::NarrowFeedForward call = {};
    call.in = in, call.norm = one.norm, call.eps = one.eps, call.norm_offset = one.norm_offset;
    call.gate_up = one.linear.weight, call.gate_up_bias = one.linear.bias, call.kind = *one.gate;
    call.down = two.linear.weight, call.down_bias = two.linear.bias, call.H = H, call.F = two.linear.K;
    if (!k::narrow_feed_forward_applies(call))
      return std::nullopt;
    half.call = call;
    return half;
  }
  const plan::Attention *attention = opAt(op + 3)->op_as_Attention();
  const plan::Rope &rope = *opAt(*first.rope)->op_as_Rope();
  const plan::KvAppend &append = *opAt(*first.rope + 1)->op_as_KvAppend();
  if (!attention || !same(*attention->q(), *rope.q()) || !same(*attention->out(), *b.input()) || attention->layer() != append.layer() ||
      read_after(plan_, rank_, *attention->out(), last) || read_after(plan_, rank_, *a.out(), op + 3))
    return std::nullopt;
  const uint32_t heads = attention->q_heads(), kv_heads = attention->kv_heads();
  if (heads % kv_heads != 0 || plan::size_of(attention->kv_head_of_q()) != heads)
    return std::nullopt;
  for (uint32_t i = 0; i < heads; ++i)
    if (attention->kv_head_of_q()->Get(i) != i / (heads / kv_heads))
      return std::nullopt;
  k::NarrowAttention call = {};
  call.in = in, call.norm = one.norm, call.eps = one.eps, call.norm_offset = one.norm_offset;
  call.qkv = one.linear.weight, call.qkv_bias = one.linear.bias, call.rope = *one.rope, call.append = one.append;
  call.scale = attention->scale(), call.softcap = attention->softcap(), call.window = static_cast<int>(attention->window());
  call.output = two.linear.weight, call.output_bias = two.linear.bias, call.H = H;
  if (!k::narrow_attention_applies(call))
    return std::nullopt;
  half.call = call;
  return half;
}

// Halves that follow each other, each one's norm the sum of the one before, are a chain.
void ProgramBuilder::findNarrowLayers() {
  std::vector<HalfLayer> chain;
  const auto close = [&]() {
    if (chain.size() > 1 && NarrowChain::scratch_bytes(residualOf(chain[0]).cols) <= attention_scratch_bytes_) {
      const Operand residual = residualOf(chain[0]);
      std::vector<NarrowHalf> halves;
      int64_t rows = k::kNarrowMaxRows;
      for (const HalfLayer &half : chain)
        halves.push_back(half.call), rows = std::min(rows, half.rows);
      const auto made = std::make_shared<const NarrowChain>(std::move(halves), residual.data, residual.ld, residual.cols, rows,
                                                            attention_workspace_ + k::kAttentionKept);
      for (size_t i = 0; i < chain.size(); ++i) {
        const NarrowPlace place = {made, i};
        products_.at(chain[i].first).call->join(place, true), products_.at(chain[i].last).call->join(place, false);
        for (uint32_t op = chain[i].first; op <= chain[i].last; ++op)
          narrow_[op] = place;
      }
    }
    chain.clear();
  };
  for (uint32_t op = 0; op < plan::size_of(program_.ops()); ++op) {
    if (!program_.ops()->Get(op)->op_as_Linear())
      continue;
    const std::optional<HalfLayer> half = halfLayerAt(op);
    if (!half)
      continue;
    const bool follows = !chain.empty() && product(chain.back().last).neighbours.add == product(op).neighbours.norm &&
                         same(*product(op).neighbours.norm_rows, *product(chain[0].first).neighbours.norm_rows);
    if (!follows)
      close();
    chain.push_back(*half);
    op = half->last;
  }
  close();
}

Operand ProgramBuilder::residualOf(const HalfLayer &half) const { return operand(products_.at(half.first).neighbours.norm_rows); }

} // namespace llmrt::exec::cuda
