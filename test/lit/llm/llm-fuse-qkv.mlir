// RUN: %opt %s --llm-fuse-qkv --split-input-file | FileCheck %s

// Three projections of one input become one product at the place of the first, behind rope too.

// CHECK-LABEL: func.func @stacks
// CHECK: %[[QKV:.*]]:3 = llm.linear %arg0 weights(%arg2, %arg3, %arg3) {llm.layer = 2 : i32}
// CHECK-NOT: llm.linear
// CHECK: %[[Q:.*]], %[[K:.*]] = llm.rope %[[QKV]]#0, %[[QKV]]#1, %arg1
// CHECK: llm.attention %[[Q]], %[[K]], %[[QKV]]#2
func.func @stacks(%x: tensor<?x32xf32>, %pos: tensor<?xi32>, %wq: tensor<16x32xf32>, %wk: tensor<8x32xf32>) -> tensor<?x16xf32> {
  %q = llm.linear %x weights(%wq) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<16x32xf32>) -> (tensor<?x16xf32>)
  %k = llm.linear %x weights(%wk) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %v = llm.linear %x weights(%wk) {llm.layer = 2 : i32} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %q1, %k1 = llm.rope %q, %k, %pos {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %o = llm.attention %q1, %k1, %v {layer = 2 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return %o : tensor<?x16xf32>
}

// -----

// Biases are stacked in the same order.

// CHECK-LABEL: func.func @biases
// CHECK: llm.linear %arg0 weights(%arg1, %arg2, %arg2) biases(%arg3, %arg4, %arg4)
func.func @biases(%x: tensor<?x32xf32>, %wq: tensor<16x32xf32>, %wk: tensor<8x32xf32>, %bq: tensor<16xf32>, %bk: tensor<8xf32>) -> tensor<?x16xf32> {
  %q = llm.linear %x weights(%wq) biases(%bq) : tensor<?x32xf32>, (tensor<16x32xf32>), (tensor<16xf32>) -> (tensor<?x16xf32>)
  %k = llm.linear %x weights(%wk) biases(%bk) : tensor<?x32xf32>, (tensor<8x32xf32>), (tensor<8xf32>) -> (tensor<?x8xf32>)
  %v = llm.linear %x weights(%wk) biases(%bk) : tensor<?x32xf32>, (tensor<8x32xf32>), (tensor<8xf32>) -> (tensor<?x8xf32>)
  %o = llm.attention %q, %k, %v {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return %o : tensor<?x16xf32>
}

// -----

// A bias on one of them, or another input: nothing is stacked.

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-3: llm.linear
func.func @apart(%x: tensor<?x32xf32>, %wq: tensor<16x32xf32>, %wk: tensor<8x32xf32>, %bq: tensor<16xf32>) -> tensor<?x16xf32> {
  %q = llm.linear %x weights(%wq) biases(%bq) : tensor<?x32xf32>, (tensor<16x32xf32>), (tensor<16xf32>) -> (tensor<?x16xf32>)
  %k = llm.linear %x weights(%wk) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %v = llm.linear %x weights(%wk) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %o = llm.attention %q, %k, %v {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return %o : tensor<?x16xf32>
}
