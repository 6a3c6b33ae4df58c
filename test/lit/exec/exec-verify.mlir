// RUN: %opt %s --exec-verify -verify-diagnostics -split-input-file

#limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>
#kv = #exec.kv<layers = [0], heads = [0], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 0>
module attributes {dist.limits = #limits, exec.num_pages = 4 : i64} {
exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, kv = #kv, weight_bytes = 0 : i64, arena_bytes = 256 : i64, ledger = {}} {
  %x = exec.buffer "x" {offset = 0 : i64, first_op = 0 : i64, last_op = 0 : i64} : !exec.buffer<tokens, 8, f32>
  // expected-error@+1 {{has no kernel: run exec-select-kernels}}
  exec.add %x into %x : !exec.buffer<tokens, 8, f32>, !exec.buffer<tokens, 8, f32>
}
}

// -----

#limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>
#kv = #exec.kv<layers = [0], heads = [0], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 0>
module attributes {dist.limits = #limits, exec.num_pages = 4 : i64} {
exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, kv = #kv, weight_bytes = 0 : i64, arena_bytes = 512 : i64, ledger = {}} {
  %x = exec.buffer "x" {offset = 0 : i64, first_op = 0 : i64, last_op = 2 : i64} : !exec.buffer<tokens, 8, f32>
  // expected-error@+1 {{shares bytes [64, 128) with 'x', which lives at the same time}}
  %y = exec.buffer "y" {offset = 64 : i64, first_op = 2 : i64, last_op = 3 : i64} : !exec.buffer<tokens, 8, f32>
}
}

// -----

#limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>
#kv = #exec.kv<layers = [0], heads = [0], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 0>
module attributes {dist.limits = #limits, exec.num_pages = 4 : i64} {
exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, kv = #kv, weight_bytes = 0 : i64, arena_bytes = 128 : i64, ledger = {}} {
  // expected-error@+1 {{ends at 256, past the arena of 128}}
  %y = exec.buffer "y" {offset = 128 : i64, first_op = 2 : i64, last_op = 3 : i64} : !exec.buffer<tokens, 8, f32>
}
}

// -----

#limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>
#kv = #exec.kv<layers = [0], heads = [0], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 0>
module attributes {dist.limits = #limits, exec.num_pages = 4 : i64} {
// expected-error@+1 {{has a ledger whose lines sum to 3, not to its total of 4}}
exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64, kv = #kv, weight_bytes = 0 : i64, arena_bytes = 128 : i64,
    ledger = {weights = 1 : i64, kv_cache = 2 : i64, total = 4 : i64, budget = 9 : i64}} {
}
}

// -----

#limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>
module attributes {dist.limits = #limits, exec.num_pages = 4 : i64} {
// expected-error@+1 {{has no planned memory}}
exec.program @p attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
}
}
