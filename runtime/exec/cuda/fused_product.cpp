#include "runtime/exec/cuda/fused_product.h"

#include <initializer_list>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

k::Linear FusedProduct::linear(Choice choice, int64_t rows) const {
  k::Linear call = parts_.linear;
  call.M = rows;
  if (choice.norm)
    call.input = parts_.norm_rows, call.ld_input = parts_.ld_norm_rows;
  if (choice.next && !parts_.rope) // rotations stay in their place
    call.out = parts_.result, call.ld_out = parts_.ld_result;
  return call;
}

k::LinearFusion FusedProduct::fusion(Choice choice) const {
  k::LinearFusion f;
  if (choice.norm)
    f.norm = parts_.norm, f.eps = parts_.eps, f.norm_offset = parts_.norm_offset;
  if (choice.next) {
    f.add = parts_.add;
    f.gated = parts_.gate.has_value();
    f.kind = parts_.gate.value_or(k::Activation::silu);
    if (parts_.rope)
      f.rope = &*parts_.rope, f.append = &parts_.append;
  }
  return f;
}

// As much as goes and the plan has chosen. The same for the same number of rows, for the neighbours ask too.
FusedProduct::Choice FusedProduct::choose(int64_t rows) const {
  const Choice wide = {.norm = false, .next = true, .wide = true};
  if (parts_.gate && parts_.input_apart && wide_product(linear(wide, rows), parts_.rows, true))
    return wide;
  const bool pairs = parts_.gate || parts_.rope, next = parts_.add || pairs;
  const Choice both = {.norm = true, .next = true}, only_next = {.next = true}, only_norm = {.norm = true};
  if (rows > parts_.rows.fused) {
    constexpr int64_t kPairedFrom = 3; // plan.fbs: paired_rows
    const bool paired = pairs && rows >= kPairedFrom && rows <= parts_.rows.paired && parts_.input_apart;
    return paired && k::fused_linear_applies(linear(only_next, rows), fusion(only_next)) ? only_next : Choice{};
  }
  const std::initializer_list<Choice> most_first = {both, only_next, only_norm}, norm_done = {only_next, both};
  for (Choice choice : parts_.norm_is_free ? norm_done : most_first) {
    if ((choice.norm && !parts_.norm) || (choice.next && !next))
      continue;
    if (choice.norm ? !parts_.norm_apart : !parts_.input_apart)
      continue;
    if (k::fused_linear_applies(linear(choice, rows), fusion(choice)))
      return choice;
  }
  return {};
}

void FusedProduct::run(int64_t rows, const OpContext &c) const {
  if (half_.takes(c.shape)) {
    if (runs_half_)
      half_.chain->run(half_.half, c);
    return;
  }
  const Choice choice = choose(rows);
  const k::Linear call = linear(choice, rows);
  if (!choice.norm && !choice.next)
    return c.products.linear(call, parts_.rows, parts_.bias_like_out, c.stream);
  if (choice.wide)
    return c.products.gated(call, *parts_.gate, c.stream);
  k::LinearFusion f = fusion(choice);
  k::Rope rope{};
  k::KvAppend append = parts_.append;
  if (f.rope) {
    rope = *f.rope;
    rope.positions = c.inputs.positions(), append.slot_mapping = c.inputs.slot_mapping();
    rope.T = append.T = rows;
    f.rope = &rope, f.append = &append;
  }
  k::fused_linear(call, f, c.stream);
}

} // namespace llmrt::exec::cuda
