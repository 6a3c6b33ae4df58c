// RUN: %opt %s -verify-diagnostics -split-input-file

// expected-error@+1 {{a buffer needs at least one column, not 0}}
func.func private @columns(!exec.buffer<tokens, 0, f32>)

// -----

// expected-error@+1 {{elements must be f32, f16 or bf16, not 'i32'}}
func.func private @element(!exec.weight<2, 2, i32, row_major>)

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  // expected-error@+1 {{has parts of 8 elements in all for the 16 of}}
  %w = exec.weight "w" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4]>, box = <row = 0, rows = 2, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4, f32, row_major>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  // expected-error@+1 {{part of 'w', 4 x 4 at (1, 0), does not fit}}
  %w = exec.weight "w" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4]>, box = <row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 1, dst_col = 0>]} : !exec.weight<4, 4, f32, row_major>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %b = exec.buffer "b" : !exec.buffer<tokens, 8, f32>
  // expected-error@+1 {{takes columns [4, +8) of 8}}
  %c = exec.columns %b {begin = 4 : i64} : !exec.buffer<tokens, 8, f32> -> !exec.buffer<tokens, 8, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %b = exec.buffer "b" : !exec.buffer<tokens, 8, f32>
  %c = exec.buffer "c" : !exec.buffer<tokens, 6, f32>
  // expected-error@+1 {{columns of input and residual: 8 and 6 disagree}}
  exec.add %b into %c : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 6, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %b = exec.buffer "b" : !exec.buffer<tokens, 8, f32>
  %c = exec.buffer "c" : !exec.buffer<logits, 8, f32>
  // expected-error@+1 {{mixes rows of logits and tokens}}
  exec.add %b into %c : !exec.buffer<tokens, 8, f32>, !exec.buffer<logits, 8, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %b = exec.buffer "b" : !exec.buffer<tokens, 8, f32>
  // expected-error@+1 {{takes rows of tokens to rows of logits}}
  exec.select_rows %b into %b : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %q = exec.buffer "q" : !exec.buffer<tokens, 16, f32>
  // expected-error@+1 {{kv_head_of_q names KV head 1 of 1}}
  exec.attention %q into %q {kv_layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, kv_head_of_q = array<i64: 0, 1>, scale = 0.5 : f32} : !exec.buffer<tokens, 16, f32>, !exec.buffer<tokens, 16, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %q = exec.buffer "q" : !exec.buffer<tokens, 16, f32>
  // expected-error@+1 {{key heads x head_dim and columns: 8 and 16 disagree}}
  exec.rope %q, %q {q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : !exec.buffer<tokens, 16, f32>, !exec.buffer<tokens, 16, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %b = exec.buffer "b" : !exec.buffer<logits, 8, f32>
  // expected-error@+1 {{gives 8 columns, which none of its counts is}}
  exec.gather %b {counts = array<i64: 4, 12>, root = 0 : i64, group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<logits, 8, f32>
}

// -----

exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %b = exec.buffer "b" : !exec.buffer<logits, 8, f32>
  // expected-error@+1 {{must stand last}}
  exec.output %b : !exec.buffer<logits, 8, f32>
  %c = exec.buffer "c" : !exec.buffer<logits, 8, f32>
}

// -----

// expected-error@+1 {{'exec.pages' is no attribute of the exec dialect}}
module attributes {exec.pages = 3 : i64} {}

// -----

// expected-error@+1 {{a weight needs at least one row and one column, not 0 x 4}}
func.func private @rows(!exec.weight<0, 4, f32, row_major>)

// -----

// expected-error@+1 {{a quantised weight must be packed16 and have whole blocks of 32 columns, but has 48}}
func.func private @blocks(!exec.weight<16, 48, !exec.quant<q8_0>, packed16>)

// -----

// expected-error@+1 {{a quantised weight must be packed16 and have whole blocks of 32 columns, but has 64}}
func.func private @layout(!exec.weight<16, 64, !exec.quant<q4_1>, row_major>)

// -----

// expected-error@+1 {{elements must be f32, f16 or bf16, not '!exec.quant<q8_0>'}}
func.func private @activations(!exec.buffer<tokens, 64, !exec.quant<q8_0>>)

// -----

// expected-error@+3 {{expected ::llmc::exec::QuantFormat to be one of: q8_0, q4_1}}
// expected-error@+2 {{failed to parse Exec_QuantType parameter 'format'}}
// expected-error@+1 {{failed to parse Exec_WeightType parameter 'element'}}
func.func private @format(!exec.weight<16, 64, !exec.quant<q4_0>, packed16>)

// -----

// A program names devices and ranks that there are.
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
// expected-error@+1 {{names device 1 of 1}}
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 1 : i64} {
}
}

// -----

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
// expected-error@+1 {{names device -1 of 1}}
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = -1 : i64} {
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %x = exec.buffer "x" : !exec.buffer<tokens, 4, f32>
  // expected-error@+1 {{names rank 2 of 2}}
  exec.all_reduce %x {group = array<i64: 0, 2>, seq = 0 : i64} : !exec.buffer<tokens, 4, f32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %x = exec.buffer "x" : !exec.buffer<tokens, 4, f32>
  // expected-error@+1 {{names rank -1 of 2}}
  exec.send %x {peer = -1 : i64, seq = 0 : i64} : !exec.buffer<tokens, 4, f32>
}
}
