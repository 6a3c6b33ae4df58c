// RUN: %opt %s --exec-plan-memory | FileCheck %s
// RUN: sed 's/devices = .0, 1.>/devices = [0, 2]>/' %s | %opt --exec-plan-memory | FileCheck %s --check-prefix=APART

// What a GPU sends to the next stage waits in its own memory until that has read it: of two stages, in three slots of 4 tokens × 64
// f32 columns. Where the link has no peer-to-peer access it goes through the host's memory, and no slot is planned.

#gpu = #dist.device<id = "gpu0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>
#topo = #dist.topology<name = "three", hosts = ["h"], devices = [#gpu,
  #dist.device<id = "gpu1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>,
  #dist.device<id = "gpu2", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e12, flops = 1.0e14>], links = [
  #dist.link<a = 0, b = 1, kind = "NV18", bandwidth = 4.0e11, latency = 2.0e-6, p2p = true>,
  #dist.link<a = 0, b = 2, kind = "SYS", bandwidth = 1.0e10, latency = 9.0e-6, p2p = false>]>

module attributes {dist.topology = #topo, dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 2, max_batched_tokens = 4, max_logits_rows = 2, page_size = 16, memory_utilization = 0.9, kv_dtype = f32>} {
// CHECK: exec.program @rank0 attributes {arena_bytes = {{[0-9]+}} : i64, comm_bytes = 3072 : i64
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  %a = exec.buffer "a" : !exec.buffer<tokens, 64, f32>
  exec.gated_act %a, %a into %a {act = #llm.act<silu>} : !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>, !exec.buffer<tokens, 64, f32>
  exec.send %a {peer = 1 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
}
// APART: exec.program @rank0 attributes {arena_bytes = {{[0-9]+}} : i64, comm_bytes = 0 : i64
// CHECK: exec.program @rank1 attributes {arena_bytes = {{[0-9]+}} : i64, comm_bytes = 0 : i64
exec.program @rank1 attributes {rank = 1 : i64, stage = 1 : i64, tp_index = 0 : i64, device = 1 : i64} {
  %a = exec.buffer "a" : !exec.buffer<tokens, 64, f32>
  exec.recv %a {peer = 0 : i64, seq = 0 : i64} : !exec.buffer<tokens, 64, f32>
}
}
