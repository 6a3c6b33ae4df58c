// RUN: %opt %s --dist-verify -verify-diagnostics -split-input-file

// What must hold between ranks, and every sentence when it does not.

// Two stages of two ranks that agree: nothing to say. Widths are those of the whole, tiles may differ.

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 1, 2, 3]>} {
func.func @rank0(%x: tensor<?x8xf32>) attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %w_n = llm.weight "n" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %w_k = llm.weight "k" {boxes = [#llm.box<row = 0, rows = 3, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [5, 8]>} : tensor<3x8xf32>
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  dist.send %x {peer = 2 : i64, seq = 0 : i64} : tensor<?x8xf32>
  return
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  %w_n = llm.weight "n" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = true>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  %w_k = llm.weight "k" {boxes = [#llm.box<row = 2, rows = 1, col = 0, cols = 8, replica = true>, #llm.box<row = 3, rows = 2, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [5, 8]>} : tensor<3x8xf32>
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  dist.send %x {peer = 3 : i64, seq = 0 : i64} : tensor<?x8xf32>
  return
}
func.func @rank2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 2 : i64, dist.stage = 1 : i64, dist.tp_index = 0 : i64} {
  %r = dist.recv {peer = 0 : i64, seq = 0 : i64} : tensor<?x8xf32>
  %s = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 4], sizes = [4, 4]>} : tensor<?x8xf32> -> tensor<?x4xf32>
  %g = dist.gather %s {group = array<i64: 2, 3>, root = 0 : i64, seq = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 4], sizes = [4, 4]>} : tensor<?x4xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank3(%x: tensor<?x8xf32>) attributes {dist.rank = 3 : i64, dist.stage = 1 : i64, dist.tp_index = 1 : i64} {
  %r = dist.recv {peer = 1 : i64, seq = 0 : i64} : tensor<?x8xf32>
  %s = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 4], sizes = [4, 4]>} : tensor<?x8xf32> -> tensor<?x4xf32>
  dist.gather %s {group = array<i64: 2, 3>, root = 0 : i64, seq = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 4], sizes = [4, 4]>} : tensor<?x4xf32>
  return
}
}

// -----

// All ranks are there

// expected-error@+1 {{has no dist.mesh}}
module {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return %x : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{a mesh of 2 ranks needs @rank1 with dist.rank = 1}}
module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return %x : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{a mesh of 2 ranks needs @rank1 with dist.rank = 1}}
module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return
}
}

// -----

// expected-error@+1 {{a mesh of 1 ranks needs @rank0 with dist.rank = 0}}
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} {
func.func private @rank0() attributes {dist.rank = 0 : i64}
}

// -----

// Groups

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{has no group or no sequence number}}
  %a = dist.all_reduce %x : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{rank 0 is not in its group}}
  %a = dist.all_reduce %x {group = array<i64: 1>, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{has rank 7 in its group, but there are 2 ranks}}
  %a = dist.all_reduce %x {group = array<i64: 0, 7>, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{has rank -1 in its group, but there are 2 ranks}}
  %a = dist.all_reduce %x {group = array<i64: 0, -1>, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

// Members of a group meet the same collectives in the same order

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
// expected-error@+1 {{rank 1 meets no collective where rank 0 meets dist.all_reduce #0 tensor<?x8xf32>}}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  // expected-error@+1 {{rank 1 meets dist.all_reduce #0 tensor<?x8xf32> where rank 0 meets none}}
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  %b = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 1 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  // expected-error@+1 {{rank 1 meets dist.all_reduce #1 tensor<?x8xf32> where rank 0 meets dist.all_reduce #0 tensor<?x8xf32>}}
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 1 : i64} : tensor<?x8xf32>
  %b = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  %y4 = llm.weight "y" : tensor<4x8xf32>
  %z = llm.linear %x weights(%y4) : tensor<?x8xf32>, (tensor<4x8xf32>) -> (tensor<?x4xf32>)
  // expected-error@+1 {{rank 1 meets dist.all_reduce #0 tensor<?x4xf32> where rank 0 meets dist.all_reduce #0 tensor<?x8xf32>}}
  %a = dist.all_reduce %z {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x4xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %a = dist.all_gather %x {group = array<i64: 0, 1>, seq = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 4], sizes = [4, 4]>} : tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  // expected-error@+1 {{rank 1 meets dist.all_gather #0 #dist.tiles<dim = 1, offsets = [0, 2], sizes = [2, 6]> f32 where rank 0 meets dist.all_gather #0 #dist.tiles<dim = 1, offsets = [0, 4], sizes = [4, 4]> f32}}
  %a = dist.all_gather %x {group = array<i64: 0, 1>, seq = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 2], sizes = [2, 6]>} : tensor<?x8xf32> -> tensor<?x8xf32>
  return
}
}

// -----

// Sends and recvs pair up

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  dist.send %x {peer = 1 : i64, seq = 0 : i64} : tensor<?x8xf32>
  // expected-error@+1 {{repeats a sequence number}}
  dist.send %x {peer = 1 : i64, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{is never received by rank 1}}
  dist.send %x {peer = 1 : i64, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  %r = dist.recv {peer = 0 : i64, seq = 1 : i64} : tensor<?x8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{is never received by rank 9}}
  dist.send %x {peer = 9 : i64, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{sends 'tensor<?x8xf32>' but rank 1 receives 'tensor<?x4xf32>'}}
  dist.send %x {peer = 1 : i64, seq = 0 : i64} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  %r = dist.recv {peer = 0 : i64, seq = 0 : i64} : tensor<?x4xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  // expected-error@+1 {{waits for rank 0, which never sends}}
  %r = dist.recv {peer = 0 : i64, seq = 0 : i64} : tensor<?x4xf32>
  return
}
}

// -----

// Weights are held once

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{has no boxes or no tensor}}
  %w_n = llm.weight "n" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{has no boxes or no tensor}}
  %w_n = llm.weight "n" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>]} : tensor<8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{'n' has 8 elements, but its first holders have 16}}
  %w_n = llm.weight "n" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  %w_n = llm.weight "n" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  // expected-error@+1 {{'k' has 40 elements, but its first holders have 24}}
  %w_k = llm.weight "k" {boxes = [#llm.box<row = 0, rows = 3, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [5, 8]>} : tensor<3x8xf32>
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  %w_k = llm.weight "k" {boxes = [#llm.box<row = 3, rows = 2, col = 0, cols = 8, replica = true>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [5, 8]>} : tensor<2x8xf32>
  return
}
}

// -----

// One rank returns logits

// expected-error@+1 {{0 ranks return logits, one must}}
module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return
}
func.func @rank1(%x: tensor<?x8xf32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return
}
}

// -----

// expected-error@+1 {{2 ranks return logits, one must}}
module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>} {
func.func @rank0(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  return %x : tensor<?x8xf32>
}
func.func @rank1(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  return %x : tensor<?x8xf32>
}
}
