// RUN: %opt %s --dist-simplify-collectives --split-input-file | FileCheck %s

// A row-parallel product takes the tiles that its rank has already: gather and slice go. The all-reduce stays.

// CHECK-LABEL: func.func @row_parallel
// CHECK-NEXT: %[[H:.*]] = llm.gated_act
// CHECK-NEXT: %[[Y:.*]] = llm.linear %[[H]] weights(%arg2)
// CHECK-NEXT: dist.all_reduce %[[Y]]
// CHECK-NEXT: return
func.func @row_parallel(%g: tensor<?x32xf32>, %u: tensor<?x32xf32>, %w: tensor<16x32xf32>) -> tensor<?x16xf32> {
  %h = llm.gated_act %g, %u {act = #llm.act<silu>} : tensor<?x32xf32>
  %whole = dist.all_gather %h {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %mine = dist.slice %whole {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %y = llm.linear %mine weights(%w) : tensor<?x32xf32>, (tensor<16x32xf32>) -> (tensor<?x16xf32>)
  %sum = dist.all_reduce %y : tensor<?x16xf32>
  return %sum : tensor<?x16xf32>
}

// -----

// Where the consumer cuts otherwise, or somebody reads the value whole, the gather stays.

// CHECK-LABEL: func.func @needed
// CHECK: %[[A:.*]] = dist.all_gather %arg0
// CHECK: %[[S:.*]] = dist.slice %[[A]] {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>}
// CHECK: llm.linear %[[S]]
// CHECK: %[[B:.*]] = dist.all_gather %arg0
// CHECK: llm.linear %arg0
// CHECK: llm.add %[[B]], %[[B]]
func.func @needed(%h: tensor<?x32xf32>, %w: tensor<16x32xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x32xf32>) {
  %a = dist.all_gather %h {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %a1 = dist.slice %a {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %y = llm.linear %a1 weights(%w) : tensor<?x32xf32>, (tensor<16x32xf32>) -> (tensor<?x16xf32>)
  %b = dist.all_gather %h {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %b1 = dist.slice %b {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %z = llm.linear %b1 weights(%w) : tensor<?x32xf32>, (tensor<16x32xf32>) -> (tensor<?x16xf32>)
  %s = llm.add %b, %b : tensor<?x32xf32>
  return %y, %z, %s : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x32xf32>
}

// -----

// Logits are wanted whole by the sampling rank alone: all_gather becomes gather to member 0, in the layer where it stood.

// CHECK-LABEL: func.func @logits
// CHECK-NEXT: %[[L:.*]] = dist.gather %arg0 {llm.layer = 1 : i32, root = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
// CHECK-NEXT: return %[[L]]
func.func @logits(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %l = dist.all_gather %x {llm.layer = 1 : i32, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return %l : tensor<?x32xf32>
}

// -----

// A gather that nobody reads goes; one that is returned and read as well stays whole on all ranks.

// CHECK-LABEL: func.func @users
// CHECK-NEXT: %[[L:.*]] = dist.all_gather %arg0 {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>}
// CHECK-NEXT: %[[S:.*]] = llm.add %[[L]], %[[L]]
// CHECK-NEXT: return %[[L]], %[[S]]
func.func @users(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %dead = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %l = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %s = llm.add %l, %l : tensor<?x32xf32>
  return %l, %s : tensor<?x32xf32>, tensor<?x32xf32>
}
