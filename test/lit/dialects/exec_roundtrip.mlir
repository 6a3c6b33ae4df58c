// RUN: %opt %s | %opt | FileCheck %s

// Every op, type and attribute of the exec dialect parses back what it prints.

// CHECK: module attributes {exec.num_pages = 7 : i64}
module attributes {exec.num_pages = 7 : i64} {
// CHECK: exec.program @rank0 attributes {arena_bytes = 512 : i64
// CHECK-SAME: kv = #exec.kv<layers = [0, 1], heads = [2], head_dim = 8, element = bf16, layer_page_bytes = 512, duplicated = 1>
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, arena_bytes = 512 : i64,
    kv = #exec.kv<layers = [0, 1], heads = [2], head_dim = 8, element = bf16, layer_page_bytes = 512, duplicated = 1>} {
  // CHECK: exec.weight "t" {offset = 0 : i64, parts = [#exec.part<name = "t", tensor = <file = 0, offset = 64, bytes = 4096, dtype = "q8_0", shape = [64, 32]>, box = <row = 0, rows = 64, col = 0, cols = 32, replica = true>, dst_row = 0, dst_col = 0>]} : <64, 32, bf16, packed16>
  %t = exec.weight "t" {offset = 0 : i64, parts = [#exec.part<name = "t", tensor = <file = 0, offset = 64, bytes = 4096, dtype = "q8_0", shape = [64, 32]>, box = <row = 0, rows = 64, col = 0, cols = 32, replica = true>, dst_row = 0, dst_col = 0>]} : !exec.weight<64, 32, bf16, packed16>
  %n = exec.weight "n" {parts = [#exec.part<name = "n", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>, box = <row = 0, rows = 1, col = 0, cols = 32, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<1, 32, f32, row_major>
  %hn = exec.weight "hn" {parts = [#exec.part<name = "hn", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>, box = <row = 0, rows = 1, col = 0, cols = 8, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<1, 8, f32, row_major>
  %b = exec.weight "b" {parts = [#exec.part<name = "b", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64]>, box = <row = 0, rows = 1, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<1, 64, f32, row_major>
  // CHECK: exec.buffer "x" {first_op = 0 : i64, last_op = 9 : i64, offset = 256 : i64} : <tokens, 32, f32>
  %x = exec.buffer "x" {offset = 256 : i64, first_op = 0 : i64, last_op = 9 : i64} : !exec.buffer<tokens, 32, f32>
  %y = exec.buffer "y" : !exec.buffer<tokens, 32, f32>
  %z = exec.buffer "z" : !exec.buffer<tokens, 64, f16>
  // CHECK: exec.embedding %{{.*}} into %{{.*}} {kernel = "cpu.embedding.packed16", scale = 2.000000e+00 : f32, stream = 1 : i64, vocab_begin = 64 : i64}
  exec.embedding %t into %x {vocab_begin = 64 : i64, scale = 2.0 : f32, kernel = "cpu.embedding.packed16", stream = 1 : i64} : !exec.weight<64, 32, bf16, packed16>, !exec.buffer<tokens, 32, f32>
  // CHECK: exec.rms_norm
  exec.rms_norm %x, %n into %y {eps = 1.0e-5 : f32} : !exec.buffer<tokens, 32, f32>, !exec.weight<1, 32, f32, row_major>, !exec.buffer<tokens, 32, f32>
  // CHECK: exec.add_rms_norm
  exec.add_rms_norm %x, %y, %n into %y {eps = 1.0e-5 : f32, weight_offset = 1.0 : f32} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>, !exec.weight<1, 32, f32, row_major>, !exec.buffer<tokens, 32, f32>
  // CHECK: exec.add %{{.*}} into %{{.*}} {layer = 3 : i64}
  exec.add %y into %x {layer = 3 : i64} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>
  // CHECK: exec.linear %{{.*}}, %{{.*}} into
  exec.linear %x, %t into %z : !exec.buffer<tokens, 32, f32>, !exec.weight<64, 32, bf16, packed16>, !exec.buffer<tokens, 64, f16>
  // CHECK: exec.linear %{{.*}}, %{{.*}} bias(%{{.*}} : !exec.weight<1, 64, f32, row_major>) into
  exec.linear %x, %t bias(%b : !exec.weight<1, 64, f32, row_major>) into %z : !exec.buffer<tokens, 32, f32>, !exec.weight<64, 32, bf16, packed16>, !exec.buffer<tokens, 64, f16>
  // CHECK: exec.columns %{{.*}} {begin = 32 : i64} : <tokens, 64, f16> -> <tokens, 8, f16>
  %q = exec.columns %z {begin = 0 : i64} : !exec.buffer<tokens, 64, f16> -> !exec.buffer<tokens, 32, f16>
  %k = exec.columns %z {begin = 32 : i64} : !exec.buffer<tokens, 64, f16> -> !exec.buffer<tokens, 8, f16>
  // CHECK: exec.rope %{{.*}}, %{{.*}} norms(%{{.*}}, %{{.*}} : !exec.weight<1, 8, f32, row_major>, !exec.weight<1, 8, f32, row_major>)
  // CHECK-SAME: style = #llm.rope_style<interleaved>
  exec.rope %q, %k norms(%hn, %hn : !exec.weight<1, 8, f32, row_major>, !exec.weight<1, 8, f32, row_major>) {q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<interleaved>, inv_freq = array<f32: 1.0, 0.5>} : !exec.buffer<tokens, 32, f16>, !exec.buffer<tokens, 8, f16>
  exec.rope %q, %k {q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : !exec.buffer<tokens, 32, f16>, !exec.buffer<tokens, 8, f16>
  // CHECK: exec.kv_append
  exec.kv_append %k, %k {kv_layer = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64} : !exec.buffer<tokens, 8, f16>, !exec.buffer<tokens, 8, f16>
  // CHECK: exec.attention %{{.*}} into %{{.*}} {head_dim = 8 : i64, kv_head_of_q = array<i64: 0, 0, 0, 0>
  exec.attention %q into %x {kv_layer = 1 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, kv_head_of_q = array<i64: 0, 0, 0, 0>, scale = 0.5 : f32, window = 16 : i64, softcap = 50.0 : f32} : !exec.buffer<tokens, 32, f16>, !exec.buffer<tokens, 32, f32>
  // CHECK: exec.gated_act %{{.*}}, %{{.*}} into %{{.*}} {act = #llm.act<gelu_tanh>}
  exec.gated_act %x, %y into %y {act = #llm.act<gelu_tanh>} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>
  // CHECK: exec.all_reduce %{{.*}} {algorithm = #exec.algorithm<ordered>, comm = #exec.comm<host>, group = array<i64: 0, 1>, seq = 0 : i64}
  exec.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64, comm = #exec.comm<host>, algorithm = #exec.algorithm<ordered>} : !exec.buffer<tokens, 32, f32>
  %w = exec.buffer "w" : !exec.buffer<tokens, 64, f32>
  // CHECK: exec.all_gather
  exec.all_gather %x into %w {counts = array<i64: 32, 32>, group = array<i64: 0, 1>, seq = 1 : i64, comm = #exec.comm<nccl>, algorithm = #exec.algorithm<ring>} : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 64, f32>
  // CHECK: exec.send
  exec.send %x {peer = 3 : i64, seq = 0 : i64, comm = #exec.comm<peer>} : !exec.buffer<tokens, 32, f32>
  // CHECK: exec.recv
  exec.recv %x {peer = 3 : i64, seq = 0 : i64} : !exec.buffer<tokens, 32, f32>
  %s = exec.buffer "s" : !exec.buffer<logits, 32, f32>
  // CHECK: exec.select_rows
  exec.select_rows %x into %s : !exec.buffer<tokens, 32, f32>, !exec.buffer<logits, 32, f32>
  %l = exec.buffer "l" : !exec.buffer<logits, 48, f32>
  // CHECK: exec.gather %{{.*}} into
  exec.gather %s into %l {counts = array<i64: 32, 16>, root = 0 : i64, group = array<i64: 0, 1>, seq = 2 : i64} : !exec.buffer<logits, 32, f32>, !exec.buffer<logits, 48, f32>
  // CHECK: exec.gather %{{.*}} {counts
  exec.gather %s {counts = array<i64: 32, 16>, root = 1 : i64, group = array<i64: 0, 1>, seq = 3 : i64} : !exec.buffer<logits, 32, f32>
  // CHECK: exec.output
  exec.output %l : !exec.buffer<logits, 48, f32>
}
// Weights that stay in the blocks of their file, as element types of packed weights.
// CHECK: exec.program @quantised
exec.program @quantised attributes {rank = 1 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  // CHECK: exec.weight "q8" {{.*}} : <16, 64, !exec.quant<q8_0>, packed16>
  %a = exec.weight "q8" {parts = [#exec.part<name = "q8", tensor = <file = 0, offset = 0, bytes = 1088, dtype = "q8_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 64, !exec.quant<q8_0>, packed16>
  // CHECK: exec.weight "q4" {{.*}} : <16, 32, !exec.quant<q4_1>, packed16>
  %b = exec.weight "q4" {parts = [#exec.part<name = "q4", tensor = <file = 0, offset = 0, bytes = 320, dtype = "q4_1", shape = [16, 32]>, box = <row = 0, rows = 16, col = 0, cols = 32, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 32, !exec.quant<q4_1>, packed16>
}
}
