// RUN: %opt %s --canonicalize | FileCheck %s

// A slice of an all-gather over the same tiles is what the rank had before; over others it is not. The gather itself is
// no pure op, since all ranks of a group must meet it: that it has no users left is for dist-simplify-collectives to see.

// CHECK-LABEL: func.func @same_tiles
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: return %arg0, %arg0
func.func @same_tiles(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %g = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %s = dist.slice %g {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %t = dist.slice %g {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return %s, %t : tensor<?x32xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: func.func @other_tiles
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %arg0
// CHECK-NEXT: %[[S:.*]] = dist.slice %[[G]] {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>}
// CHECK-NEXT: return %[[S]]
func.func @other_tiles(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %g = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %s = dist.slice %g {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 16]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// In the local form the types tell one rank's tile from another's: rank 1's tile is not rank 0's.

// CHECK-LABEL: func.func @local
// CHECK: %[[G:.*]] = dist.all_gather
// CHECK: %[[S:.*]] = dist.slice %[[G]]
// CHECK: return %arg0, %[[S]]
func.func @local(%x: tensor<?x24xf32>) -> (tensor<?x24xf32>, tensor<?x8xf32>) {
  %g = dist.all_gather %x {group = array<i64: 0, 1>, seq = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x24xf32> -> tensor<?x32xf32>
  %s = dist.slice %g {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x24xf32>
  %t = dist.slice %g {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x8xf32>
  return %s, %t : tensor<?x24xf32>, tensor<?x8xf32>
}
