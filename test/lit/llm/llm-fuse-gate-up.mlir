// RUN: %opt %s --llm-fuse-gate-up --split-input-file | FileCheck %s

// Gate and up become one product at the place of the first, weights loaded later being moved in front of it.

// CHECK-LABEL: func.func @stacks
// CHECK: %[[G:.*]] = llm.weight "gate"
// CHECK: %[[U:.*]] = llm.weight "up"
// CHECK: %[[GU:.*]]:2 = llm.linear %arg0 weights(%[[G]], %[[U]]) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<64x32xf32>, tensor<64x32xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
// CHECK-NOT: llm.linear
// CHECK: llm.gated_act %[[GU]]#0, %[[GU]]#1 {act = #llm.act<silu>, llm.layer = 3 : i32}
func.func @stacks(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %wg = llm.weight "gate" {llm.layer = 3 : i32} : tensor<64x32xf32>
  %g = llm.linear %x weights(%wg) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  %wu = llm.weight "up" {llm.layer = 3 : i32} : tensor<64x32xf32>
  %u = llm.linear %x weights(%wu) {llm.layer = 3 : i32} : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  %h = llm.gated_act %g, %u {act = #llm.act<silu>, llm.layer = 3 : i32} : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// -----

// Gate comes first in the stack although up is computed first; biases go along.

// CHECK-LABEL: func.func @order_and_biases
// CHECK: %[[GU:.*]]:2 = llm.linear %arg0 weights(%arg1, %arg2) biases(%arg3, %arg4)
// CHECK: llm.gated_act %[[GU]]#0, %[[GU]]#1
func.func @order_and_biases(%x: tensor<?x32xf32>, %wg: tensor<64x32xf32>, %wu: tensor<64x32xf32>, %bg: tensor<64xf32>, %bu: tensor<64xf32>) -> tensor<?x64xf32> {
  %u = llm.linear %x weights(%wu) biases(%bu) : tensor<?x32xf32>, (tensor<64x32xf32>), (tensor<64xf32>) -> (tensor<?x64xf32>)
  %g = llm.linear %x weights(%wg) biases(%bg) : tensor<?x32xf32>, (tensor<64x32xf32>), (tensor<64xf32>) -> (tensor<?x64xf32>)
  %h = llm.gated_act %g, %u {act = #llm.act<silu>} : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// -----

// Other inputs, a bias on one alone, one product for both sides, or a product that is stacked already: nothing changes.

// CHECK-LABEL: func.func @two_inputs
// CHECK-COUNT-2: llm.linear
func.func @two_inputs(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %w: tensor<64x32xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x weights(%w) : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  %u = llm.linear %y weights(%w) : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  %h = llm.gated_act %g, %u {act = #llm.act<silu>} : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
// CHECK-LABEL: func.func @one_bias
// CHECK-COUNT-2: llm.linear
func.func @one_bias(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>, %b: tensor<64xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x weights(%w) biases(%b) : tensor<?x32xf32>, (tensor<64x32xf32>), (tensor<64xf32>) -> (tensor<?x64xf32>)
  %u = llm.linear %x weights(%w) : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  %h = llm.gated_act %g, %u {act = #llm.act<silu>} : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
// CHECK-LABEL: func.func @squared
// CHECK: llm.linear %arg0 weights(%arg1) :
// CHECK-NOT: llm.linear
func.func @squared(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>) -> tensor<?x64xf32> {
  %g = llm.linear %x weights(%w) : tensor<?x32xf32>, (tensor<64x32xf32>) -> (tensor<?x64xf32>)
  %h = llm.gated_act %g, %g {act = #llm.act<silu>} : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
// CHECK-LABEL: func.func @stacked_already
// CHECK: %[[A:.*]]:2 = llm.linear %arg0 weights(%arg1, %arg1)
// CHECK: llm.gated_act %[[A]]#0, %[[A]]#1
func.func @stacked_already(%x: tensor<?x32xf32>, %w: tensor<64x32xf32>) -> tensor<?x64xf32> {
  %g, %u = llm.linear %x weights(%w, %w) : tensor<?x32xf32>, (tensor<64x32xf32>, tensor<64x32xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %h = llm.gated_act %g, %u {act = #llm.act<silu>} : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
