// RUN: %opt %s --dist-assign-shardings --dist-insert-collectives --dist-simplify-collectives --dist-split-stages --split-input-file | FileCheck %s

// Where the layers are cut, and what crosses.

// Two layers on two stages. The addition that layer 1's norm was fused with is made, and sent, by stage 0; the norm stands on
// stage 1. Final norm and logits belong to the last stage, where nothing need be taken apart. Positions and rows are at hand
// everywhere.

// CHECK-LABEL: func.func @forward
// CHECK: llm.embedding {{.*}}dist.stage = 0 : i64
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64
// CHECK: llm.gated_act
// CHECK: %[[DOWN:.*]] = dist.all_reduce {{.*}} {dist.stage = 0 : i64, llm.layer = 0 : i32}
// CHECK: %[[S:.*]] = llm.add %{{.*}}, %[[DOWN]] {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 0 : i64, llm.layer = 0 : i32}
// CHECK-NEXT: %[[X:.*]] = dist.transfer %[[S]] {from = 0 : i64, llm.layer = 0 : i32, to = 1 : i64}
// CHECK-NEXT: llm.rms_norm %[[X]], {{.*}}dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], dist.stage = 1 : i64, {{.*}}llm.layer = 1 : i32
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64
// CHECK: llm.add_rms_norm %[[X]], {{.*}}dist.stage = 1 : i64
// CHECK: llm.add_rms_norm {{.*}}dist.stage = 1 : i64, eps = {{[^,]*}}}
// CHECK-NEXT: llm.select_rows
// CHECK: dist.gather {{.*}}dist.stage = 1 : i64
// CHECK-NOT: dist.transfer
// CHECK: return {{.*}}dist.stage = 1 : i64
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 1, 2, 3]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" : tensor<64x8xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x8xf32> -> tensor<?x8xf32>
  %n0 = llm.weight "l0.norm" : tensor<8xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wq0 = llm.weight "l0.q" : tensor<8x8xf32>
  %wk0 = llm.weight "l0.k" : tensor<8x8xf32>
  %wv0 = llm.weight "l0.v" : tensor<8x8xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %wo0 = llm.weight "l0.o" : tensor<8x8xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>) -> (tensor<?x8xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<8xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wg0 = llm.weight "l0.gate" : tensor<32x8xf32>
  %wu0 = llm.weight "l0.up" : tensor<32x8xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x32xf32>
  %wd0 = llm.weight "l0.down" : tensor<8x32xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %n1 = llm.weight "l1.norm" : tensor<8xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wq1 = llm.weight "l1.q" : tensor<8x8xf32>
  %wk1 = llm.weight "l1.k" : tensor<8x8xf32>
  %wv1 = llm.weight "l1.v" : tensor<8x8xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %wo1 = llm.weight "l1.o" : tensor<8x8xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<8x8xf32>) -> (tensor<?x8xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<8xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %wg1 = llm.weight "l1.gate" : tensor<32x8xf32>
  %wu1 = llm.weight "l1.up" : tensor<32x8xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<32x8xf32>, tensor<32x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x32xf32>
  %wd1 = llm.weight "l1.down" : tensor<8x32xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %nf = llm.weight "norm" : tensor<8xf32>
  %rf, %yf = llm.add_rms_norm %s1, %d1, %nf {eps = 1.0e-5 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x8xf32>, tensor<?xi32>
  %logits = llm.linear %sel weights(%table) : tensor<?x8xf32>, (tensor<64x8xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}

// -----

// Embedding and lm_head count: of four layers over three stages the middle one, which has neither, gets two.

// CHECK-LABEL: func.func @forward
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64, {{.*}} layer = 0 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 1 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 2 : i64
// CHECK: llm.attention {{.*}}dist.stage = 2 : i64, {{.*}} layer = 3 : i64
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 3, devices = [0, 1, 2]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x256xf32> {
  %table = llm.weight "table" : tensor<256x4xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<256x4xf32> -> tensor<?x4xf32>
  %n0 = llm.weight "l0.norm" : tensor<4xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wq0 = llm.weight "l0.q" : tensor<4x4xf32>
  %wk0 = llm.weight "l0.k" : tensor<4x4xf32>
  %wv0 = llm.weight "l0.v" : tensor<4x4xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %wo0 = llm.weight "l0.o" : tensor<4x4xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>) -> (tensor<?x4xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<4xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wg0 = llm.weight "l0.gate" : tensor<8x4xf32>
  %wu0 = llm.weight "l0.up" : tensor<8x4xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x4xf32>, (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  %wd0 = llm.weight "l0.down" : tensor<4x8xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x8xf32>, (tensor<4x8xf32>) -> (tensor<?x4xf32>)
  %n1 = llm.weight "l1.norm" : tensor<4xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wq1 = llm.weight "l1.q" : tensor<4x4xf32>
  %wk1 = llm.weight "l1.k" : tensor<4x4xf32>
  %wv1 = llm.weight "l1.v" : tensor<4x4xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %wo1 = llm.weight "l1.o" : tensor<4x4xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>) -> (tensor<?x4xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<4xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wg1 = llm.weight "l1.gate" : tensor<8x4xf32>
  %wu1 = llm.weight "l1.up" : tensor<8x4xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x4xf32>, (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x8xf32>
  %wd1 = llm.weight "l1.down" : tensor<4x8xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x8xf32>, (tensor<4x8xf32>) -> (tensor<?x4xf32>)
  %n2 = llm.weight "l2.norm" : tensor<4xf32>
  %r2, %y2 = llm.add_rms_norm %s1, %d1, %n2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wq2 = llm.weight "l2.q" : tensor<4x4xf32>
  %wk2 = llm.weight "l2.k" : tensor<4x4xf32>
  %wv2 = llm.weight "l2.v" : tensor<4x4xf32>
  %q2, %k2, %v2 = llm.linear %y2 weights(%wq2, %wk2, %wv2) {llm.layer = 2 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  %qr2, %kr2 = llm.rope %q2, %k2, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 2 : i32} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi32>
  %a2 = llm.attention %qr2, %kr2, %v2 {layer = 2 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 2 : i32} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %wo2 = llm.weight "l2.o" : tensor<4x4xf32>
  %o2 = llm.linear %a2 weights(%wo2) {llm.layer = 2 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>) -> (tensor<?x4xf32>)
  %m2 = llm.weight "l2.ffn_norm" : tensor<4xf32>
  %s2, %z2 = llm.add_rms_norm %r2, %o2, %m2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wg2 = llm.weight "l2.gate" : tensor<8x4xf32>
  %wu2 = llm.weight "l2.up" : tensor<8x4xf32>
  %g2, %u2 = llm.linear %z2 weights(%wg2, %wu2) {llm.layer = 2 : i32} : tensor<?x4xf32>, (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %h2 = llm.gated_act %g2, %u2 {act = #llm.act<silu>, llm.layer = 2 : i32} : tensor<?x8xf32>
  %wd2 = llm.weight "l2.down" : tensor<4x8xf32>
  %d2 = llm.linear %h2 weights(%wd2) {llm.layer = 2 : i32} : tensor<?x8xf32>, (tensor<4x8xf32>) -> (tensor<?x4xf32>)
  %n3 = llm.weight "l3.norm" : tensor<4xf32>
  %r3, %y3 = llm.add_rms_norm %s2, %d2, %n3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wq3 = llm.weight "l3.q" : tensor<4x4xf32>
  %wk3 = llm.weight "l3.k" : tensor<4x4xf32>
  %wv3 = llm.weight "l3.v" : tensor<4x4xf32>
  %q3, %k3, %v3 = llm.linear %y3 weights(%wq3, %wk3, %wv3) {llm.layer = 3 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
  %qr3, %kr3 = llm.rope %q3, %k3, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 3 : i32} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi32>
  %a3 = llm.attention %qr3, %kr3, %v3 {layer = 3 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 3 : i32} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %wo3 = llm.weight "l3.o" : tensor<4x4xf32>
  %o3 = llm.linear %a3 weights(%wo3) {llm.layer = 3 : i32} : tensor<?x4xf32>, (tensor<4x4xf32>) -> (tensor<?x4xf32>)
  %m3 = llm.weight "l3.ffn_norm" : tensor<4xf32>
  %s3, %z3 = llm.add_rms_norm %r3, %o3, %m3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x4xf32>, tensor<4xf32>
  %wg3 = llm.weight "l3.gate" : tensor<8x4xf32>
  %wu3 = llm.weight "l3.up" : tensor<8x4xf32>
  %g3, %u3 = llm.linear %z3 weights(%wg3, %wu3) {llm.layer = 3 : i32} : tensor<?x4xf32>, (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  %h3 = llm.gated_act %g3, %u3 {act = #llm.act<silu>, llm.layer = 3 : i32} : tensor<?x8xf32>
  %wd3 = llm.weight "l3.down" : tensor<4x8xf32>
  %d3 = llm.linear %h3 weights(%wd3) {llm.layer = 3 : i32} : tensor<?x8xf32>, (tensor<4x8xf32>) -> (tensor<?x4xf32>)
  %nf = llm.weight "norm" : tensor<4xf32>
  %rf, %yf = llm.add_rms_norm %s3, %d3, %nf {eps = 1.0e-5 : f32} : tensor<?x4xf32>, tensor<4xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x4xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<256x4xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x4xf32>, (tensor<256x4xf32>) -> (tensor<?x256xf32>)
  return %logits : tensor<?x256xf32>
}
}

// -----

// A device with three times the bandwidth gets three times the layers.

// CHECK-LABEL: func.func @forward
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64, {{.*}} layer = 0 : i64
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64, {{.*}} layer = 1 : i64
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64, {{.*}} layer = 2 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 3 : i64
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 3.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %table = llm.weight "table" : tensor<8x32xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x32xf32> -> tensor<?x32xf32>
  %n0 = llm.weight "l0.norm" : tensor<32xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq0 = llm.weight "l0.q" : tensor<32x32xf32>
  %wk0 = llm.weight "l0.k" : tensor<32x32xf32>
  %wv0 = llm.weight "l0.v" : tensor<32x32xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo0 = llm.weight "l0.o" : tensor<32x32xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<32xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg0 = llm.weight "l0.gate" : tensor<128x32xf32>
  %wu0 = llm.weight "l0.up" : tensor<128x32xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x128xf32>
  %wd0 = llm.weight "l0.down" : tensor<32x128xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n1 = llm.weight "l1.norm" : tensor<32xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq1 = llm.weight "l1.q" : tensor<32x32xf32>
  %wk1 = llm.weight "l1.k" : tensor<32x32xf32>
  %wv1 = llm.weight "l1.v" : tensor<32x32xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo1 = llm.weight "l1.o" : tensor<32x32xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<32xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg1 = llm.weight "l1.gate" : tensor<128x32xf32>
  %wu1 = llm.weight "l1.up" : tensor<128x32xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x128xf32>
  %wd1 = llm.weight "l1.down" : tensor<32x128xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n2 = llm.weight "l2.norm" : tensor<32xf32>
  %r2, %y2 = llm.add_rms_norm %s1, %d1, %n2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq2 = llm.weight "l2.q" : tensor<32x32xf32>
  %wk2 = llm.weight "l2.k" : tensor<32x32xf32>
  %wv2 = llm.weight "l2.v" : tensor<32x32xf32>
  %q2, %k2, %v2 = llm.linear %y2 weights(%wq2, %wk2, %wv2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr2, %kr2 = llm.rope %q2, %k2, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a2 = llm.attention %qr2, %kr2, %v2 {layer = 2 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo2 = llm.weight "l2.o" : tensor<32x32xf32>
  %o2 = llm.linear %a2 weights(%wo2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m2 = llm.weight "l2.ffn_norm" : tensor<32xf32>
  %s2, %z2 = llm.add_rms_norm %r2, %o2, %m2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg2 = llm.weight "l2.gate" : tensor<128x32xf32>
  %wu2 = llm.weight "l2.up" : tensor<128x32xf32>
  %g2, %u2 = llm.linear %z2 weights(%wg2, %wu2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h2 = llm.gated_act %g2, %u2 {act = #llm.act<silu>, llm.layer = 2 : i32} : tensor<?x128xf32>
  %wd2 = llm.weight "l2.down" : tensor<32x128xf32>
  %d2 = llm.linear %h2 weights(%wd2) {llm.layer = 2 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n3 = llm.weight "l3.norm" : tensor<32xf32>
  %r3, %y3 = llm.add_rms_norm %s2, %d2, %n3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq3 = llm.weight "l3.q" : tensor<32x32xf32>
  %wk3 = llm.weight "l3.k" : tensor<32x32xf32>
  %wv3 = llm.weight "l3.v" : tensor<32x32xf32>
  %q3, %k3, %v3 = llm.linear %y3 weights(%wq3, %wk3, %wv3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr3, %kr3 = llm.rope %q3, %k3, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a3 = llm.attention %qr3, %kr3, %v3 {layer = 3 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo3 = llm.weight "l3.o" : tensor<32x32xf32>
  %o3 = llm.linear %a3 weights(%wo3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m3 = llm.weight "l3.ffn_norm" : tensor<32xf32>
  %s3, %z3 = llm.add_rms_norm %r3, %o3, %m3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg3 = llm.weight "l3.gate" : tensor<128x32xf32>
  %wu3 = llm.weight "l3.up" : tensor<128x32xf32>
  %g3, %u3 = llm.linear %z3 weights(%wg3, %wu3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h3 = llm.gated_act %g3, %u3 {act = #llm.act<silu>, llm.layer = 3 : i32} : tensor<?x128xf32>
  %wd3 = llm.weight "l3.down" : tensor<32x128xf32>
  %d3 = llm.linear %h3 weights(%wd3) {llm.layer = 3 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %nf = llm.weight "norm" : tensor<32xf32>
  %rf, %yf = llm.add_rms_norm %s3, %d3, %nf {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x32xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<8x32xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  return %logits : tensor<?x8xf32>
}
}

// -----

// Ranks may sit on any devices: here stage 0 on the slow one.

// CHECK-LABEL: func.func @forward
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64, {{.*}} layer = 0 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 1 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 2 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 3 : i64
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 3.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [1, 0]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %table = llm.weight "table" : tensor<8x32xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x32xf32> -> tensor<?x32xf32>
  %n0 = llm.weight "l0.norm" : tensor<32xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq0 = llm.weight "l0.q" : tensor<32x32xf32>
  %wk0 = llm.weight "l0.k" : tensor<32x32xf32>
  %wv0 = llm.weight "l0.v" : tensor<32x32xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo0 = llm.weight "l0.o" : tensor<32x32xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<32xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg0 = llm.weight "l0.gate" : tensor<128x32xf32>
  %wu0 = llm.weight "l0.up" : tensor<128x32xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x128xf32>
  %wd0 = llm.weight "l0.down" : tensor<32x128xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n1 = llm.weight "l1.norm" : tensor<32xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq1 = llm.weight "l1.q" : tensor<32x32xf32>
  %wk1 = llm.weight "l1.k" : tensor<32x32xf32>
  %wv1 = llm.weight "l1.v" : tensor<32x32xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo1 = llm.weight "l1.o" : tensor<32x32xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<32xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg1 = llm.weight "l1.gate" : tensor<128x32xf32>
  %wu1 = llm.weight "l1.up" : tensor<128x32xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x128xf32>
  %wd1 = llm.weight "l1.down" : tensor<32x128xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n2 = llm.weight "l2.norm" : tensor<32xf32>
  %r2, %y2 = llm.add_rms_norm %s1, %d1, %n2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq2 = llm.weight "l2.q" : tensor<32x32xf32>
  %wk2 = llm.weight "l2.k" : tensor<32x32xf32>
  %wv2 = llm.weight "l2.v" : tensor<32x32xf32>
  %q2, %k2, %v2 = llm.linear %y2 weights(%wq2, %wk2, %wv2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr2, %kr2 = llm.rope %q2, %k2, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a2 = llm.attention %qr2, %kr2, %v2 {layer = 2 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo2 = llm.weight "l2.o" : tensor<32x32xf32>
  %o2 = llm.linear %a2 weights(%wo2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m2 = llm.weight "l2.ffn_norm" : tensor<32xf32>
  %s2, %z2 = llm.add_rms_norm %r2, %o2, %m2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg2 = llm.weight "l2.gate" : tensor<128x32xf32>
  %wu2 = llm.weight "l2.up" : tensor<128x32xf32>
  %g2, %u2 = llm.linear %z2 weights(%wg2, %wu2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h2 = llm.gated_act %g2, %u2 {act = #llm.act<silu>, llm.layer = 2 : i32} : tensor<?x128xf32>
  %wd2 = llm.weight "l2.down" : tensor<32x128xf32>
  %d2 = llm.linear %h2 weights(%wd2) {llm.layer = 2 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n3 = llm.weight "l3.norm" : tensor<32xf32>
  %r3, %y3 = llm.add_rms_norm %s2, %d2, %n3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq3 = llm.weight "l3.q" : tensor<32x32xf32>
  %wk3 = llm.weight "l3.k" : tensor<32x32xf32>
  %wv3 = llm.weight "l3.v" : tensor<32x32xf32>
  %q3, %k3, %v3 = llm.linear %y3 weights(%wq3, %wk3, %wv3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr3, %kr3 = llm.rope %q3, %k3, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a3 = llm.attention %qr3, %kr3, %v3 {layer = 3 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo3 = llm.weight "l3.o" : tensor<32x32xf32>
  %o3 = llm.linear %a3 weights(%wo3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m3 = llm.weight "l3.ffn_norm" : tensor<32xf32>
  %s3, %z3 = llm.add_rms_norm %r3, %o3, %m3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg3 = llm.weight "l3.gate" : tensor<128x32xf32>
  %wu3 = llm.weight "l3.up" : tensor<128x32xf32>
  %g3, %u3 = llm.linear %z3 weights(%wg3, %wu3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h3 = llm.gated_act %g3, %u3 {act = #llm.act<silu>, llm.layer = 3 : i32} : tensor<?x128xf32>
  %wd3 = llm.weight "l3.down" : tensor<32x128xf32>
  %d3 = llm.linear %h3 weights(%wd3) {llm.layer = 3 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %nf = llm.weight "norm" : tensor<32xf32>
  %rf, %yf = llm.add_rms_norm %s3, %d3, %nf {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x32xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<8x32xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  return %logits : tensor<?x8xf32>
}
}

// -----

// A layer has 65792 bytes, and device 0, after what is reserved, room for one: it gets one, though two would be faster.

// CHECK-LABEL: func.func @forward
// CHECK: llm.attention {{.*}}dist.stage = 0 : i64, {{.*}} layer = 0 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 1 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 2 : i64
// CHECK: llm.attention {{.*}}dist.stage = 1 : i64, {{.*}} layer = 3 : i64
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 139584, reserved = 65792, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %table = llm.weight "table" : tensor<8x32xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x32xf32> -> tensor<?x32xf32>
  %n0 = llm.weight "l0.norm" : tensor<32xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq0 = llm.weight "l0.q" : tensor<32x32xf32>
  %wk0 = llm.weight "l0.k" : tensor<32x32xf32>
  %wv0 = llm.weight "l0.v" : tensor<32x32xf32>
  %q0, %k0, %v0 = llm.linear %y0 weights(%wq0, %wk0, %wv0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr0, %kr0 = llm.rope %q0, %k0, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo0 = llm.weight "l0.o" : tensor<32x32xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m0 = llm.weight "l0.ffn_norm" : tensor<32xf32>
  %s0, %z0 = llm.add_rms_norm %x0, %o0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg0 = llm.weight "l0.gate" : tensor<128x32xf32>
  %wu0 = llm.weight "l0.up" : tensor<128x32xf32>
  %g0, %u0 = llm.linear %z0 weights(%wg0, %wu0) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x128xf32>
  %wd0 = llm.weight "l0.down" : tensor<32x128xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n1 = llm.weight "l1.norm" : tensor<32xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq1 = llm.weight "l1.q" : tensor<32x32xf32>
  %wk1 = llm.weight "l1.k" : tensor<32x32xf32>
  %wv1 = llm.weight "l1.v" : tensor<32x32xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo1 = llm.weight "l1.o" : tensor<32x32xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<32xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg1 = llm.weight "l1.gate" : tensor<128x32xf32>
  %wu1 = llm.weight "l1.up" : tensor<128x32xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x128xf32>
  %wd1 = llm.weight "l1.down" : tensor<32x128xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n2 = llm.weight "l2.norm" : tensor<32xf32>
  %r2, %y2 = llm.add_rms_norm %s1, %d1, %n2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq2 = llm.weight "l2.q" : tensor<32x32xf32>
  %wk2 = llm.weight "l2.k" : tensor<32x32xf32>
  %wv2 = llm.weight "l2.v" : tensor<32x32xf32>
  %q2, %k2, %v2 = llm.linear %y2 weights(%wq2, %wk2, %wv2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr2, %kr2 = llm.rope %q2, %k2, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a2 = llm.attention %qr2, %kr2, %v2 {layer = 2 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo2 = llm.weight "l2.o" : tensor<32x32xf32>
  %o2 = llm.linear %a2 weights(%wo2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m2 = llm.weight "l2.ffn_norm" : tensor<32xf32>
  %s2, %z2 = llm.add_rms_norm %r2, %o2, %m2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg2 = llm.weight "l2.gate" : tensor<128x32xf32>
  %wu2 = llm.weight "l2.up" : tensor<128x32xf32>
  %g2, %u2 = llm.linear %z2 weights(%wg2, %wu2) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h2 = llm.gated_act %g2, %u2 {act = #llm.act<silu>, llm.layer = 2 : i32} : tensor<?x128xf32>
  %wd2 = llm.weight "l2.down" : tensor<32x128xf32>
  %d2 = llm.linear %h2 weights(%wd2) {llm.layer = 2 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %n3 = llm.weight "l3.norm" : tensor<32xf32>
  %r3, %y3 = llm.add_rms_norm %s2, %d2, %n3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq3 = llm.weight "l3.q" : tensor<32x32xf32>
  %wk3 = llm.weight "l3.k" : tensor<32x32xf32>
  %wv3 = llm.weight "l3.v" : tensor<32x32xf32>
  %q3, %k3, %v3 = llm.linear %y3 weights(%wq3, %wk3, %wv3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>)
  %qr3, %kr3 = llm.rope %q3, %k3, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?xi32>
  %a3 = llm.attention %qr3, %kr3, %v3 {layer = 3 : i64, q_heads = 8 : i64, kv_heads = 8 : i64, head_dim = 4 : i64, scale = 0.5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  %wo3 = llm.weight "l3.o" : tensor<32x32xf32>
  %o3 = llm.linear %a3 weights(%wo3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<32x32xf32>) -> (tensor<?x32xf32>)
  %m3 = llm.weight "l3.ffn_norm" : tensor<32xf32>
  %s3, %z3 = llm.add_rms_norm %r3, %o3, %m3 {eps = 1.0e-5 : f32, llm.layer = 3 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wg3 = llm.weight "l3.gate" : tensor<128x32xf32>
  %wu3 = llm.weight "l3.up" : tensor<128x32xf32>
  %g3, %u3 = llm.linear %z3 weights(%wg3, %wu3) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<128x32xf32>, tensor<128x32xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>)
  %h3 = llm.gated_act %g3, %u3 {act = #llm.act<silu>, llm.layer = 3 : i32} : tensor<?x128xf32>
  %wd3 = llm.weight "l3.down" : tensor<32x128xf32>
  %d3 = llm.linear %h3 weights(%wd3) {llm.layer = 3 : i32} : tensor<?x128xf32>, (tensor<32x128xf32>) -> (tensor<?x32xf32>)
  %nf = llm.weight "norm" : tensor<32xf32>
  %rf, %yf = llm.add_rms_norm %s3, %d3, %nf {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x32xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<8x32xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  return %logits : tensor<?x8xf32>
}
}

// -----

// A value that two later stages read crosses to each, from where it was made.

// CHECK-LABEL: func.func @forward
// CHECK: %[[X:.*]] = llm.embedding
// CHECK: %[[R:.*]] = dist.all_reduce %[[X]]
// CHECK-DAG: %[[ONE:.*]] = dist.transfer %[[R]] {from = 0 : i64, to = 1 : i64}
// CHECK-DAG: %[[TWO:.*]] = dist.transfer %[[R]] {from = 0 : i64, to = 2 : i64}
// CHECK: llm.add_rms_norm %[[ONE]], {{.*}}dist.stage = 1 : i64
// CHECK: llm.add_rms_norm %[[TWO]], {{.*}}dist.stage = 2 : i64
// CHECK: llm.add_rms_norm {{.*}}dist.stage = 2 : i64
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d4", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d5", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 2, pp = 3, devices = [0, 1, 2, 3, 4, 5]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
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
  %n1 = llm.weight "l1.norm" : tensor<16xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq1 = llm.weight "l1.q" : tensor<16x16xf32>
  %wk1 = llm.weight "l1.k" : tensor<8x16xf32>
  %wv1 = llm.weight "l1.v" : tensor<8x16xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo1 = llm.weight "l1.o" : tensor<16x16xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<16xf32>
  %s1, %z1 = llm.add_rms_norm %x0, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg1 = llm.weight "l1.gate" : tensor<64x16xf32>
  %wu1 = llm.weight "l1.up" : tensor<64x16xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x64xf32>
  %wd1 = llm.weight "l1.down" : tensor<16x64xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %n2 = llm.weight "l2.norm" : tensor<16xf32>
  %r2, %y2 = llm.add_rms_norm %s1, %d1, %n2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq2 = llm.weight "l2.q" : tensor<16x16xf32>
  %wk2 = llm.weight "l2.k" : tensor<8x16xf32>
  %wv2 = llm.weight "l2.v" : tensor<8x16xf32>
  %q2, %k2, %v2 = llm.linear %y2 weights(%wq2, %wk2, %wv2) {llm.layer = 2 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr2, %kr2 = llm.rope %q2, %k2, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 2 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a2 = llm.attention %qr2, %kr2, %v2 {layer = 2 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 2 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo2 = llm.weight "l2.o" : tensor<16x16xf32>
  %o2 = llm.linear %a2 weights(%wo2) {llm.layer = 2 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m2 = llm.weight "l2.ffn_norm" : tensor<16xf32>
  %s2, %z2 = llm.add_rms_norm %x0, %o2, %m2 {eps = 1.0e-5 : f32, llm.layer = 2 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg2 = llm.weight "l2.gate" : tensor<64x16xf32>
  %wu2 = llm.weight "l2.up" : tensor<64x16xf32>
  %g2, %u2 = llm.linear %z2 weights(%wg2, %wu2) {llm.layer = 2 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h2 = llm.gated_act %g2, %u2 {act = #llm.act<silu>, llm.layer = 2 : i32} : tensor<?x64xf32>
  %wd2 = llm.weight "l2.down" : tensor<16x64xf32>
  %d2 = llm.linear %h2 weights(%wd2) {llm.layer = 2 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s2, %d2, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<64x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}

// -----

// One stage: nothing to cut.

// CHECK-LABEL: func.func @forward
// CHECK-NOT: dist.transfer
// CHECK-NOT: dist.stage = 1
// CHECK: llm.add_rms_norm {{.*}}dist.stage = 0 : i64, {{.*}}llm.layer = 1 : i32
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
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
  %n1 = llm.weight "l1.norm" : tensor<16xf32>
  %r1, %y1 = llm.add_rms_norm %s0, %d0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq1 = llm.weight "l1.q" : tensor<16x16xf32>
  %wk1 = llm.weight "l1.k" : tensor<8x16xf32>
  %wv1 = llm.weight "l1.v" : tensor<8x16xf32>
  %q1, %k1, %v1 = llm.linear %y1 weights(%wq1, %wk1, %wv1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  %qr1, %kr1 = llm.rope %q1, %k1, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo1 = llm.weight "l1.o" : tensor<16x16xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %m1 = llm.weight "l1.ffn_norm" : tensor<16xf32>
  %s1, %z1 = llm.add_rms_norm %r1, %o1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg1 = llm.weight "l1.gate" : tensor<64x16xf32>
  %wu1 = llm.weight "l1.up" : tensor<64x16xf32>
  %g1, %u1 = llm.linear %z1 weights(%wg1, %wu1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>, tensor<64x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x64xf32>
  %wd1 = llm.weight "l1.down" : tensor<16x64xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %nf = llm.weight "norm" : tensor<16xf32>
  %rf, %yf = llm.add_rms_norm %s1, %d1, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %head = llm.weight "lm_head" : tensor<64x16xf32>
  %logits = llm.linear %sel weights(%head) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}
