// RUN: %opt %s --exec-plan-kv-pages --split-input-file -verify-diagnostics | FileCheck %s
// RUN: %opt %s --exec-plan-kv-pages="shorten-model-len=true" --split-input-file 2>&1 | FileCheck %s --check-prefix=SHORT

// One head of 8 f32 elements, pages of 16 tokens: 2 × 16 × 8 × 4 = 1024 bytes a page. Of 65536 bytes half may be used;
// 16384 of weights and 1024 of everything else leave 15 pages.

// CHECK: exec.num_pages = 15 : i64
// CHECK: kv = #exec.kv<layers = [4], heads = [1], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 1>
// CHECK-SAME: ledger = {activations = 256 : i64, budget = 32768 : i64, communication = 256 : i64, kv_cache = 15360 : i64, memory = 65536 : i64, runtime = 256 : i64, total = 32768 : i64, weights = 16384 : i64, workspace = 256 : i64}
module attributes {dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 8, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.5, kv_dtype = f32>,
  dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 65536, reserved = 256, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, weight_bytes = 16384 : i64, arena_bytes = 256 : i64, workspace_bytes = 256 : i64, comm_bytes = 256 : i64} {
  %w = exec.weight "qkv" {parts = [
    #exec.part<name = "q", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 8]>, box = <row = 8, rows = 8, col = 0, cols = 8, replica = false>, dst_row = 0, dst_col = 0>,
    #exec.part<name = "k", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 8]>, box = <row = 8, rows = 8, col = 0, cols = 8, replica = true>, dst_row = 8, dst_col = 0>,
    #exec.part<name = "v", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 8]>, box = <row = 8, rows = 8, col = 0, cols = 8, replica = true>, dst_row = 16, dst_col = 0>]} : !exec.weight<24, 8, f32, row_major>
  %x = exec.buffer "x" : !exec.buffer<tokens, 8, f32>
  %b = exec.buffer "qkv" : !exec.buffer<tokens, 24, f32>
  exec.linear %x, %w into %b : !exec.buffer<tokens, 8, f32>, !exec.weight<24, 8, f32, row_major>, !exec.buffer<tokens, 24, f32>
  %q = exec.columns %b {begin = 0 : i64} : !exec.buffer<tokens, 24, f32> -> !exec.buffer<tokens, 8, f32>
  %k = exec.columns %b {begin = 8 : i64} : !exec.buffer<tokens, 24, f32> -> !exec.buffer<tokens, 8, f32>
  %v = exec.columns %b {begin = 16 : i64} : !exec.buffer<tokens, 24, f32> -> !exec.buffer<tokens, 8, f32>
  exec.kv_append %k, %v {kv_layer = 0 : i64, kv_heads = 1 : i64, head_dim = 8 : i64} : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
  exec.attention %q into %x {layer = 4 : i64, kv_layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, kv_head_of_q = array<i64: 0>, scale = 0.5 : f32} : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
}
}

// -----

// A longer context than fits: what is short, and the largest that fits; or, if nobody asked for it, shortened.

// SHORT: warning: max_model_len is 240, not the model's 4096: device cpu0 (rank 0, stage 0) has 32.0 KiB to use
// SHORT: dist.limits = #dist.limits<max_model_len = 240,
// expected-error@+1 {{what is left holds 15 KV pages of 16 tokens, but one sequence of 4096 tokens needs 256 (256.0 KiB); the largest that fits is --max-model-len 240}}
module attributes {dist.limits = #dist.limits<max_model_len = 4096, max_num_seqs = 8, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.5, kv_dtype = f32>,
  dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 65536, reserved = 256, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, weight_bytes = 16384 : i64, arena_bytes = 256 : i64, workspace_bytes = 256 : i64, comm_bytes = 256 : i64} {
  %w = exec.weight "k" {parts = [#exec.part<name = "k", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>, box = <row = 0, rows = 8, col = 0, cols = 8, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<8, 8, f32, row_major>
  %x = exec.buffer "x" : !exec.buffer<tokens, 8, f32>
  %k = exec.buffer "k" : !exec.buffer<tokens, 8, f32>
  exec.linear %x, %w into %k : !exec.buffer<tokens, 8, f32>, !exec.weight<8, 8, f32, row_major>, !exec.buffer<tokens, 8, f32>
  exec.kv_append %k, %k {kv_layer = 0 : i64, kv_heads = 1 : i64, head_dim = 8 : i64} : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
  exec.attention %k into %x {layer = 0 : i64, kv_layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, kv_head_of_q = array<i64: 0>, scale = 0.5 : f32} : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
}
}
