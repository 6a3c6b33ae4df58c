// RUN: %opt %s --dist-assign-shardings --dist-insert-collectives --dist-simplify-collectives --dist-split-stages --dist-localize --dist-verify --split-input-file | FileCheck %s

// One function a rank: its boxes of the weights, its heads, its groups, its peers.

// Two layers over tp 2 x pp 2, biases everywhere, a table that serves both ends.

// CHECK-NOT: @forward
// CHECK-LABEL: func.func @rank0(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>) attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64}
// CHECK: llm.weight "table" {boxes = [#llm.box<row = 0, rows = 32, col = 0, cols = 8, replica = false>]{{.*}} : tensor<32x8xf32>
// CHECK: llm.embedding %arg0, %{{[0-9]+}} :
// CHECK: dist.all_reduce {{.*}}group = array<i64: 0, 1>, seq = 0 : i64
// CHECK: llm.weight "l0.norm" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>]{{.*}} : tensor<8xf32>
// CHECK: llm.weight "l0.q" {boxes = [#llm.box<row = 0, rows = 4, col = 0, cols = 8, replica = false>]{{.*}} : tensor<4x8xf32>
// CHECK: llm.weight "l0.qb" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 4, replica = false>]{{.*}} : tensor<4xf32>
// CHECK: %[[Q:.*]]:3 = llm.linear {{.*}} biases({{.*}} -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 0>, kv_head_of_q = array<i64: 0>, kv_heads = 1 : i64, layer = 0 : i64, {{.*}}q_heads = 1 : i64
// CHECK: llm.weight "l0.o" {boxes = [#llm.box<row = 0, rows = 8, col = 0, cols = 4, replica = false>]{{.*}} : tensor<8x4xf32>
// CHECK: llm.weight "l0.ob" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>]{{.*}} : tensor<8xf32>
// CHECK: llm.linear {{.*}} biases(
// CHECK: dist.all_reduce {{.*}}group = array<i64: 0, 1>, llm.layer = 0 : i32, seq = 1 : i64
// CHECK: dist.all_reduce {{.*}}group = array<i64: 0, 1>, llm.layer = 0 : i32, seq = 2 : i64
// CHECK: %[[S:.*]] = llm.add
// CHECK: dist.send %[[S]] {llm.layer = 0 : i32, peer = 2 : i64, seq = 0 : i64}
// CHECK-NEXT: return{{$}}

// The second rank: its rows of the table, replicas of what the first has whole, no bias behind the row-parallel product.
// CHECK-LABEL: func.func @rank1(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64}
// CHECK: llm.weight "table" {boxes = [#llm.box<row = 32, rows = 32, col = 0, cols = 8, replica = false>]{{.*}} : tensor<32x8xf32>
// CHECK: llm.embedding {{.*}}vocab_begin = 32 : i64
// CHECK: dist.all_reduce {{.*}}group = array<i64: 0, 1>, seq = 0 : i64
// CHECK: llm.weight "l0.norm" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = true>]{{.*}} : tensor<8xf32>
// CHECK: llm.weight "l0.qb" {boxes = [#llm.box<row = 0, rows = 1, col = 4, cols = 4, replica = false>]{{.*}} : tensor<4xf32>
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 1>, kv_head_of_q = array<i64: 0>
// CHECK: llm.weight "l0.o" {boxes = [#llm.box<row = 0, rows = 8, col = 4, cols = 4, replica = false>]{{.*}} : tensor<8x4xf32>
// CHECK-NOT: l0.ob
// CHECK: llm.linear %{{.*}} weights(%{{[0-9]+}}) {llm.layer
// CHECK: dist.send {{.*}}peer = 3 : i64, seq = 0 : i64

