// RUN: %opt %s --dist-assign-shardings --split-input-file -verify-diagnostics | FileCheck %s

// How each op of a layer is shared: by whole heads, by columns, by rows of the vocabulary, or not at all.

// Eight KV heads over three ranks: whole heads, 3/3/2. Feed-forward and vocabulary go by units of 32: 64, 32 and the 4
// that are left. A column-parallel product has its biases cut like its rows; a row-parallel one gives partial sums, and its
// bias is partial too: one rank adds it.

// CHECK: llm.embedding {{.*}}dist.in = [#dist.replicated, #dist.tiles<dim = 0, offsets = [0, 64, 96], sizes = [64, 32, 4]>], dist.out = [#dist.partial]
// CHECK: llm.rms_norm {{.*}}dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]
// CHECK: llm.linear {{.*}} biases({{.*}}dist.in = [#dist.replicated, #dist.tiles<dim = 0, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 0, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 0, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 0, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 0, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 0, offsets = [0, 6, 12], sizes = [6, 6, 4]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>]
// CHECK: llm.rope {{.*}}dist.in = [#dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>]
// CHECK: llm.attention {{.*}}dist.in = [#dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>]
// CHECK: llm.linear {{.*}} biases({{.*}}dist.in = [#dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.tiles<dim = 1, offsets = [0, 6, 12], sizes = [6, 6, 4]>, #dist.partial], dist.out = [#dist.partial]
// CHECK: llm.add_rms_norm {{.*}}dist.in = [#dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.replicated, #dist.replicated]
// CHECK: llm.linear {{.*}}dist.in = [#dist.replicated, #dist.tiles<dim = 0, offsets = [0, 64, 96], sizes = [64, 32, 4]>, #dist.tiles<dim = 0, offsets = [0, 64, 96], sizes = [64, 32, 4]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>, #dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>]
// CHECK: llm.gated_act {{.*}}dist.in = [#dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>, #dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>]
// CHECK: llm.linear {{.*}}dist.in = [#dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>, #dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>], dist.out = [#dist.partial]
// CHECK: llm.select_rows {{.*}}dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]
// CHECK: llm.linear {{.*}}dist.in = [#dist.replicated, #dist.tiles<dim = 0, offsets = [0, 64, 96], sizes = [64, 32, 4]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 64, 96], sizes = [64, 32, 4]>]
// CHECK: return {dist.in = [#dist.replicated], dist.out = []}
module attributes {dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x100xf32> {
  %table = llm.weight "table" : tensor<100x16xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<100x16xf32> -> tensor<?x16xf32>
  %n0 = llm.weight "l0.norm" : tensor<16xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq0 = llm.weight "l0.q" : tensor<16x16xf32>
  %wk0 = llm.weight "l0.k" : tensor<16x16xf32>
  %wv0 = llm.weight "l0.v" : tensor<16x16xf32>
  %bq0 = llm.weight "l0.qb" : tensor<16xf32>
  %bk0 = llm.weight "l0.kb" : tensor<16xf32>
  %bv0 = llm.weight "l0.vb" : tensor<16xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) biases(%bq0, %bk0, %bv0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>), (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>)
  %hq0 = llm.weight "l0.qn" : tensor<2xf32>
  %hk0 = llm.weight "l0.kn" : tensor<2xf32>
  %qr0, %kr0 = llm.rope %q0, %k0, %positions norms(%hq0, %hk0 : tensor<2xf32>, tensor<2xf32>) {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
  %wo0 = llm.weight "l0.o" : tensor<16x16xf32>
  %bo0 = llm.weight "l0.ob" : tensor<16xf32>
  %o0 = llm.linear %a0 weights(%wo0) biases(%bo0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>), (tensor<16xf32>) -> (tensor<?x16xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<16xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg0 = llm.weight "l0.gate" : tensor<100x16xf32>
  %wu0 = llm.weight "l0.up" : tensor<100x16xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<100x16xf32>, tensor<100x16xf32>) -> (tensor<?x100xf32>, tensor<?x100xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x100xf32>
  %wd0 = llm.weight "l0.down" : tensor<16x100xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x100xf32>, (tensor<16x100xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<100x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<100x16xf32>) -> (tensor<?x100xf32>)
  return %logits : tensor<?x100xf32>
}
}

// -----

// Three KV heads over four ranks: nine query heads go 3/2/2/2, and each rank has the KV heads that its query heads read,
// so that heads 1 and 2 stand on two ranks each. Heads have 2 elements.

// CHECK: llm.linear {{.*}}dist.in = [#dist.replicated, #dist.tiles<dim = 0, offsets = [0, 6, 10, 14], sizes = [6, 4, 4, 4]>, #dist.tiles<dim = 0, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>, #dist.tiles<dim = 0, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 6, 10, 14], sizes = [6, 4, 4, 4]>, #dist.tiles<dim = 1, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>, #dist.tiles<dim = 1, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>]
// CHECK: llm.rope {{.*}}dist.out = [#dist.tiles<dim = 1, offsets = [0, 6, 10, 14], sizes = [6, 4, 4, 4]>, #dist.tiles<dim = 1, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>]
// CHECK: llm.attention {{.*}}dist.in = [#dist.tiles<dim = 1, offsets = [0, 6, 10, 14], sizes = [6, 4, 4, 4]>, #dist.tiles<dim = 1, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>, #dist.tiles<dim = 1, offsets = [0, 2, 2, 4], sizes = [2, 2, 4, 2]>], dist.out = [#dist.tiles<dim = 1, offsets = [0, 6, 10, 14], sizes = [6, 4, 4, 4]>]
module attributes {dist.mesh = #dist.mesh<tp = 4, pp = 1, devices = [0, 1, 2, 3]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x128xf32> {
  %table = llm.weight "table" : tensor<128x18xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<128x18xf32> -> tensor<?x18xf32>
  %n0 = llm.weight "l0.norm" : tensor<18xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<18xf32>
  %wq0 = llm.weight "l0.q" : tensor<18x18xf32>
  %wk0 = llm.weight "l0.k" : tensor<6x18xf32>
  %wv0 = llm.weight "l0.v" : tensor<6x18xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x18xf32>, (tensor<18x18xf32>, tensor<6x18xf32>, tensor<6x18xf32>) -> (tensor<?x18xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<?x6xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 9 : i64, kv_heads = 3 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<?x6xf32> -> tensor<?x18xf32>
  %wo0 = llm.weight "l0.o" : tensor<18x18xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x18xf32>, (tensor<18x18xf32>) -> (tensor<?x18xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<18xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x18xf32>, tensor<18xf32>
  %wg0 = llm.weight "l0.gate" : tensor<128x18xf32>
  %wu0 = llm.weight "l0.up" : tensor<128x18xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x18xf32>, (tensor<128x18xf32>, tensor<128x18xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x128xf32>
  %wd0 = llm.weight "l0.down" : tensor<18x128xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x128xf32>, (tensor<18x128xf32>) -> (tensor<?x18xf32>)
  %nf = llm.weight "norm" : tensor<18xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x18xf32>, tensor<18xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x18xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<128x18xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x18xf32>, (tensor<128x18xf32>) -> (tensor<?x128xf32>)
  return %logits : tensor<?x128xf32>
}
}

// -----

// Fewer units of 32 than ranks: the unit is halved until there are enough, 64 columns over three ranks being 32, 16, 16.

// CHECK: llm.gated_act {{.*}}dist.out = [#dist.tiles<dim = 1, offsets = [0, 32, 48], sizes = [32, 16, 16]>]
module attributes {dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x96xf32> {
  %table = llm.weight "table" : tensor<96x6xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<96x6xf32> -> tensor<?x6xf32>
  %n0 = llm.weight "l0.norm" : tensor<6xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<6xf32>
  %wq0 = llm.weight "l0.q" : tensor<6x6xf32>
  %wk0 = llm.weight "l0.k" : tensor<6x6xf32>
  %wv0 = llm.weight "l0.v" : tensor<6x6xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 3 : i64, kv_heads = 3 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<?x6xf32> -> tensor<?x6xf32>
  %wo0 = llm.weight "l0.o" : tensor<6x6xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<6x6xf32>) -> (tensor<?x6xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<6xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<6xf32>
  %wg0 = llm.weight "l0.gate" : tensor<64x6xf32>
  %wu0 = llm.weight "l0.up" : tensor<64x6xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<64x6xf32>, tensor<64x6xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" : tensor<6x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<6x64xf32>) -> (tensor<?x6xf32>)
  %nf = llm.weight "norm" : tensor<6xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x6xf32>, tensor<6xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x6xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<96x6xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x6xf32>, (tensor<96x6xf32>) -> (tensor<?x96xf32>)
  return %logits : tensor<?x96xf32>
}
}

// -----

// One rank: tiles that are the whole.

// CHECK: llm.attention {{.*}}dist.out = [#dist.tiles<dim = 1, offsets = [0], sizes = [4]>]
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" : tensor<64x4xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x4xf32> -> tensor<?x4xf32>
  %n0 = llm.weight "l0.norm" : tensor<4xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wq0 = llm.weight "l0.q" : tensor<4x4xf32>
  %wk0 = llm.weight "l0.k" : tensor<2x4xf32>
  %wv0 = llm.weight "l0.v" : tensor<2x4xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<?x2xf32> -> tensor<?x4xf32>
  %wo0 = llm.weight "l0.o" : tensor<4x4xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>) -> (tensor<?x4xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<4xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wg0 = llm.weight "l0.gate" : tensor<64x4xf32>
  %wu0 = llm.weight "l0.up" : tensor<64x4xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x4xf32>, (tensor<64x4xf32>, tensor<64x4xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" : tensor<4x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<4x64xf32>) -> (tensor<?x4xf32>)
  %nf = llm.weight "norm" : tensor<4xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x4xf32>, tensor<4xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x4xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<64x4xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x4xf32>, (tensor<64x4xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}

// -----

// What cannot be shared

// expected-error@+1 {{has no dist.mesh: run dist-assign-mesh first}}
module {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" : tensor<64x16xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x16xf32> -> tensor<?x16xf32>
  %n0 = llm.weight "l0.norm" : tensor<16xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq0 = llm.weight "l0.q" : tensor<16x16xf32>
  %wk0 = llm.weight "l0.k" : tensor<8x16xf32>
  %wv0 = llm.weight "l0.v" : tensor<8x16xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo0 = llm.weight "l0.o" : tensor<16x16xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<16xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg0 = llm.weight "l0.gate" : tensor<64x16xf32>
  %wu0 = llm.weight "l0.up" : tensor<64x16xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" : tensor<16x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<64x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}

// -----

// expected-error@+1 {{2 query heads cannot be spread over 3 ranks: lower --tp}}
module attributes {dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" : tensor<64x16xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x16xf32> -> tensor<?x16xf32>
  %n0 = llm.weight "l0.norm" : tensor<16xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq0 = llm.weight "l0.q" : tensor<16x16xf32>
  %wk0 = llm.weight "l0.k" : tensor<8x16xf32>
  %wv0 = llm.weight "l0.v" : tensor<8x16xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo0 = llm.weight "l0.o" : tensor<16x16xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<16xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg0 = llm.weight "l0.gate" : tensor<64x16xf32>
  %wu0 = llm.weight "l0.up" : tensor<64x16xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" : tensor<16x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<64x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x96xf32> {
  %table = llm.weight "table" : tensor<96x6xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<96x6xf32> -> tensor<?x6xf32>
  %n0 = llm.weight "l0.norm" : tensor<6xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<6xf32>
  %wq0 = llm.weight "l0.q" : tensor<6x6xf32>
  %wk0 = llm.weight "l0.k" : tensor<6x6xf32>
  %wv0 = llm.weight "l0.v" : tensor<6x6xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 3 : i64, kv_heads = 3 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<?x6xf32> -> tensor<?x6xf32>
  %wo0 = llm.weight "l0.o" : tensor<6x6xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<6x6xf32>) -> (tensor<?x6xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<6xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<6xf32>
  %wg0 = llm.weight "l0.gate" : tensor<2x6xf32>
  %wu0 = llm.weight "l0.up" : tensor<2x6xf32>
  // expected-error@+1 {{2 columns cannot be spread over 3 ranks: lower --tp}}
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<2x6xf32>, tensor<2x6xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x2xf32>
  %wd0 = llm.weight "l0.down" : tensor<6x2xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x2xf32>, (tensor<6x2xf32>) -> (tensor<?x6xf32>)
  %nf = llm.weight "norm" : tensor<6xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x6xf32>, tensor<6xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x6xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<96x6xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x6xf32>, (tensor<96x6xf32>) -> (tensor<?x96xf32>)
  return %logits : tensor<?x96xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 3, pp = 1, devices = [0, 1, 2]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x2xf32> {
  %table = llm.weight "table" : tensor<2x6xf32>
  // expected-error@+1 {{2 rows of vocabulary cannot be spread over 3 ranks: lower --tp}}
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<2x6xf32> -> tensor<?x6xf32>
  %n0 = llm.weight "l0.norm" : tensor<6xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<6xf32>
  %wq0 = llm.weight "l0.q" : tensor<6x6xf32>
  %wk0 = llm.weight "l0.k" : tensor<6x6xf32>
  %wv0 = llm.weight "l0.v" : tensor<6x6xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x6xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 2 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 3 : i64, kv_heads = 3 : i64, head_dim = 2 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<?x6xf32> -> tensor<?x6xf32>
  %wo0 = llm.weight "l0.o" : tensor<6x6xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<6x6xf32>) -> (tensor<?x6xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<6xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x6xf32>, tensor<6xf32>
  %wg0 = llm.weight "l0.gate" : tensor<96x6xf32>
  %wu0 = llm.weight "l0.up" : tensor<96x6xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x6xf32>, (tensor<96x6xf32>, tensor<96x6xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x96xf32>
  %wd0 = llm.weight "l0.down" : tensor<6x96xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x96xf32>, (tensor<6x96xf32>) -> (tensor<?x6xf32>)
  %nf = llm.weight "norm" : tensor<6xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x6xf32>, tensor<6xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x6xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<2x6xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x6xf32>, (tensor<2x6xf32>) -> (tensor<?x2xf32>)
  return %logits : tensor<?x2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" : tensor<64x16xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x16xf32> -> tensor<?x16xf32>
  %n0 = llm.weight "l0.norm" : tensor<16xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq0 = llm.weight "l0.q" : tensor<16x16xf32>
  %wk0 = llm.weight "l0.k" : tensor<8x16xf32>
  %wv0 = llm.weight "l0.v" : tensor<8x16xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo0 = llm.weight "l0.o" : tensor<16x16xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<16xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg0 = llm.weight "l0.gate" : tensor<64x16xf32>
  %wu0 = llm.weight "l0.up" : tensor<64x16xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" : tensor<16x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s0, %d0, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  // expected-error@+1 {{cannot be spread over ranks: no rule for this op}}
  %sum = dist.all_reduce %yf : tensor<?x16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<64x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}
