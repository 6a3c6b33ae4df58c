// RUN: %opt %s --llm-fuse-qk-norm --split-input-file | FileCheck %s

// Both norms and their eps move into rope.

// CHECK-LABEL: func.func @folds
// CHECK-NOT: llm.head_norm
// CHECK: llm.rope %arg0, %arg1, %arg2 norms(%arg3, %arg4 : tensor<8xf32>, tensor<8xf32>) {eps = 0.00999999977 : f32
func.func @folds(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>, %pos: tensor<?xi32>, %wq: tensor<8xf32>, %wk: tensor<8xf32>) -> (tensor<?x32xf32>, tensor<?x8xf32>) {
  %qn = llm.head_norm %q, %wq {head_dim = 8 : i64, eps = 1.0e-2 : f32} : tensor<?x32xf32>, tensor<8xf32>
  %kn = llm.head_norm %k, %wk {head_dim = 8 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %q1, %k1 = llm.rope %qn, %kn, %pos {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?xi32>
  return %q1, %k1 : tensor<?x32xf32>, tensor<?x8xf32>
}

// -----

// Rope has one eps, normalises both or none, and in place: two eps, a norm on q alone, a norm that somebody else reads,
// or heads of another size stay as they are.

// CHECK-LABEL: func.func @two_eps
// CHECK-COUNT-2: llm.head_norm
// CHECK-NOT: norms
func.func @two_eps(%q: tensor<?x8xf32>, %pos: tensor<?xi32>, %w: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %qn = llm.head_norm %q, %w {head_dim = 8 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %kn = llm.head_norm %q, %w {head_dim = 8 : i64, eps = 1.0e-3 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %q1, %k1 = llm.rope %qn, %kn, %pos {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  return %q1, %k1 : tensor<?x8xf32>, tensor<?x8xf32>
}
// CHECK-LABEL: func.func @q_alone
// CHECK: %[[N:.*]] = llm.head_norm
// CHECK: llm.rope %[[N]], %arg0, %arg1 {
func.func @q_alone(%q: tensor<?x8xf32>, %pos: tensor<?xi32>, %w: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %qn = llm.head_norm %q, %w {head_dim = 8 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %q1, %k1 = llm.rope %qn, %q, %pos {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  return %q1, %k1 : tensor<?x8xf32>, tensor<?x8xf32>
}
// CHECK-LABEL: func.func @read_elsewhere
// CHECK-COUNT-2: llm.head_norm
// CHECK-NOT: norms
func.func @read_elsewhere(%q: tensor<?x8xf32>, %pos: tensor<?xi32>, %w: tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %qn = llm.head_norm %q, %w {head_dim = 8 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %kn = llm.head_norm %q, %w {head_dim = 8 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<8xf32>
  %q1, %k1 = llm.rope %qn, %kn, %pos {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  return %q1, %k1, %kn : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
// CHECK-LABEL: func.func @smaller_heads
// CHECK-COUNT-2: llm.head_norm
// CHECK-NOT: norms
func.func @smaller_heads(%q: tensor<?x8xf32>, %pos: tensor<?xi32>, %w: tensor<4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %qn = llm.head_norm %q, %w {head_dim = 4 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<4xf32>
  %kn = llm.head_norm %q, %w {head_dim = 4 : i64, eps = 1.0e-2 : f32} : tensor<?x8xf32>, tensor<4xf32>
  %q1, %k1 = llm.rope %qn, %kn, %pos {head_dim = 8 : i64, rotary_dim = 4 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0, 0.1>} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>
  return %q1, %k1 : tensor<?x8xf32>, tensor<?x8xf32>
}
