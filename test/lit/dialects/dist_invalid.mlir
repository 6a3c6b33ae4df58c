// RUN: %opt %s -verify-diagnostics -split-input-file

// Every sentence of the dist verifiers, once.

// The topology

// expected-error@+1 {{device cpu0 is on host 1 of 1}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 1, memory = 1, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {}

// -----

// expected-error@+1 {{device cpu0 is on host -1 of 1}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = -1, memory = 1, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {}

// -----

// expected-error@+1 {{link 0-1 does not join two of 1 devices}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [#dist.link<a = 0, b = 1, kind = "SYS", bandwidth = 1.0e9, latency = 1.0e-6, p2p = true>]>} {}

// -----

// expected-error@+1 {{link 0-0 does not join two of 1 devices}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [#dist.link<a = 0, b = 0, kind = "SYS", bandwidth = 1.0e9, latency = 1.0e-6, p2p = true>]>} {}

// -----

// The mesh

// expected-error@+1 {{a mesh of tp 2 x pp 2 needs as many devices, but has 3}}
module attributes {dist.mesh = #dist.mesh<tp = 2, pp = 2, devices = [0, 1, 2]>} {}

// -----

// expected-error@+1 {{a mesh of tp 0 x pp 1 needs as many devices, but has 1}}
module attributes {dist.mesh = #dist.mesh<tp = 0, pp = 1, devices = [0]>} {}

// -----

// expected-error@+1 {{a mesh counts devices from 0, but names -1}}
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [-1]>} {}

// -----

// expected-error@+1 {{the mesh names device 1 of 1}}
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [1]>, dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {}

// -----

// Limits

// expected-error@+1 {{limits must all be at least 1}}
module attributes {dist.limits = #dist.limits<max_model_len = 1, max_num_seqs = 1, max_batched_tokens = 1, max_logits_rows = 1, page_size = 0, memory_utilization = 0.5, kv_dtype = f32>} {}

// -----

// expected-error@+1 {{limits must all be at least 1}}
module attributes {dist.limits = #dist.limits<max_model_len = 1, max_num_seqs = 1, max_batched_tokens = 1, max_logits_rows = -1, page_size = 1, memory_utilization = 0.5, kv_dtype = f32>} {}

// -----

// expected-error@+1 {{memory_utilization 1.5}}
module attributes {dist.limits = #dist.limits<max_model_len = 1, max_num_seqs = 1, max_batched_tokens = 1, max_logits_rows = 1, page_size = 1, memory_utilization = 1.5, kv_dtype = f32>} {}

// -----

// expected-error@+1 {{memory_utilization 0}}
module attributes {dist.limits = #dist.limits<max_model_len = 1, max_num_seqs = 1, max_batched_tokens = 1, max_logits_rows = 1, page_size = 1, memory_utilization = 0.0, kv_dtype = f32>} {}

// -----

// Tiles

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tiles need a dimension and as many offsets as sizes, but have dim 1, 2 offsets and 1 sizes}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [32]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tiles need a dimension and as many offsets as sizes, but have dim -1, 1 offsets and 1 sizes}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = -1, offsets = [0], sizes = [32]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tile 1 is [16, +0), which holds nothing}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 16], sizes = [16, 0]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tile 2 starts at 0, before tile 1}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 8, 0], sizes = [8, 24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tiles leave [16, 24) to no rank}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [16, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tiles leave [0, 8) to no rank}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [8], sizes = [24]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

// Gathers

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{cannot gather tiles that overlap}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 8], sizes = [24, 24]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{has 3 ranks for 2 tiles}}
  %y = dist.all_gather %x {group = array<i64: 0, 1, 2>, seq = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{cannot gather tiles that overlap}}
  %y = dist.gather %x {root = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 8], sizes = [24, 24]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{root 2 is not among 2 members}}
  %y = dist.gather %x {root = 2 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{root -1 is not among 2 members}}
  %y = dist.gather %x {root = -1 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x16xf32>) {
  // expected-error@+1 {{'tensor<?x16xf32>' is neither whole nor one of the tiles}}
  %y = dist.gather %x {root = 0 : i64, tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x16xf32> -> tensor<?x32xf32>
  return
}

// -----

// What tiles and types must agree on

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tiles dimension 2, which 'tensor<?x32xf32>' and 'tensor<?x32xf32>' do not both have}}
  %y = dist.slice %x {tiles = #dist.tiles<dim = 2, offsets = [0], sizes = [32]>} : tensor<?x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{tiles dimension 0, which 'tensor<?x32xf32>' and 'tensor<32xf32>' do not both have}}
  %y = dist.slice %x {tiles = #dist.tiles<dim = 0, offsets = [0], sizes = [32]>} : tensor<?x32xf32> -> tensor<32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x48xf32>) {
  // expected-error@+1 {{tiles cover 32 elements of dimension 1 of 'tensor<?x48xf32>'}}
  %y = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x48xf32> -> tensor<?x48xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'tensor<?x32xf32>' and 'tensor<?x24xf16>' may differ in dimension 1 alone}}
  %y = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x24xf16>
  return
}

// -----

func.func @f(%x: tensor<4x24xf32>) {
  // expected-error@+1 {{'tensor<?x32xf32>' and 'tensor<4x24xf32>' may differ in dimension 1 alone}}
  %y = dist.all_gather %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<4x24xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'tensor<?x16xf32>' is neither whole nor one of the tiles}}
  %y = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>} : tensor<?x32xf32> -> tensor<?x16xf32>
  return
}

// -----

// dist.transfer

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{goes from stage 1 to itself}}
  %y = dist.transfer %x {from = 1 : i64, to = 1 : i64} : tensor<?x32xf32>
  return
}

// -----

// Shardings of ops

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'dist.in' must hold 2 shardings, but is [#dist.replicated]}}
  %y = llm.add %x, %x {dist.in = [#dist.replicated]} : tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'dist.out' must hold 1 shardings, but is [3]}}
  %y = llm.add %x, %x {dist.out = [3]} : tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'dist.out' has tiles over 48 elements of dimension 1 of 'tensor<?x32xf32>'}}
  %y = llm.add %x, %x {dist.out = [#dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 24]>]} : tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: f32) -> f32 {
  // expected-error@+1 {{'dist.in' tiles a value of 'f32'}}
  return {dist.in = [#dist.tiles<dim = 1, offsets = [0, 24], sizes = [24, 8]>]} %x : f32
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'dist.stage' must be a non-negative integer}}
  %y = llm.add %x, %x {dist.stage = -1 : i64} : tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{unknown attribute 'dist.colour' of the dist dialect}}
  %y = llm.add %x, %x {dist.colour = 1 : i64} : tensor<?x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>) {
  // expected-error@+1 {{'dist.mesh' must be a #dist.mesh on a module}}
  %y = llm.add %x, %x {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} : tensor<?x32xf32>
  return
}

// -----

// expected-error@+1 {{'dist.topology' must be a #dist.topology on a module}}
module attributes {dist.topology = 3 : i64} {}

// -----

// expected-error@+1 {{'dist.limits' must be a #dist.limits on a module}}
module attributes {dist.limits = #dist.replicated} {}

// -----

// expected-error@+1 {{'dist.rank' must be a non-negative integer}}
func.func private @f() attributes {dist.rank = "0"}