// The last stage's first rank: layer 1, the tied table again as a replica, and the logits of all.
// CHECK-LABEL: func.func @rank2(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>) -> tensor<?x64xf32> attributes {dist.rank = 2 : i64, dist.stage = 1 : i64, dist.tp_index = 0 : i64}
// CHECK-NEXT: %[[X:.*]] = dist.recv {llm.layer = 0 : i32, peer = 0 : i64, seq = 0 : i64} : tensor<?x8xf32>
// CHECK-NOT: l0.
// CHECK: llm.rms_norm %[[X]]
// CHECK: llm.attention {{.*}}layer = 1 : i64
// CHECK: dist.all_reduce {{.*}}group = array<i64: 2, 3>, llm.layer = 1 : i32, seq = 0 : i64
// CHECK: dist.all_reduce {{.*}}group = array<i64: 2, 3>, llm.layer = 1 : i32, seq = 1 : i64
// CHECK: llm.weight "table" {boxes = [#llm.box<row = 0, rows = 32, col = 0, cols = 8, replica = true>]{{.*}} : tensor<32x8xf32>
// CHECK: %[[L:.*]] = dist.gather {{.*}}group = array<i64: 2, 3>, root = 0 : i64, seq = 2 : i64, {{.*}} -> tensor<?x64xf32>
// CHECK-NEXT: return %[[L]]

