// RUN: %opt %s | %opt | FileCheck %s

// Every op and attribute of the llm dialect parses back what it prints, optional parts given and left out.

// CHECK: module attributes {llm.files = [{path = "model.safetensors", size = 4096 : i64}], llm.model = {hidden = 32 : i64}}
module attributes {llm.files = [{path = "model.safetensors", size = 4096 : i64}], llm.model = {hidden = 32 : i64}} {
// CHECK-LABEL: func.func @forward
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  // A tensor of a file, one without a file, one rank's boxes of a matrix and of a vector, and a weight of no tensor.
  // CHECK: llm.weight "t" {tensor = #llm.tensor<file = 0, offset = 64, bytes = 4096, dtype = "bf16", shape = [64, 32]>} : tensor<64x32xbf16>
  %t = llm.weight "t" {tensor = #llm.tensor<file = 0, offset = 64, bytes = 4096, dtype = "bf16", shape = [64, 32]>} : tensor<64x32xbf16>
  // CHECK: llm.weight "n" {llm.layer = 0 : i32, tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<32xf32>
  %n = llm.weight "n" {llm.layer = 0 : i32, tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<32xf32>
  // CHECK: llm.weight "q" {boxes = [#llm.box<row = 0, rows = 16, col = 0, cols = 32, replica = true>, #llm.box<row = 16, rows = 16, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = 0, offset = 0, bytes = 1152, dtype = "q4_1", shape = [48, 32]>} : tensor<32x32xf16>
  %wq = llm.weight "q" {boxes = [#llm.box<row = 0, rows = 16, col = 0, cols = 32, replica = true>, #llm.box<row = 16, rows = 16, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = 0, offset = 0, bytes = 1152, dtype = "q4_1", shape = [48, 32]>} : tensor<32x32xf16>
  // CHECK: llm.weight "qb" {boxes = [#llm.box<row = 0, rows = 1, col = 16, cols = 32, replica = false>]
  %bq = llm.weight "qb" {boxes = [#llm.box<row = 0, rows = 1, col = 16, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [48]>} : tensor<32xf32>
  // CHECK: llm.weight "k" : tensor<8x32xf32>
  %wk = llm.weight "k" : tensor<8x32xf32>
  %bk = llm.weight "kb" : tensor<8xf32>
  %hn = llm.weight "hn" : tensor<8xf32>
  %wg = llm.weight "g" : tensor<16x32xf32>
  %wd = llm.weight "d" : tensor<32x16xf32>

  // CHECK: llm.embedding %{{.*}}, %{{.*}} {scale = 2.000000e+00 : f32, vocab_begin = 64 : i64} : tensor<?xi32>, tensor<64x32xbf16> -> tensor<?x32xf32>
  %x0 = llm.embedding %ids, %t {vocab_begin = 64 : i64, scale = 2.0 : f32} : tensor<?xi32>, tensor<64x32xbf16> -> tensor<?x32xf32>
  // CHECK: llm.embedding %{{[^{]*}} : tensor<?xi32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<64x32xbf16> -> tensor<?x32xf32>
  // CHECK: llm.rms_norm %{{.*}}, %{{.*}} {eps = 9.99999974E-6 : f32, llm.layer = 0 : i32, weight_offset = 1.000000e+00 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %y = llm.rms_norm %x, %n {eps = 1.0e-5 : f32, weight_offset = 1.0 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  // CHECK: llm.linear %{{.*}} weights(%{{.*}}) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %v = llm.linear %y weights(%wk) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  // CHECK: %[[QK:.*]]:2 = llm.linear %{{.*}} weights(%{{.*}}, %{{.*}}) biases(%{{.*}}, %{{.*}}) : tensor<?x32xf32>, (tensor<32x32xf16>, tensor<8x32xf32>), (tensor<32xf32>, tensor<8xf32>) -> (tensor<?x32xf32>, tensor<?x8xf32>)
  %q, %k = llm.linear %y weights(%wq, %wk) biases(%bq, %bk) : tensor<?x32xf32>, (tensor<32x32xf16>, tensor<8x32xf32>), (tensor<32xf32>, tensor<8xf32>) -> (tensor<?x32xf32>, tensor<?x8xf32>)
  // CHECK: llm.head_norm %[[QK]]#0, %{{.*}} {eps = {{.*}} : f32, head_dim = 8 : i64} : tensor<?x32xf32>, tensor<8xf32>
  %qn = llm.head_norm %q, %hn {head_dim = 8 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>, tensor<8xf32>
  // CHECK: llm.rope %{{.*}}, %{{.*}}, %{{.*}} {head_dim = 8 : i64, inv_freq = array<f32: 1.000000e+00, 5.000000e-01>, rotary_dim = 4 : i64, style = #llm.rope_style<neox>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  %q1, %k1 = llm.rope %qn, %k, %positions {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  // CHECK: llm.rope %{{.*}}, %{{.*}}, %{{.*}} norms(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>) {attention_factor = 1.250000e+00 : f32
  // CHECK-SAME: style = #llm.rope_style<interleaved>
  %q2, %k2 = llm.rope %q1, %k1, %positions norms(%hn, %hn : tensor<8xf32>, tensor<8xf32>) {attention_factor = 1.25 : f32, eps = 1.0e-5 : f32, head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<interleaved>, inv_freq = array<f32: 1.0, 0.5>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  // CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} {head_dim = 8 : i64, kv_heads = 1 : i64, layer = 0 : i64, q_heads = 4 : i64, scale = 5.000000e-01 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  %a0 = llm.attention %q2, %k2, %v {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  // CHECK: llm.attention %{{.*}}, %{{.*}}, %{{.*}} {head_dim = 8 : i64, kv_head_ids = array<i64: 5>, kv_head_of_q = array<i64: 0, 0, 0, 0>, kv_heads = 1 : i64, layer = 1 : i64, q_heads = 4 : i64, scale = 5.000000e-01 : f32, softcap = 5.000000e+01 : f32, window = 16 : i64}
  %a = llm.attention %q2, %k2, %v {layer = 1 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, window = 16 : i64, softcap = 50.0 : f32, kv_head_of_q = array<i64: 0, 0, 0, 0>, kv_head_ids = array<i64: 5>} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  // CHECK: llm.add %{{.*}}, %{{.*}} {llm.layer = 0 : i32} : tensor<?x32xf32>
  %s0 = llm.add %x, %a {llm.layer = 0 : i32} : tensor<?x32xf32>
  // CHECK: %{{.*}}, %{{.*}} = llm.add_rms_norm %{{.*}}, %{{.*}}, %{{.*}} {eps = {{.*}} : f32} : tensor<?x32xf32>, tensor<32xf32>
  %s, %z = llm.add_rms_norm %s0, %a0, %n {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %g = llm.linear %z weights(%wg) : tensor<?x32xf32>, (tensor<16x32xf32>) -> (tensor<?x16xf32>)
  // CHECK: llm.gated_act %{{.*}}, %{{.*}} {act = #llm.act<silu>} : tensor<?x16xf32>
  %h0 = llm.gated_act %g, %g {act = #llm.act<silu>} : tensor<?x16xf32>
  // CHECK: llm.gated_act %{{.*}} {act = #llm.act<gelu_tanh>}
  %h1 = llm.gated_act %h0, %g {act = #llm.act<gelu_tanh>} : tensor<?x16xf32>
  // CHECK: llm.gated_act %{{.*}} {act = #llm.act<gelu>}
  %h = llm.gated_act %h1, %g {act = #llm.act<gelu>} : tensor<?x16xf32>
  %d = llm.linear %h weights(%wd) : tensor<?x16xf32>, (tensor<32x16xf32>) -> (tensor<?x32xf32>)
  // CHECK: llm.select_rows %{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<?xi32>
  %sel = llm.select_rows %d, %rows : tensor<?x32xf32>, tensor<?xi32>
  %l = llm.linear %sel weights(%t) : tensor<?x32xf32>, (tensor<64x32xbf16>) -> (tensor<?x64xf32>)
  return %l : tensor<?x64xf32>
}
}
