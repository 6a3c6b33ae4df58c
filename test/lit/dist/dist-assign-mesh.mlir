// RUN: %opt %s --dist-assign-mesh="tp=2 pp=2" --split-input-file -verify-diagnostics | FileCheck %s

// Which devices the four ranks of tp 2 x pp 2 get, and when there are none to get.

// Two islands, 0-2 and 1-3: each stage gets one, and PCIe lies between the stages.

// CHECK: dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 2, 1, 3]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 2, kind = "NV18", bandwidth = 4.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "NV18", bandwidth = 4.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// All alike: ranks in the order of the devices, the fifth left idle.

// CHECK: devices = [0, 1, 2, 3]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d4", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 3, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// P2P counts: where half of the links have none, the others are inside the stages, though no wider.

// CHECK: devices = [0, 3, 1, 2]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "PHB", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 2, kind = "PHB", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 3, kind = "PHB", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "PHB", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "PHB", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 2, b = 3, kind = "PHB", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// Mixed memory: devices of like size share a stage, so that none waits for a smaller one's share.

// CHECK: devices = [0, 2, 1, 3]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 25769803776, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 51539607552, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 25769803776, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 51539607552, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// A stage stays on one host, however wide the network.

// CHECK: devices = [0, 2, 1, 3]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0", "h1"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NET", bandwidth = 9.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 3, kind = "NET", bandwidth = 9.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "NET", bandwidth = 9.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 3, kind = "NET", bandwidth = 9.0e11, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// With three devices here and one there, the second stage has to cross.

// CHECK: devices = [0, 1, 2, 3]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0", "h1"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 3, kind = "NET", bandwidth = 1.0e9, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "NET", bandwidth = 1.0e9, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 3, kind = "NET", bandwidth = 1.0e9, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// No links, no group

// expected-error@+1 {{tp 2 x pp 2 needs 4 devices that links join, but the most that are joined are 2 ('d0', 'd1'): add the missing links to the topology ("default_network_link" for those between hosts), or use a smaller --tp or --pp}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// Splits that the model or the machine does not allow

// expected-error@+1 {{1 query heads cannot be spread over 2 ranks (--tp 2); legal on these 4 devices: tp 1 with pp 1-2}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x4xf32>) -> tensor<?x4xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x4xf32> -> tensor<?x4xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x4xf32>
  return %x : tensor<?x4xf32>
}
}

// -----

// expected-error@+1 {{1 layers cannot be cut into 2 stages (--pp 2); legal on these 4 devices: tp 1 with pp 1, tp 2 with pp 1}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{tp 2 x pp 2 needs 4 devices, but the topology has 3; legal on these 3 devices: tp 1 with pp 1-2, tp 2 with pp 1}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{a vocabulary of 1 cannot be spread over 2 ranks (--tp 2)}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<1x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<1x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// GPUs alone, however large and well joined the CPU beside them is

// CHECK: devices = [1, 2, 3, 4]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1099511627776, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d4", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "HOST", bandwidth = 9.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 2, kind = "HOST", bandwidth = 9.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 3, kind = "HOST", bandwidth = 9.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 4, kind = "HOST", bandwidth = 9.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 1, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 1, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 1, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 2, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 2, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 3, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// Of machines that no link joins, the one whose links are better

// CHECK: devices = [1, 3, 5, 7]>
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0", "h1"], devices = [
    #dist.device<id = "d0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d4", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d5", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d6", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d7", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 6, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 1, b = 3, kind = "NV4", bandwidth = 1.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 5, kind = "NV4", bandwidth = 1.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 7, kind = "NV4", bandwidth = 1.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 4, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 2, b = 6, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 3, b = 5, kind = "NV4", bandwidth = 1.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 3, b = 7, kind = "NV4", bandwidth = 1.0e11, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 4, b = 6, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 5, b = 7, kind = "NV4", bandwidth = 1.0e11, latency = 1.0e-6, p2p = true>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// Enough devices, and enough for each stage, but not joined with one another

// expected-error@+1 {{tp 2 x pp 2 needs 4 devices that links join, but the most that are joined are 2 ('d0', 'd1')}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0", "h1"], devices = [
    #dist.device<id = "d0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 2, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// One network link for two pairs of ranks that talk

// expected-error@+1 {{ranks 1 and 3 exchange data, and the topology has no link between their devices 'd1' and 'd3': add it to "links", or use a smaller --tp or --pp}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0", "h1"], devices = [
    #dist.device<id = "d0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cuda", name = "", uuid = "", pci = "", host = 1, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 2, kind = "NET", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 2, b = 3, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// CPUs that may not be counted

// expected-error@+1 {{tp 2 x pp 2 needs 4 devices, but the topology has 3; legal on these 3 devices: tp 1 with pp 1-2, tp 2 with pp 1 (CPU devices take no part beside GPUs)}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cuda", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 90, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 0, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>,
    #dist.link<a = 1, b = 2, kind = "NODE", bandwidth = 1.0e10, latency = 1.0e-6, p2p = false>]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// What the pass needs to know

// expected-error@+1 {{has no dist.topology}}
module {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{has no function @forward with a body}}
module {}

// -----

// expected-error@+1 {{needs an embedding, attention and a gated feed-forward block to be split}}
func.func @forward() { return }

// -----

// Layers that differ, and heads that do not share their KV heads evenly

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a0 = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %a1 = llm.attention %x, %x, %x {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{has 1 query and 1 KV heads of 8 elements, the layers before have 2, 2 and 4: layers that differ are not supported}}
  %b = llm.attention %x, %x, %x {layer = 2 : i64, q_heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}

// -----

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{query head 1 reads KV head 0: only heads whose neighbours share a KV head, equally many each, can be split}}
  %b = llm.attention %x, %x, %x {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32, kv_head_of_q = array<i64: 0, 0>} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %x, %x {act = #llm.act<silu>} : tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
}
