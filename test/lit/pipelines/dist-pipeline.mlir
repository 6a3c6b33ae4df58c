// RUN: %opt %S/Inputs/two-layers.mlir --llm-pipeline --dist-pipeline="tp=2 pp=2" | FileCheck %s
// RUN: not %opt %S/Inputs/two-layers.mlir --llm-pipeline --dist-pipeline="tp=3" 2>&1 | FileCheck %s --check-prefix=ILLEGAL

// The dist phase: four programs. A stage has one all-reduce behind the embedding and two a layer, nothing else until the
// logits; the residual sum is all that goes from stage to stage.

// CHECK: dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 1, 2, 3]>
// CHECK-NOT: @forward
// CHECK-LABEL: func.func @rank0
// CHECK: llm.embedding
// CHECK-NEXT: %[[X:.*]] = dist.all_reduce {{.*}}group = array<i64: 0, 1>, seq = 0 : i64
// CHECK: llm.attention {{.*}}kv_head_ids = array<i64: 0>{{.*}}q_heads = 1 : i64
// CHECK-NOT: dist.
// CHECK: llm.linear
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce {{.*}}seq = 1 : i64
// CHECK: llm.add_rms_norm %[[X]], %[[A]]
// CHECK-NOT: dist.
// CHECK: llm.linear %{{.*}} weights(%{{[0-9]+}}) {
// CHECK-NEXT: %[[D:.*]] = dist.all_reduce {{.*}}seq = 2 : i64
// CHECK-NEXT: %[[S:.*]] = llm.add %{{.*}}, %[[D]]
// CHECK-NEXT: dist.send %[[S]] {{.*}}peer = 2 : i64, seq = 0 : i64
// CHECK-NEXT: return

// CHECK-LABEL: func.func @rank1
// CHECK: dist.send {{.*}}peer = 3 : i64, seq = 0 : i64

// CHECK-LABEL: func.func @rank2
// CHECK-NEXT: dist.recv {{.*}}peer = 0 : i64, seq = 0 : i64
// CHECK: dist.all_reduce {{.*}}group = array<i64: 2, 3>, {{.*}}seq = 0 : i64
// CHECK: dist.all_reduce {{.*}}group = array<i64: 2, 3>, {{.*}}seq = 1 : i64
// CHECK-NEXT: llm.weight "norm"
// CHECK-NEXT: llm.add_rms_norm
// CHECK: dist.gather {{.*}}root = 0 : i64, seq = 2 : i64
// CHECK-NEXT: return %{{.*}} : tensor<?x64xf32>

// The one KV head stands on both ranks of a stage: here as a replica.
// CHECK-LABEL: func.func @rank3
// CHECK: llm.weight "l1.k" {boxes = [#llm.box<row = 0, rows = 8, col = 0, cols = 16, replica = true>]
// CHECK: dist.gather
// CHECK-NEXT: return{{$}}

// ILLEGAL: 2 query heads cannot be spread over 3 ranks (--tp 3); legal on these 4 devices: tp 1 with pp 1-2, tp 2 with pp 1-2
