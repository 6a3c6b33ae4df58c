// RUN: %opt %s --exec-select-kernels | FileCheck %s

// Kernels, layouts and communicators follow from the device. rank0 is a CPU, rank1 a GPU.

#topo = #dist.topology<name = "mixed", hosts = ["h"], devices = [
  #dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
  #dist.device<id = "gpu0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>,
  #dist.device<id = "gpu1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>], links = []>

module attributes {dist.topology = #topo, dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>} {
// CHECK-LABEL: exec.program @rank0
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  // What a product reads is packed, a table that is only looked up is not.
  // CHECK: exec.weight "lookup" {{.*}} <4, 4, bf16, row_major>
  // CHECK: exec.weight "product" {{.*}} <4, 4, bf16, packed16>
  %t = exec.weight "lookup" {parts = [#exec.part<name = "t", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4]>, box = <row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4, bf16, row_major>
  %w = exec.weight "product" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4]>, box = <row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4, bf16, row_major>
  %x = exec.buffer "x" : !exec.buffer<tokens, 4, f32>
  %y = exec.buffer "y" : !exec.buffer<tokens, 4, f32>
  // CHECK: exec.embedding {{.*}}kernel = "cpu.embedding.row_major"
  exec.embedding %t into %x : !exec.weight<4, 4, bf16, row_major>, !exec.buffer<tokens, 4, f32>
  // CHECK: exec.linear {{.*}}kernel = "cpu.linear.packed16"
  exec.linear %x, %w into %y : !exec.buffer<tokens, 4, f32>, !exec.weight<4, 4, bf16, row_major>, !exec.buffer<tokens, 4, f32>
  // A group with a CPU in it talks through host memory, in a fixed order.
  // CHECK: exec.all_reduce {{.*}}algorithm = #exec.algorithm<ordered>, comm = #exec.comm<host>{{.*}}kernel = "cpu.all_reduce"
  exec.all_reduce %y {group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<tokens, 4, f32>
}
// CHECK-LABEL: exec.program @rank1
exec.program @rank1 attributes {rank = 1 : i64, stage = 0 : i64, tp_index = 1 : i64, device = 1 : i64} {
  // CHECK: exec.weight "product" {{.*}} <4, 4, bf16, row_major>
  %w = exec.weight "product" {parts = [#exec.part<name = "w", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4]>, box = <row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4, bf16, row_major>
  %x = exec.buffer "x" : !exec.buffer<tokens, 4, bf16>
  %y = exec.buffer "y" : !exec.buffer<tokens, 4, bf16>
  // Few rows stream the weight, and fewer do their neighbours too where the residual is narrow; a large weight is cut over a
  // Hopper's multiprocessors for some rows more.
  // CHECK: exec.linear {{.*}}fused_rows = 4 : i64, kernel = "cuda.linear"{{.*}}stream_rows = 16 : i64}
  exec.linear %x, %w into %y : !exec.buffer<tokens, 4, bf16>, !exec.weight<4, 4, bf16, row_major>, !exec.buffer<tokens, 4, bf16>
  %large = exec.weight "large" {parts = [#exec.part<name = "l", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8192, 4096]>, box = <row = 0, rows = 8192, col = 0, cols = 4096, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<8192, 4096, bf16, row_major>
  %p = exec.buffer "p" : !exec.buffer<tokens, 4096, bf16>
  %q = exec.buffer "q" : !exec.buffer<tokens, 8192, bf16>
  // CHECK: exec.linear {{.*}}{kernel = "cuda.linear"{{.*}}stream_rows = 16 : i64, wide_rows = 128 : i64
  exec.linear %p, %large into %q : !exec.buffer<tokens, 4096, bf16>, !exec.weight<8192, 4096, bf16, row_major>, !exec.buffer<tokens, 8192, bf16>
  // Sooner where the kernel for few rows has little to do in a second round.
  %round = exec.weight "round" {parts = [#exec.part<name = "r", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [5120, 8192]>, box = <row = 0, rows = 5120, col = 0, cols = 8192, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<5120, 8192, bf16, row_major>
  %s = exec.buffer "s" : !exec.buffer<tokens, 5120, bf16>
  // CHECK: exec.linear {{.*}}{kernel = "cuda.linear"{{.*}}stream_rows = 4 : i64, wide_rows = 128 : i64
  exec.linear %q, %round into %s : !exec.buffer<tokens, 8192, bf16>, !exec.weight<5120, 8192, bf16, row_major>, !exec.buffer<tokens, 5120, bf16>
  // With a gate behind it, for all, and of some rows in one launch with it.
  %gate = exec.columns %q {begin = 0 : i64} : !exec.buffer<tokens, 8192, bf16> -> !exec.buffer<tokens, 4096, bf16>
  %up = exec.columns %q {begin = 4096 : i64} : !exec.buffer<tokens, 8192, bf16> -> !exec.buffer<tokens, 4096, bf16>
  // CHECK: exec.linear {{.*}}{kernel = "cuda.linear"{{.*}}paired_rows = 16 : i64, stream_rows = 16 : i64, wide_rows = 4294967295 : i64
  exec.linear %p, %large into %q : !exec.buffer<tokens, 4096, bf16>, !exec.weight<8192, 4096, bf16, row_major>, !exec.buffer<tokens, 8192, bf16>
  exec.gated_act %gate, %up into %p {act = #llm.act<silu>} : !exec.buffer<tokens, 4096, bf16>, !exec.buffer<tokens, 4096, bf16>, !exec.buffer<tokens, 4096, bf16>
  // So with a rotation.
  %heads_q = exec.columns %q {begin = 0 : i64} : !exec.buffer<tokens, 8192, bf16> -> !exec.buffer<tokens, 4096, bf16>
  %heads_k = exec.columns %q {begin = 4096 : i64} : !exec.buffer<tokens, 8192, bf16> -> !exec.buffer<tokens, 2048, bf16>
  // CHECK: exec.linear {{.*}}paired_rows = 16 : i64, stream_rows = 16 : i64, wide_rows = 128 : i64
  exec.linear %p, %large into %q : !exec.buffer<tokens, 4096, bf16>, !exec.weight<8192, 4096, bf16, row_major>, !exec.buffer<tokens, 8192, bf16>
  exec.rope %heads_q, %heads_k {q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 2048 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : !exec.buffer<tokens, 4096, bf16>, !exec.buffer<tokens, 2048, bf16>
  // Where the product is added to a residual, its own columns are the residual's.
  %flat = exec.weight "flat" {parts = [#exec.part<name = "f", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4096]>, box = <row = 0, rows = 4, col = 0, cols = 4096, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4096, bf16, row_major>
  // CHECK: exec.linear {{.*}}fused_rows = 4 : i64
  exec.linear %p, %flat into %y : !exec.buffer<tokens, 4096, bf16>, !exec.weight<4, 4096, bf16, row_major>, !exec.buffer<tokens, 4, bf16>
  exec.add %y into %x : !exec.buffer<tokens, 4, bf16>, !exec.buffer<tokens, 4, bf16>
  // In f32 the kernel that keeps one order of summation takes all rows.
  %exact = exec.weight "exact" {parts = [#exec.part<name = "e", tensor = <file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 4]>, box = <row = 0, rows = 4, col = 0, cols = 4, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<4, 4, f32, row_major>
  %a = exec.buffer "a" : !exec.buffer<tokens, 4, f32>
  %b = exec.buffer "b" : !exec.buffer<tokens, 4, f32>
  // CHECK: exec.linear {{.*}}stream_rows = 4294967295 : i64}
  exec.linear %a, %exact into %b : !exec.buffer<tokens, 4, f32>, !exec.weight<4, 4, f32, row_major>, !exec.buffer<tokens, 4, f32>
  // CHECK: exec.all_reduce {{.*}}comm = #exec.comm<host>
  exec.all_reduce %y {group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<tokens, 4, bf16>
  // CHECK: exec.all_reduce {{.*}}algorithm = #exec.algorithm<ring>, comm = #exec.comm<nccl>
  exec.all_reduce %y {group = array<i64: 1, 2>, seq = 0 : i64} : !exec.buffer<tokens, 4, bf16>
  // CHECK: exec.send {{.*}}comm = #exec.comm<nccl>
  exec.send %y {peer = 2 : i64, seq = 0 : i64} : !exec.buffer<tokens, 4, bf16>
  // CHECK: exec.recv {{.*}}comm = #exec.comm<host>
  exec.recv %y {peer = 0 : i64, seq = 0 : i64} : !exec.buffer<tokens, 4, bf16>
}
}
