// RUN: %opt %s --exec-plan-memory | FileCheck %s

// Where steps of some rows run a product and the gate behind it as one launch, that reads %x while it writes %h: the two have
// places of their own. Else %h takes the bytes that %x is done with.

module attributes {dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>,
  dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [
    #dist.device<id = "gpu0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>,
    #dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
// CHECK-LABEL: exec.program @joined
exec.program @joined attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %w = exec.weight "w" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [128, 64]>, box = <row = 0, rows = 128, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<128, 64, f32, row_major>
  // CHECK: exec.buffer "x" {first_op = 0 : i64, last_op = 2 : i64, offset = [[X:[0-9]+]] : i64}
  // CHECK-NOT: exec.buffer "h" {{.*}}offset = [[X]] : i64
  // CHECK: exec.buffer "h" {first_op = 2 : i64
  %x = exec.buffer "x" : !exec.buffer<tokens, 64, f32>
  exec.recv %x {peer = 1 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
  %y = exec.buffer "y" : !exec.buffer<tokens, 128, f32>
  exec.linear %x, %w into %y {wide_rows = 64 : i64} : !exec.buffer<tokens, 64, f32>, !exec.weight<128, 64, f32, row_major>, !exec.buffer<tokens, 128, f32>
  %g = exec.columns %y {begin = 0 : i64} : !exec.buffer<tokens, 128, f32> -> !exec.buffer<tokens, 64, f32>
  %u = exec.columns %y {begin = 64 : i64} : !exec.buffer<tokens, 128, f32> -> !exec.buffer<tokens, 64, f32>
  %h = exec.buffer "h" : !exec.buffer<tokens, 64, f32>
  exec.gated_act %g, %u into %h {act = #llm.act<silu>} : !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>
  exec.send %h {peer = 1 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
}
// CHECK-LABEL: exec.program @apart
exec.program @apart attributes {rank = 1 : i64, stage = 1 : i64, tp_index = 0 : i64, device = 1 : i64} {
  %w = exec.weight "w" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [128, 64]>, box = <row = 0, rows = 128, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<128, 64, f32, packed16>
  // CHECK: exec.buffer "x" {first_op = 0 : i64, last_op = 1 : i64, offset = [[X:[0-9]+]] : i64}
  // CHECK: exec.buffer "h" {first_op = 2 : i64, last_op = 3 : i64, offset = [[X]] : i64}
  %x = exec.buffer "x" : !exec.buffer<tokens, 64, f32>
  exec.recv %x {peer = 0 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
  %y = exec.buffer "y" : !exec.buffer<tokens, 128, f32>
  exec.linear %x, %w into %y : !exec.buffer<tokens, 64, f32>, !exec.weight<128, 64, f32, packed16>, !exec.buffer<tokens, 128, f32>
  %g = exec.columns %y {begin = 0 : i64} : !exec.buffer<tokens, 128, f32> -> !exec.buffer<tokens, 64, f32>
  %u = exec.columns %y {begin = 64 : i64} : !exec.buffer<tokens, 128, f32> -> !exec.buffer<tokens, 64, f32>
  %h = exec.buffer "h" : !exec.buffer<tokens, 64, f32>
  exec.gated_act %g, %u into %h {act = #llm.act<silu>} : !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>
  exec.send %h {peer = 0 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
}
}
