// RUN: %opt %s --exec-plan-memory | FileCheck %s

// Offsets follow from lifetimes: "c" takes the bytes that "a" is done with, "b" lives beside both. 4 tokens × 64 f32
// columns are 1024 bytes; a message under way is held twice.

module attributes {dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>,
  dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
// CHECK: exec.program @rank0 attributes {arena_bytes = 2048 : i64, comm_bytes = 1024 : i64
// CHECK-SAME: weight_bytes = 17408 : i64
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  // 20 rows are padded to two panels of 16: 32 × 100 × 4 = 12800 bytes; the next weight starts 256-aligned.
  // CHECK: exec.weight "first" {offset = 0 : i64
  // CHECK: exec.weight "second" {offset = 12800 : i64
  %w = exec.weight "first" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [20, 100]>, box = <row = 0, rows = 20, col = 0, cols = 100, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<20, 100, f32, packed16>
  %v = exec.weight "second" {parts = [#exec.part<name = "v", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [11, 101]>, box = <row = 0, rows = 11, col = 0, cols = 101, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<11, 101, f32, row_major>
  // CHECK: exec.buffer "a" {first_op = 0 : i64, last_op = 1 : i64, offset = 0 : i64}
  // CHECK: exec.buffer "b" {first_op = 1 : i64, last_op = 3 : i64, offset = 1024 : i64}
  // CHECK: exec.buffer "c" {first_op = 2 : i64, last_op = 4 : i64, offset = 0 : i64}
  %a = exec.buffer "a" : !exec.buffer<tokens, 64, f32>
  exec.recv %a {peer = 1 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
  %b = exec.buffer "b" : !exec.buffer<tokens, 64, f32>
  %half = exec.columns %b {begin = 32 : i64} : !exec.buffer<tokens, 64, f32> -> !exec.buffer<tokens, 32, f32>
  exec.gated_act %a, %a into %b {act = #llm.act<silu>} : !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>
  %c = exec.buffer "c" : !exec.buffer<tokens, 32, f32>
  exec.recv %c {peer = 1 : i64, seq = 1 : i64} : !exec.buffer<tokens, 32, f32>
  exec.add %half into %c : !exec.buffer<tokens, 32, f32>, !exec.buffer<tokens, 32, f32>
  exec.send %c {peer = 1 : i64, seq = 0 : i64} : !exec.buffer<tokens, 32, f32>
}
}
