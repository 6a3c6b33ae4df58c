// RUN: %opt %s | %opt | FileCheck %s

// Every op and attribute of the dist dialect parses back what it prints, in the logical and in the local form.

// CHECK: dist.limits = #dist.limits<max_model_len = 2048, max_num_seqs = 8, max_batched_tokens = 512, max_logits_rows = 8, page_size = 16, memory_utilization = 9.000000e-01 : f64, kv_dtype = bf16>
// CHECK-SAME: dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [1, 0]>
// CHECK-SAME: dist.topology = #dist.topology<name = "two", hosts = ["a", "b"], devices = [<id = "gpu0", kind = "cuda", name = "H200", uuid = "GPU-1", pci = "0000:01:00.0", host = 0, memory = 1024, reserved = 24, capability = 90, bandwidth = 1.000000e+12 : f64, flops = 1.000000e+15 : f64>, <id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 1, memory = 2048, reserved = 0, capability = 0, bandwidth = 1.000000e+10 : f64, flops = 1.000000e+11 : f64>], links = [<a = 0, b = 1, kind = "NET", bandwidth = 1.000000e+09 : f64, latency = 1.000000e-05 : f64, p2p = false>]>
module attributes {
  dist.limits = #dist.limits<max_model_len = 2048, max_num_seqs = 8, max_batched_tokens = 512, max_logits_rows = 8, page_size = 16, memory_utilization = 0.9, kv_dtype = bf16>,
  dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [1, 0]>,
  dist.topology = #dist.topology<name = "two", hosts = ["a", "b"], devices = [
    #dist.device<id = "gpu0", kind = "cuda", name = "H200", uuid = "GPU-1", pci = "0000:01:00.0", host = 0, memory = 1024, reserved = 24, capability = 90, bandwidth = 1.0e12, flops = 1.0e15>,
    #dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 1, memory = 2048, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NET", bandwidth = 1.0e9, latency = 1.0e-5, p2p = false>]>} {

// CHECK-LABEL: func.func @logical
func.func @logical(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK: dist.all_reduce %{{[^{]*}} : tensor<?x32xf32>
  %a = dist.all_reduce %x : tensor<?x32xf32>
  // CHECK: dist.all_gather %{{.*}} {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %b = dist.all_gather %a {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  // A value may be sliced into tiles that overlap.
  // CHECK: dist.slice %{{.*}} {tiles = #dist.tiles<dim = 1, offsets = [0, 8], sizes = [24, 24]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %c = dist.slice %b {tiles = #dist.tiles<dim = 1, offsets = [0, 8], sizes = [24, 24]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  // CHECK: dist.transfer %{{.*}} {from = 0 : i64, to = 1 : i64} : tensor<?x32xf32>
  %d = dist.transfer %c {from = 0 : i64, to = 1 : i64} : tensor<?x32xf32>
  // CHECK: llm.add %{{.*}}, %{{.*}} {dist.in = [#dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>, #dist.replicated], dist.out = [#dist.partial], dist.stage = 1 : i64}
  %e = llm.add %d, %d {dist.in = [#dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>, #dist.replicated], dist.out = [#dist.partial], dist.stage = 1 : i64} : tensor<?x32xf32>
  // CHECK: dist.gather %{{.*}} {root = 1 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  %f = dist.gather %e {root = 1 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return %f : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @rank1
// CHECK-SAME: attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64}
func.func @rank1(%ids: tensor<?xi32>) attributes {dist.rank = 1 : i64, dist.stage = 0 : i64, dist.tp_index = 1 : i64} {
  // CHECK: dist.recv {peer = 0 : i64, seq = 0 : i64} : tensor<?x32xf16>
  %x = dist.recv {peer = 0 : i64, seq = 0 : i64} : tensor<?x32xf16>
  // CHECK: dist.all_reduce %{{.*}} {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x32xf16>
  %a = dist.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : tensor<?x32xf16>
  // CHECK: dist.slice %{{.*}} : tensor<?x32xf16> -> tensor<?x8xf16>
  %b = dist.slice %a {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf16> -> tensor<?x8xf16>
  // CHECK: dist.all_gather %{{.*}} {group = array<i64: 0, 1>, seq = 1 : i64, tiles = {{.*}}} : tensor<?x8xf16> -> tensor<?x32xf16>
  %c = dist.all_gather %b {group = array<i64: 0, 1>, seq = 1 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x8xf16> -> tensor<?x32xf16>
  // A member that is not the root gives its tile and has no result.
  // CHECK: {{^ *}}dist.gather %{{.*}} {group = array<i64: 0, 1>, root = 0 : i64, seq = 2 : i64, tiles = {{.*}}} : tensor<?x8xf16>{{$}}
  dist.gather %b {group = array<i64: 0, 1>, root = 0 : i64, seq = 2 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x8xf16>
  // CHECK: dist.send %{{.*}} {peer = 0 : i64, seq = 0 : i64} : tensor<?x32xf16>
  dist.send %c {peer = 0 : i64, seq = 0 : i64} : tensor<?x32xf16>
  return
}
}
