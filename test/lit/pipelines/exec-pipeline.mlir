// RUN: %opt %S/Inputs/two-layers.mlir --llm-pipeline --dist-pipeline="tp=2 pp=2" --exec-pipeline | FileCheck %s

// The exec phase: kernels, buffers, pages and the ledger of each program are settled. 4 MiB of budget hold more than the
// 16 pages of 1024 bytes that 4 sequences of 64 tokens can fill, so there are 16.

// CHECK: exec.num_pages = 16 : i64
// CHECK-LABEL: exec.program @rank0
// CHECK-SAME: kv = #exec.kv<layers = [0], heads = [0], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 0>
// CHECK-SAME: ledger = {activations = {{[0-9]+}} : i64, budget = 4194304 : i64, communication = 2048 : i64, kv_cache = 16384 : i64
// CHECK-SAME: rank = 0 : i64
// CHECK: %[[TABLE:.*]] = exec.weight "table" {offset = 0 : i64
// CHECK: %[[X:.*]] = exec.buffer "residual" {first_op = 0 : i64, last_op = 15 : i64, offset = {{[0-9]+}} : i64}
// CHECK: exec.embedding %[[TABLE]] into %[[X]] {kernel = "cpu.embedding.row_major"}
// CHECK: exec.all_reduce %[[X]] {algorithm = #exec.algorithm<ordered>, comm = #exec.comm<host>, {{.*}}seq = 0 : i64}
// CHECK: exec.rms_norm %[[X]]
// CHECK: exec.linear {{.*}}kernel = "cpu.linear.packed16", layer = 0 : i64
// CHECK: exec.rope {{.*}}norms(
// CHECK: exec.kv_append {{.*}}kv_layer = 0 : i64
// CHECK: exec.attention {{.*}}kv_head_of_q = array<i64: 0>
// CHECK: exec.add_rms_norm %[[X]]
// CHECK: exec.gated_act
// CHECK: exec.add %{{.*}} into %[[X]]
// CHECK-NEXT: exec.send %[[X]] {comm = #exec.comm<host>, {{.*}}peer = 2 : i64, seq = 0 : i64}

// A page holds layer 1 here, which is this program's first; its keys and values are held twice.
// CHECK-LABEL: exec.program @rank3
// CHECK-SAME: kv = #exec.kv<layers = [1], heads = [0], head_dim = 8, element = f32, layer_page_bytes = 1024, duplicated = 1>
// CHECK: exec.recv {{.*}}peer = 1 : i64, seq = 0 : i64
// CHECK: exec.attention {{.*}}kv_layer = 0 : i64, layer = 1 : i64
// CHECK: exec.select_rows {{.*}} <logits, 16, f32>
// CHECK: exec.gather {{.*}}counts = array<i64: 32, 32>, {{.*}}root = 0 : i64
// CHECK-NOT: exec.output
