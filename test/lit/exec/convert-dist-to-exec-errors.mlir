// RUN: %opt %s --convert-dist-to-exec -verify-diagnostics -split-input-file

// expected-error@+1 {{is no rank's function: run the dist pipeline first}}
func.func @forward(%ids: tensor<?xi32>) { return }

// -----

// A sum is made in place, so nobody may read the residual behind it.
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} {
func.func @rank0(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x32xf32>
    attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %t = llm.weight "table" {boxes = [#llm.box<row = 0, rows = 64, col = 0, cols = 32, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 32]>} : tensor<64x32xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<64x32xf32> -> tensor<?x32xf32>
  %y = llm.embedding %ids, %t : tensor<?xi32>, tensor<64x32xf32> -> tensor<?x32xf32>
  // expected-error@+1 {{works in place, but its operand 1 is read again by 'llm.add' behind it}}
  %a = llm.add %x, %y : tensor<?x32xf32>
  %b = llm.add %x, %y : tensor<?x32xf32>
  %c = llm.add %a, %b : tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} {
func.func @rank0(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {dist.rank = 0 : i64, dist.stage = 0 : i64, dist.tp_index = 0 : i64} {
  %w = llm.weight "w" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<8xf32>
  // expected-error@+1 {{'llm.head_norm' op has no form in the exec dialect}}
  %y = llm.head_norm %x, %w {head_dim = 8 : i64, eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<8xf32>
  return %y : tensor<?x32xf32>
}
}
