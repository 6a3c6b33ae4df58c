// RUN: %opt %s --convert-dist-to-exec | FileCheck %s

// A rank's function becomes a program: stacked weights and one buffer for a stacked product, sums and collectives in
// place, attention as an append and the attention proper.

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 5]>} {
// CHECK-LABEL: exec.program @rank1 attributes {device = 5 : i64, rank = 1 : i64, stage = 0 : i64, tp_index = 1 : i64}
func.func @rank1(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32>
    attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  // The table serves both ends; it is one weight.
  // CHECK: %[[TABLE:.*]] = exec.weight "table"
  // CHECK: %[[NORM:.*]] = exec.weight "n"
  // CHECK: %[[QKV:.*]] = exec.weight "layer.0.qkv"
  // CHECK-SAME: name = "q"{{.*}}dst_row = 0
  // CHECK-SAME: name = "k"{{.*}}dst_row = 16
  // CHECK-SAME: name = "v"{{.*}}dst_row = 24
  // CHECK-SAME: <32, 32, f32, row_major>
  // CHECK: exec.weight "o"
  // CHECK-NOT: exec.weight
  %t = llm.weight "table" {boxes = [#llm.box<row = 0, rows = 64, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 32]>} : tensor<64x32xf32>
  // CHECK: %[[X:.*]] = exec.buffer "residual" : <tokens, 32, f32>
  // CHECK: exec.embedding %[[TABLE]] into %[[X]]
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<64x32xf32> -> tensor<?x32xf32>
  %n = llm.weight "n" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<32xf32>
  // CHECK: %[[Y:.*]] = exec.buffer "layer.0.normed"
  // CHECK: exec.rms_norm %[[X]], %[[NORM]] into %[[Y]] {eps = {{.*}}, layer = 0 : i64}
  %y = llm.rms_norm %x, %n {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x32xf32>, tensor<32xf32>
  %wq = llm.weight "q" {boxes = [#llm.box<row = 16, rows = 16, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 32]>} : tensor<16x32xf32>
  %wk = llm.weight "k" {boxes = [#llm.box<row = 8, rows = 8, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 32]>} : tensor<8x32xf32>
  %wv = llm.weight "v" {boxes = [#llm.box<row = 8, rows = 8, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 32]>} : tensor<8x32xf32>
  // CHECK: %[[B:.*]] = exec.buffer "layer.0.qkv" : <tokens, 32, f32>
  // CHECK: exec.linear %[[Y]], %[[QKV]] into %[[B]]
  // CHECK: %[[Q:.*]] = exec.columns %[[B]] {begin = 0 : i64}
  // CHECK: %[[K:.*]] = exec.columns %[[B]] {begin = 16 : i64}
  // CHECK: %[[V:.*]] = exec.columns %[[B]] {begin = 24 : i64}
  %q, %k, %v = llm.linear %y weights(%wq, %wk, %wv) {llm.layer = 0 : i32} : tensor<?x32xf32>, (tensor<16x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) -> (tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
  // CHECK: exec.rope %[[Q]], %[[K]]
  %q1, %k1 = llm.rope %q, %k, %positions {llm.layer = 0 : i32, head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  // CHECK: exec.kv_append %[[K]], %[[V]] {head_dim = 8 : i64, kv_heads = 1 : i64, kv_layer = 0 : i64, layer = 0 : i64}
  // CHECK: %[[O:.*]] = exec.buffer "layer.0.attention"
  // CHECK: exec.attention %[[Q]] into %[[O]] {{.*}}kv_head_of_q = array<i64: 0, 0>
  %o = llm.attention %q1, %k1, %v {llm.layer = 0 : i32, layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo = llm.weight "o" {boxes = [#llm.box<row = 0, rows = 32, col = 16, cols = 16, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32, 32]>} : tensor<32x16xf32>
  // CHECK: exec.linear %[[O]], %{{.*}} into %[[A:[0-9]+]]
  %a = llm.linear %o weights(%wo) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<32x16xf32>) -> (tensor<?x32xf32>)
  // CHECK: exec.all_reduce %[[A]] {group = array<i64: 0, 1>, layer = 0 : i64, seq = 1 : i64}
  %r = dist.all_reduce %a {llm.layer = 0 : i32, group = array<i64: 0, 1>, seq = 1 : i64} : tensor<?x32xf32>
  // CHECK: exec.add_rms_norm %[[X]], %[[A]], %[[NORM]] into %[[Z:[0-9]+]]
  %s, %z = llm.add_rms_norm %x, %r, %n {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  // CHECK: %[[SEL:.*]] = exec.buffer "selected" : <logits, 32, f32>
  // CHECK: exec.select_rows %[[Z]] into %[[SEL]]
  %sel = llm.select_rows %z, %rows : tensor<?x32xf32>, tensor<?xi32>
  // CHECK: exec.linear %[[SEL]], %[[TABLE]] into %[[L:[0-9]+]]
  %l = llm.linear %sel weights(%t) : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  // CHECK: exec.output %[[L]]
  return %l : tensor<?x64xf32>
}
}
