// RUN: %opt %s -verify-diagnostics -split-input-file

// Every sentence of the llm verifiers, once.

// Types: activations are [tokens, width], weights are vectors or matrices.
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{operand #0 must be activation [tokens, width] of 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?xf32>'}}
  %y = llm.add %x, %x : tensor<?xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{must be weight vector or matrix of 32-bit float or 16-bit float or bfloat16 type values, but got 'tensor<2x2x2xf32>'}}
  %w = llm.weight "w" : tensor<2x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xi32>) {
  // expected-error@+1 {{operand #0 must be activation}}
  %y = llm.add %x, %x : tensor<?x8xi32>
  return
}

// -----

// llm.weight
func.func @f() {
  // expected-error@+1 {{must have a static shape, but is 'tensor<?x8xf32>'}}
  %w = llm.weight "w" : tensor<?x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{is 'tensor<4x8xf32>' but its tensor has shape [8, 4]}}
  %w = llm.weight "w" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 4]>} : tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{is 'tensor<4x8xf32>' but its tensor has shape [32]}}
  %w = llm.weight "w" {boxes = [], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [32]>} : tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{box rows [2, +4) columns [0, +8) does not lie inside [4, 8]}}
  %w = llm.weight "w" {boxes = [#llm.box<row = 2, rows = 4, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 8]>} : tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{box rows [0, +1) columns [-1, +4) does not lie inside [1, 8]}}
  %w = llm.weight "w" {boxes = [#llm.box<row = 0, rows = 1, col = -1, cols = 4, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>} : tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{box rows [0, +0) columns [0, +8) does not lie inside [4, 8]}}
  %w = llm.weight "w" {boxes = [#llm.box<row = 0, rows = 0, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 8]>} : tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{box has 4 columns in a weight of 'tensor<4x8xf32>'}}
  %w = llm.weight "w" {boxes = [#llm.box<row = 0, rows = 4, col = 0, cols = 4, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 8]>} : tensor<4x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{is 'tensor<4x8xf32>' but its boxes stack up to 3}}
  %w = llm.weight "w" {boxes = [#llm.box<row = 0, rows = 1, col = 0, cols = 8, replica = false>, #llm.box<row = 2, rows = 2, col = 0, cols = 8, replica = false>], tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [4, 8]>} : tensor<4x8xf32>
  return
}

// -----

// llm.embedding
func.func @f(%ids: tensor<?xi32>, %t: tensor<64x32xf32>) {
  // expected-error@+1 {{result must be a tensor<?xWIDTHxT>, but is 'tensor<4x32xf32>'}}
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<64x32xf32> -> tensor<4x32xf32>
  return
}

// -----

func.func @f(%ids: tensor<?xi32>, %t: tensor<64x16xf32>) {
  // expected-error@+1 {{table 'tensor<64x16xf32>' does not give rows of 32 elements}}
  %x = llm.embedding %ids, %t : tensor<?xi32>, tensor<64x16xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%ids: tensor<?xi32>, %t: tensor<64x32xf32>) {
  // expected-error@+1 {{vocab_begin must not be negative}}
  %x = llm.embedding %ids, %t {vocab_begin = -1 : i64} : tensor<?xi32>, tensor<64x32xf32> -> tensor<?x32xf32>
  return
}

// -----

// llm.rms_norm and llm.add_rms_norm
func.func @f(%x: tensor<4x32xf32>, %w: tensor<32xf32>) {
  // expected-error@+1 {{input must be a tensor<?xWIDTHxT>, but is 'tensor<4x32xf32>'}}
  %y = llm.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<4x32xf32>, tensor<32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<16xf32>) {
  // expected-error@+1 {{weight must have 32 elements, but is 'tensor<16xf32>'}}
  %y = llm.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?xf32>, %w: tensor<32xf32>) {
  // expected-error@+1 {{input must be a tensor<?xWIDTHxT>, but is 'tensor<?x?xf32>'}}
  %s, %y = llm.add_rms_norm %x, %x, %w {eps = 1.0e-5 : f32} : tensor<?x?xf32>, tensor<32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<1x32xf32>) {
  // expected-error@+1 {{weight must have 32 elements, but is 'tensor<1x32xf32>'}}
  %s, %y = llm.add_rms_norm %x, %x, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<1x32xf32>
  return
}

// -----

// llm.linear
func.func @f(%x: tensor<4x32xf32>, %w: tensor<8x32xf32>) {
  // expected-error@+1 {{input must be a tensor<?xWIDTHxT>}}
  %y = llm.linear %x weights(%w) : tensor<4x32xf32>, (tensor<8x32xf32>) -> (tensor<?x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<8x32xf32>) {
  // expected-error@+1 {{has 2 weights for 1 results}}
  %y = llm.linear %x weights(%w, %w) : tensor<?x32xf32>, (tensor<8x32xf32>, tensor<8x32xf32>) -> (tensor<?x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<8x32xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{has 1 biases for 2 weights}}
  %y, %z = llm.linear %x weights(%w, %w) biases(%b) : tensor<?x32xf32>, (tensor<8x32xf32>, tensor<8x32xf32>), (tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<8x32xf32>) {
  // expected-error@+1 {{result must be a tensor<?xWIDTHxT>, but is 'tensor<4x8xf32>'}}
  %y = llm.linear %x weights(%w) : tensor<?x32xf32>, (tensor<8x32xf32>) -> (tensor<4x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<8x32xf32>, %v: tensor<8x16xf32>) {
  // expected-error@+1 {{weight 1 is 'tensor<8x16xf32>' but maps 32 columns to 8}}
  %y, %z = llm.linear %x weights(%w, %v) : tensor<?x32xf32>, (tensor<8x32xf32>, tensor<8x16xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<8x32xf32>, %b: tensor<16xf32>) {
  // expected-error@+1 {{bias must have 8 elements, but is 'tensor<16xf32>'}}
  %y = llm.linear %x weights(%w) biases(%b) : tensor<?x32xf32>, (tensor<8x32xf32>), (tensor<16xf32>) -> (tensor<?x8xf32>)
  return
}

// -----

// llm.head_norm
func.func @f(%x: tensor<?x32xf32>, %w: tensor<12xf32>) {
  // expected-error@+1 {{input has 32 columns, which is not a multiple of head_dim 12}}
  %y = llm.head_norm %x, %w {head_dim = 12 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>, tensor<12xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<12xf32>) {
  // expected-error@+1 {{input has 32 columns, which is not a multiple of head_dim 0}}
  %y = llm.head_norm %x, %w {head_dim = 0 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>, tensor<12xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: tensor<12xf32>) {
  // expected-error@+1 {{weight must have 8 elements, but is 'tensor<12xf32>'}}
  %y = llm.head_norm %x, %w {head_dim = 8 : i64, eps = 1.0e-6 : f32} : tensor<?x32xf32>, tensor<12xf32>
  return
}

// -----

// llm.rope
func.func @f(%q: tensor<4x32xf32>, %k: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{q must be a tensor<?xWIDTHxT>}}
  %q1, %k1 = llm.rope %q, %k, %p {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : tensor<4x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x12xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{k has 12 columns, which is not a multiple of head_dim 8}}
  %q1, %k1 = llm.rope %q, %k, %p {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : tensor<?x32xf32>, tensor<?x12xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{rotary_dim 10 must be even and at most head_dim 8}}
  %q1, %k1 = llm.rope %q, %k, %p {head_dim = 8 : i64, rotary_dim = 10 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{rotary_dim 3 must be even and at most head_dim 8}}
  %q1, %k1 = llm.rope %q, %k, %p {head_dim = 8 : i64, rotary_dim = 3 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error@+1 {{has 3 frequencies for rotary_dim 4}}
  %q1, %k1 = llm.rope %q, %k, %p {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5, 0.25>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>, %p: tensor<?xi32>, %n: tensor<8xf32>, %m: tensor<4xf32>) {
  // expected-error@+1 {{k_norm must have 8 elements, but is 'tensor<4xf32>'}}
  %q1, %k1 = llm.rope %q, %k, %p norms(%n, %m : tensor<8xf32>, tensor<4xf32>) {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

// One norm without the other cannot be written but in the generic form.
func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>, %p: tensor<?xi32>, %n: tensor<8xf32>) {
  // expected-error@+1 {{needs both norms or none}}
  %q1, %k1 = "llm.rope"(%q, %k, %p, %n) <{head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.5>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> : (tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>, tensor<8xf32>) -> (tensor<?x32xf32>, tensor<?x8xf32>)
  return
}

// -----

// llm.attention
func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{result must be a tensor<?xWIDTHxT>, but is 'tensor<4x32xf32>'}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<4x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{needs at least one query head, one KV head and head_dim 1}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 0 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{q and result must have 3 heads x 8 = 24 columns, but have 32 and 32}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 3 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{q and result must have 4 heads x 8 = 32 columns, but have 32 and 16}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{k and v must have 2 heads x 8 = 16 columns, but have 8}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 2 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{window and layer must not be negative}}
  %o = llm.attention %q, %k, %k {layer = -1 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{window and layer must not be negative}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, window = -1 : i64} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{kv_head_of_q has 3 entries for 4 query heads}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, kv_head_of_q = array<i64: 0, 0, 0>} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{kv_head_of_q names KV head 1 of 1}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, kv_head_of_q = array<i64: 0, 0, 0, 1>} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x24xf32>) {
  // expected-error@+1 {{4 query heads over 3 KV heads need kv_head_of_q}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 3 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x32xf32>, tensor<?x24xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error@+1 {{kv_head_ids has 2 entries for 1 KV heads}}
  %o = llm.attention %q, %k, %k {layer = 0 : i64, q_heads = 4 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32, kv_head_ids = array<i64: 0, 1>} : tensor<?x32xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

// Discardable attributes
func.func @f(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.layer' must be a non-negative i32, not -1 : i32}}
  %y = llm.add %x, %x {llm.layer = -1 : i32} : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.layer' must be a non-negative i32, not 3 : i64}}
  %y = llm.add %x, %x {llm.layer = 3 : i64} : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{'llm.text' is allowed on a module only}}
  %y = llm.add %x, %x {llm.text = {}} : tensor<?x8xf32>
  return
}

// -----

// expected-error@+1 {{'llm.files' must be an array of dictionaries on a module}}
module attributes {llm.files = [1 : i64]} {}

// -----

func.func private @act() attributes {
  // expected-error@+2 {{expected ::llmc::llm::Activation to be one of: silu, gelu_tanh, gelu}}
  // expected-error@+1 {{failed to parse}}
  llm.act = #llm.act<relu>}

// -----

func.func private @style() attributes {
  // expected-error@+2 {{expected ::llmc::llm::RopeStyle to be one of: neox, interleaved}}
  // expected-error@+1 {{failed to parse}}
  llm.style = #llm.rope_style<gptj>}
