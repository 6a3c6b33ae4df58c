// RUN: %opt %s --exec-select-kernels | FileCheck %s

// Sums go in one shot up to where a push to all members costs what it saves beside two shots: by the slowest link of the group, in
// whole rows, where all members reach each other's memory. Between two members two shots save nothing.

#topo = #dist.topology<name = "four", hosts = ["h"], devices = [
  #dist.device<id = "gpu0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>,
  #dist.device<id = "gpu1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>,
  #dist.device<id = "gpu2", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>,
  #dist.device<id = "gpu3", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>], links = [
  #dist.link<a = 0, b = 1, kind = "NV18", bandwidth = 4.0e11, latency = 2.0e-6, p2p = true>,
  #dist.link<a = 0, b = 2, kind = "NV18", bandwidth = 4.0e11, latency = 2.0e-6, p2p = true>,
  #dist.link<a = 1, b = 2, kind = "PIX", bandwidth = 2.0e10, latency = 5.0e-6, p2p = true>,
  #dist.link<a = 0, b = 3, kind = "SYS", bandwidth = 1.0e10, latency = 9.0e-6, p2p = false>]>

module attributes {dist.topology = #topo, dist.mesh = #dist.mesh<tp = 4, pp = 1, devices = [0, 1, 2, 3]>} {
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %x = exec.buffer "x" : !exec.buffer<tokens, 3584, bf16>
  %odd = exec.buffer "odd" : !exec.buffer<tokens, 3585, bf16>
  // Two members: a push sends no more than a ring, whatever the size: 4 GiB in rows of 7168 bytes are more than any step has.
  // CHECK: exec.all_reduce {{.*}}group = array<i64: 0, 1>,{{.*}}one_shot_bytes = 4294965248 : i64, seq
  // CHECK-NOT: two_shot_bytes = {{[1-9]}}
  exec.all_reduce %x {group = array<i64: 0, 1>, seq = 0 : i64} : !exec.buffer<tokens, 3584, bf16>
  // Three, over 20 GB/s and 5 us: 2 messages against 4/3, so the 6.3 us of a hop buy 189,000 bytes: 26 rows.
  // CHECK: exec.all_reduce {{.*}}group = array<i64: 0, 1, 2>{{.*}}one_shot_bytes = 186368{{.*}}two_shot_bytes = 8386560
  exec.all_reduce %x {group = array<i64: 0, 1, 2>, seq = 1 : i64} : !exec.buffer<tokens, 3584, bf16>
  // No P2P, and rows that are no whole chunks of 16 bytes.
  // CHECK: exec.all_reduce
  // CHECK-NOT: one_shot_bytes = {{[1-9]}}
  exec.all_reduce %x {group = array<i64: 0, 3>, seq = 0 : i64} : !exec.buffer<tokens, 3584, bf16>
  exec.all_reduce %odd {group = array<i64: 0, 1>, seq = 2 : i64} : !exec.buffer<tokens, 3585, bf16>
}
}