// The other gives its part of the logits and returns nothing.
// CHECK-LABEL: func.func @rank3(%arg0: tensor<?xi32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>) attributes {dist.rank = 3 : i64, dist.stage = 1 : i64, dist.tp_index = 1 : i64}
// CHECK-NEXT: dist.recv {llm.layer = 0 : i32, peer = 1 : i64, seq = 0 : i64}
// CHECK: llm.weight "table" {boxes = [#llm.box<row = 32, rows = 32, col = 0, cols = 8, replica = true>]{{.*}} : tensor<32x8xf32>
// CHECK: {{^ *}}dist.gather {{.*}}group = array<i64: 2, 3>, root = 0 : i64, seq = 2 : i64, {{.*}}: tensor<?x32xf32>{{$}}
// CHECK-NEXT: return{{$}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 1, 2, 3]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 8]>} : tensor<64x8xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x8xf32> -> tensor<?x8xf32>
  %n0 = llm.weight "l0.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wq0 = llm.weight "l0.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %wk0 = llm.weight "l0.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %wv0 = llm.weight "l0.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %bq0 = llm.weight "l0.qb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %bk0 = llm.weight "l0.kb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %bv0 = llm.weight "l0.vb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) biases(%bq0, %bk0, %bv0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>), (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %wo0 = llm.weight "l0.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %bo0 = llm.weight "l0.ob" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %o0 = llm.linear %a0 weights(%wo0) biases(%bo0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>), (tensor<8xf32>) -> (tensor<?x8xf32>)
  %m0 = llm.weight "l0.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wg0 = llm.weight "l0.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 8]>} : tensor<32x8xf32>
  %wu0 = llm.weight "l0.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 8]>} : tensor<32x8xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x32xf32>
  %wd0 = llm.weight "l0.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 32]>} : tensor<8x32xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %n1 = llm.weight "l1.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wq1 = llm.weight "l1.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %wk1 = llm.weight "l1.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %wv1 = llm.weight "l1.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %bq1 = llm.weight "l1.qb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %bk1 = llm.weight "l1.kb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %bv1 = llm.weight "l1.vb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) biases(%bq1, %bk1, %bv1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>), (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %wo1 = llm.weight "l1.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 8]>} : tensor<8x8xf32>
  %bo1 = llm.weight "l1.ob" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %o1 = llm.linear %a1 weights(%wo1) biases(%bo1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>), (tensor<8xf32>) -> (tensor<?x8xf32>)
  %m1 = llm.weight "l1.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wg1 = llm.weight "l1.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 8]>} : tensor<32x8xf32>
  %wu1 = llm.weight "l1.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 8]>} : tensor<32x8xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x32xf32>
  %wd1 = llm.weight "l1.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 32]>} : tensor<8x32xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %nf = llm.weight "norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %rf, %yf = llm.add_rms_norm %s1, %d1, %nf {eps = 1.0e-5 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x8xf32>, tensor<?xi32>
  %logits = llm.linear %sel weights(%table) : tensor<?x8xf32>, (tensor<64x8xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}

// -----

// Nine query and three KV heads of 2 over four ranks. Rank 2's query heads read KV heads 1 and 2: 1 is rank 1's, of which
// it has a replica, 2 is its own; rank 3 has only a replica of 2. Vectors are boxed along their columns.

// CHECK-LABEL: func.func @rank0
// CHECK: llm.weight "l0.q" {boxes = [#llm.box<row = 0, rows = 6, col = 0, cols = 18, replica = false>]{{.*}} : tensor<6x18xf32>
// CHECK: llm.weight "l0.k" {boxes = [#llm.box<row = 0, rows = 2, col = 0, cols = 18, replica = false>]{{.*}} : tensor<2x18xf32>
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 0>, kv_head_of_q = array<i64: 0, 0, 0>
// CHECK-LABEL: func.func @rank1
// CHECK: llm.weight "l0.q" {boxes = [#llm.box<row = 6, rows = 4, col = 0, cols = 18, replica = false>]{{.*}} : tensor<4x18xf32>
// CHECK: llm.weight "l0.k" {boxes = [#llm.box<row = 2, rows = 2, col = 0, cols = 18, replica = false>]{{.*}} : tensor<2x18xf32>
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 1>, kv_head_of_q = array<i64: 0, 0>
// CHECK-LABEL: func.func @rank2
// CHECK: llm.weight "l0.k" {boxes = [#llm.box<row = 2, rows = 2, col = 0, cols = 18, replica = true>, #llm.box<row = 4, rows = 2, col = 0, cols = 18, replica = false>]{{.*}} : tensor<4x18xf32>
// CHECK: llm.weight "l0.kb" {boxes = [#llm.box<row = 0, rows = 1, col = 2, cols = 2, replica = true>, #llm.box<row = 0, rows = 1, col = 4, cols = 2, replica = false>]{{.*}} : tensor<4xf32>
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 1, 2>, kv_head_of_q = array<i64: 0, 1>, kv_heads = 2 : i64
// CHECK-LABEL: func.func @rank3
// CHECK: llm.weight "l0.k" {boxes = [#llm.box<row = 4, rows = 2, col = 0, cols = 18, replica = true>]{{.*}} : tensor<2x18xf32>
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 2>, kv_head_of_q = array<i64: 0, 0>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 4, pp = 1, devices = [0, 1, 2, 3]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x128xf32> {
  %table = llm.weight "table" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [128, 18]>} : tensor<128x18xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<128x18xf32> -> tensor<?x18xf32>
  %n0 = llm.weight "l0.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18]>} : tensor<18xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<18xf32>
  %wq0 = llm.weight "l0.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18, 18]>} : tensor<18x18xf32>
  %wk0 = llm.weight "l0.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [6, 18]>} : tensor<6x18xf32>
  %wv0 = llm.weight "l0.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [6, 18]>} : tensor<6x18xf32>
  %bq0 = llm.weight "l0.qb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18]>} : tensor<18xf32>
  %bk0 = llm.weight "l0.kb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [6]>} : tensor<6xf32>
  %bv0 = llm.weight "l0.vb" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [6]>} : tensor<6xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) biases(%bq0, %bk0, %bv0) {llm.layer = 0 : i32} : tensor<?x18xf32>, (tensor<18x18xf32>, tensor<6x18xf32>, tensor<6x18xf32>), (tensor<18xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<?x18xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<?x6xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 9 : i64, kv_heads = 3 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<?x6xf32> -> tensor<?x18xf32>
  %wo0 = llm.weight "l0.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18, 18]>} : tensor<18x18xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x18xf32>, (tensor<18x18xf32>) -> (tensor<?x18xf32>)
  %m0 = llm.weight "l0.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18]>} : tensor<18xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<18xf32>
  %wg0 = llm.weight "l0.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [128, 18]>} : tensor<128x18xf32>
  %wu0 = llm.weight "l0.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [128, 18]>} : tensor<128x18xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x18xf32>, (tensor<128x18xf32>, tensor<128x18xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x128xf32>
  %wd0 = llm.weight "l0.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18, 128]>} : tensor<18x128xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x128xf32>, (tensor<18x128xf32>) -> (tensor<?x18xf32>)
  %nf = llm.weight "norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [18]>} : tensor<18xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x18xf32>, tensor<18xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x18xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [128, 18]>} : tensor<128x18xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x18xf32>, (tensor<128x18xf32>) -> (tensor<?x128xf32>)
  return %logits : tensor<?x128xf32>
}
}

