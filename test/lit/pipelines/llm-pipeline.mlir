// RUN: %opt %S/Inputs/two-layers.mlir --llm-pipeline | FileCheck %s

// The llm phase: a layer's sixteen ops become nine. Head norms are inside rope, q, k and v are one product, gate and up
// another, and each addition is one with the norm behind it, across layers and in front of lm_head too.

// CHECK-LABEL: func.func @forward
// CHECK: %[[X:.*]] = llm.embedding %arg0
// CHECK: %[[Y:.*]] = llm.rms_norm %[[X]]
// CHECK: %[[QKV:.*]]:3 = llm.linear %[[Y]] weights(%{{.*}}, %{{.*}}, %{{.*}}) {llm.layer = 0 : i32}
// CHECK: %[[Q:.*]], %[[K:.*]] = llm.rope %[[QKV]]#0, %[[QKV]]#1, %arg1 norms(
// CHECK: %[[A:.*]] = llm.attention %[[Q]], %[[K]], %[[QKV]]#2
// CHECK: %[[O:.*]] = llm.linear %[[A]]
// CHECK: %[[S:.*]], %[[N:.*]] = llm.add_rms_norm %[[X]], %[[O]]{{.*}}llm.layer = 0 : i32
// CHECK: %[[GU:.*]]:2 = llm.linear %[[N]] weights(%{{.*}}, %{{.*}}) {llm.layer = 0 : i32}
// CHECK: %[[H:.*]] = llm.gated_act %[[GU]]#0, %[[GU]]#1
// CHECK: %[[D:.*]] = llm.linear %[[H]]
// CHECK: %[[S1:.*]], %[[N1:.*]] = llm.add_rms_norm %[[S]], %[[D]]{{.*}}llm.layer = 1 : i32
// CHECK: llm.linear %[[N1]] weights(%{{.*}}, %{{.*}}, %{{.*}}) {llm.layer = 1 : i32}
// CHECK: llm.attention {{.*}}layer = 1 : i64
// CHECK-NOT: llm.add %
// CHECK-NOT: llm.rms_norm
// CHECK-NOT: llm.head_norm
// CHECK: %{{.*}}, %[[NF:.*]] = llm.add_rms_norm %{{.*}}, %{{.*}}, %{{.*}} {eps = {{[^,]*}}} :
// CHECK: %[[R:.*]] = llm.select_rows %[[NF]], %arg2
// CHECK: %[[L:.*]] = llm.linear %[[R]]
// CHECK: return %[[L]]
