// RUN: %opt %s --llm-verify-model -verify-diagnostics -split-input-file

// What the llm phase as a whole must hold, and every sentence when it does not.

// Two layers, each with its attention: nothing to say.

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %a0 = llm.add %x, %x {llm.layer = 0 : i32} : tensor<?x8xf32>
  %o0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %o1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.add %x, %x {llm.layer = 1 : i32} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

// One function, of the agreed signature, with a body

// expected-error@+1 {{must hold one function, @forward, with its body}}
module {
  func.func @backward() { return }
}

// -----

// expected-error@+1 {{must hold one function, @forward, with its body}}
module {
  func.func @forward() { return }
  func.func @backward() { return }
}

// -----

// expected-error@+1 {{must hold one function, @forward, with its body}}
module {
  func.func private @forward(tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>
}

// -----

// expected-error@+1 {{@forward must take (ids, positions, logits_rows), each 'tensor<?xi32>', and return logits, but is '(tensor<?xi32>, tensor<?xi32>) -> tensor<?x8xf32>'}}
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

// expected-error@+1 {{@forward must take (ids, positions, logits_rows)}}
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

// Layers rise by one and have one attention each

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{attention of layer 1 stands where layer 0 is due}}
  %o = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{attention of layer 0 stands where layer 1 is due}}
  %o1 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{attention of layer 0 must carry llm.layer = 0 : i32}}
  %o = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{attention of layer 1 must carry llm.layer = 1 : i32}}
  %o1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %o1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{op of layer 0 stands among those of layer 1}}
  %a0 = llm.add %x, %x {llm.layer = 0 : i32} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{op of layer 2 stands among those of layer 0}}
  %a2 = llm.add %x, %x {llm.layer = 2 : i32} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

// expected-error@+1 {{layer 1 has no attention}}
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.add %x, %x {llm.layer = 1 : i32} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

// expected-error@+1 {{@forward has no attention}}
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

// Each weight is loaded once

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  %o = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{loads 't' a second time}}
  %u = llm.weight "t" : tensor<16x8xf32>
  return %x : tensor<?x8xf32>
}

// -----

// Rope and attention agree on heads

func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x8xf32> {
  %t = llm.weight "t" : tensor<16x8xf32>
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<16x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{rotates heads of 4 elements that attention takes as 8}}
  %q, %k = llm.rope %x, %x, %positions {head_dim = 4 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  %o = llm.attention %q, %k, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