// -----

// Eight KV heads over three ranks, 3/3/2, each with its two query heads.

// CHECK-LABEL: func.func @rank0
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 0, 1, 2>, kv_head_of_q = array<i64: 0, 0, 1, 1, 2, 2>, kv_heads = 3 : i64
// CHECK: llm.weight "l0.o" {boxes = [#llm.box<row = 0, rows = 32, col = 0, cols = 12, replica = false>]{{.*}} : tensor<32x12xf32>
// CHECK-LABEL: func.func @rank1
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 3, 4, 5>
// CHECK: llm.weight "l0.o" {boxes = [#llm.box<row = 0, rows = 32, col = 12, cols = 12, replica = false>]{{.*}} : tensor<32x12xf32>
// CHECK-LABEL: func.func @rank2
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 6, 7>, kv_head_of_q = array<i64: 0, 0, 1, 1>, kv_heads = 2 : i64
// CHECK: llm.weight "l0.o" {boxes = [#llm.box<row = 0, rows = 32, col = 24, cols = 8, replica = false>]{{.*}} : tensor<32x8xf32>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x96xf32> {
  %table = llm.weight "table" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [96, 32]>} : tensor<96x32xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
  %n0 = llm.weight "l0.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<32xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq0 = llm.weight "l0.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 32]>} : tensor<32x32xf32>
  %wk0 = llm.weight "l0.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 32]>} : tensor<16x32xf32>
  %wv0 = llm.weight "l0.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 32]>} : tensor<16x32xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 16 : i64, kv_heads = 8 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x16xf32> -> tensor<?x32xf32>
  %wo0 = llm.weight "l0.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 32]>} : tensor<32x32xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m0 = llm.weight "l0.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<32xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg0 = llm.weight "l0.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [96, 32]>} : tensor<96x32xf32>
  %wu0 = llm.weight "l0.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [96, 32]>} : tensor<96x32xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<96x32xf32>, tensor<96x32xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x96xf32>
  %wd0 = llm.weight "l0.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 96]>} : tensor<32x96xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x96xf32>, (tensor<32x96xf32>) -> (tensor<?x32xf32>)
  %nf = llm.weight "norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<32xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x32xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [96, 32]>} : tensor<96x32xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x32xf32>, (tensor<96x32xf32>) -> (tensor<?x96xf32>)
  return %logits : tensor<?x96xf32>
}
}

// -----

// One rank: no collectives at all.

// CHECK-LABEL: func.func @rank0
// CHECK-NOT: dist.{{(all_reduce|all_gather|gather|slice|send|recv)}}
// CHECK: return %{{[0-9]+}} : tensor<?x64xf32>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>} : tensor<64x16xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x16xf32> -> tensor<?x16xf32>
  %n0 = llm.weight "l0.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>} : tensor<16xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq0 = llm.weight "l0.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 16]>} : tensor<16x16xf32>
  %wk0 = llm.weight "l0.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 16]>} : tensor<8x16xf32>
  %wv0 = llm.weight "l0.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 16]>} : tensor<8x16xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo0 = llm.weight "l0.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 16]>} : tensor<16x16xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m0 = llm.weight "l0.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>} : tensor<16xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg0 = llm.weight "l0.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>} : tensor<64x16xf32>
  %wu0 = llm.weight "l0.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>} : tensor<64x16xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 64]>} : tensor<16x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>} : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>} : tensor<64x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}
