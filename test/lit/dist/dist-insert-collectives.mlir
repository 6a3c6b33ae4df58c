// RUN: %opt %s --dist-insert-collectives --split-input-file -verify-diagnostics | FileCheck %s

// What an op gives in tiles is gathered behind it, partial sums are reduced, and what an op wants in tiles is cut in front
// of it, whether or not both meet. The new ops belong to the layer of the op that they serve.

// CHECK-LABEL: func.func @naive
// CHECK: %[[H:.*]] = llm.gated_act
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[H]] {llm.layer = 4 : i32, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
// CHECK-NEXT: %[[S:.*]] = dist.slice %[[G]] {llm.layer = 4 : i32, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
// CHECK-NEXT: %[[Y:.*]] = llm.linear %[[S]] weights(
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce %[[Y]] {llm.layer = 4 : i32}
// CHECK-NEXT: llm.add %arg2, %[[R]]
#tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>
func.func @naive(%g: tensor<?x32xf32>, %u: tensor<?x32xf32>, %x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %w = llm.weight "down" {llm.layer = 4 : i32} : tensor<16x32xf32>
  // Weights are loaded in tiles to begin with: no slice of %w.
  %h = llm.gated_act %g, %u {act = #llm.act<silu>, llm.layer = 4 : i32, dist.in = [#dist.replicated, #dist.replicated], dist.out = [#tiles]} : tensor<?x32xf32>
  %y = llm.linear %h weights(%w) {llm.layer = 4 : i32, dist.in = [#tiles, #tiles], dist.out = [#dist.partial]} : tensor<?x32xf32>, (tensor<16x32xf32>) -> (tensor<?x16xf32>)
  %s = llm.add %x, %y {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?x16xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %s : tensor<?x16xf32>
}

// -----

// Tiles that overlap (a KV head on two ranks) cannot be gathered: who wants them just so gets them as they are.

// CHECK-LABEL: func.func @overlap
// CHECK-NEXT: %[[K:.*]] = llm.linear
// CHECK-NEXT: llm.attention %arg0, %[[K]], %[[K]]
// CHECK-NEXT: dist.all_gather {{.*}}offsets = [0, 16], sizes = [16, 16]
#q = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>
#kv = #dist.tiles<dim = 1, offsets = [0, 0], sizes = [8, 8]>
#rows = #dist.tiles<dim = 0, offsets = [0, 0], sizes = [8, 8]>
func.func @overlap(%q: tensor<?x32xf32>, %w: tensor<8x32xf32>) -> tensor<?x32xf32> {
  %k = llm.linear %q weights(%w) {dist.in = [#dist.replicated, #rows], dist.out = [#kv]} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  %o = llm.attention %q, %k, %k {dist.in = [#dist.replicated, #kv, #kv], dist.out = [#q], layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %o : tensor<?x32xf32>
}

// -----

// Who wants such a value whole cannot have it.

#kv = #dist.tiles<dim = 1, offsets = [0, 0], sizes = [8, 8]>
#rows = #dist.tiles<dim = 0, offsets = [0, 0], sizes = [8, 8]>
func.func @whole(%q: tensor<?x32xf32>, %w: tensor<8x32xf32>) -> tensor<?x8xf32> {
  %k = llm.linear %q weights(%w) {dist.in = [#dist.replicated, #rows], dist.out = [#kv]} : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  // expected-error@+1 {{needs a value whole that ranks hold in overlapping tiles}}
  %s = llm.add %k, %k {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %s : tensor<?x8xf32>
}

// -----

// Ops without shardings, and functions without a body, are left alone.

// CHECK-LABEL: func.func @plain
// CHECK-NEXT: llm.add
// CHECK-NEXT: return
// CHECK: func.func private @elsewhere
func.func @plain(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = llm.add %x, %x : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}
func.func private @elsewhere(tensor<?x8xf32>)
