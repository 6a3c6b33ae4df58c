// RUN: %opt %s --llm-fuse-add-norm --split-input-file | FileCheck %s

// The pair becomes one op of the norm's layer; whoever read the sum reads the joint op's.

// CHECK-LABEL: func.func @joins
// CHECK: %[[S:.*]], %[[N:.*]] = llm.add_rms_norm %arg0, %arg1, %arg2 {eps = {{.*}} : f32, llm.layer = 1 : i32, weight_offset = 1.000000e+00 : f32}
// CHECK-NOT: llm.add %
// CHECK-NOT: llm.rms_norm
// CHECK: return %[[S]], %[[N]]
func.func @joins(%residual: tensor<?x32xf32>, %x: tensor<?x32xf32>, %w: tensor<32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %s = llm.add %residual, %x {llm.layer = 0 : i32} : tensor<?x32xf32>
  %y = llm.rms_norm %s, %w {eps = 1.0e-5 : f32, weight_offset = 1.0 : f32, llm.layer = 1 : i32} : tensor<?x32xf32>, tensor<32xf32>
  return %s, %y : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

// The final norm belongs to no layer, nor does the joint op.

// CHECK-LABEL: func.func @final_norm
// CHECK: llm.add_rms_norm %arg0, %arg1, %arg2 {eps = {{[^,]*}} : f32} :
func.func @final_norm(%residual: tensor<?x32xf32>, %x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xf32> {
  %s = llm.add %residual, %x {llm.layer = 0 : i32} : tensor<?x32xf32>
  %y = llm.rms_norm %s, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// Where the sum is read before the norm, the joint op would come too late; where two norms read it, the first has it.

// CHECK-LABEL: func.func @read_before
// CHECK: llm.add %arg0, %arg1
// CHECK: llm.rms_norm
func.func @read_before(%residual: tensor<?x32xf32>, %x: tensor<?x32xf32>, %w: tensor<32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %s = llm.add %residual, %x : tensor<?x32xf32>
  %t = llm.add %s, %x : tensor<?x32xf32>
  %y = llm.rms_norm %s, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  return %t, %y : tensor<?x32xf32>, tensor<?x32xf32>
}
// CHECK-LABEL: func.func @two_norms
// CHECK: %[[S:.*]], %[[N:.*]] = llm.add_rms_norm %arg0, %arg1, %arg2
// CHECK: %[[M:.*]] = llm.rms_norm %[[S]], %arg2
// CHECK: return %[[N]], %[[M]]
func.func @two_norms(%residual: tensor<?x32xf32>, %x: tensor<?x32xf32>, %w: tensor<32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %s = llm.add %residual, %x : tensor<?x32xf32>
  %y = llm.rms_norm %s, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  %z = llm.rms_norm %s, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  return %y, %z : tensor<?x32xf32>, tensor<?x32xf32>
}
// A norm of anything but a sum stays.
// CHECK-LABEL: func.func @no_sum
// CHECK: llm.rms_norm %arg0
func.func @no_sum(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xf32> {
  %y = llm.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x32xf32>, tensor<32xf32>
  return %y : tensor<?x32xf32>
}
