// RUN: %opt %s --dist-split-stages -verify-diagnostics -split-input-file

// What the pass refuses to cut.

// The pass runs behind dist-assign-mesh and needs limits

// expected-error@+1 {{needs dist.topology, dist.mesh and dist.limits}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a = llm.attention %x, %x, %x {dist.in = [#dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.replicated], layer = 0 : i64, llm.layer = 0 : i32, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %h : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{1 layers cannot be cut into 2 stages}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 2, devices = [0, 1]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %a = llm.attention %x, %x, %x {dist.in = [#dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.replicated], layer = 0 : i64, llm.layer = 0 : i32, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %h : tensor<?x8xf32>
}
}

// -----

// expected-error@+1 {{has no function @forward with a body}}
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func private @forward()
}

// -----

// Shardings are there, and for the ranks that there are

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{has no 'dist.in': run dist-assign-shardings first}}
  %a = llm.attention %x, %x, %x {layer = 0 : i64, llm.layer = 0 : i32, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %h : tensor<?x8xf32>
}
}

// -----

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{has tiles for 3 ranks, but a stage has 2}}
  %b = llm.add %x, %x {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.tiles<dim = 1, offsets = [0, 4, 6], sizes = [4, 2, 2]>]} : tensor<?x8xf32>
  %a = llm.attention %x, %x, %x {dist.in = [#dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.replicated], layer = 0 : i64, llm.layer = 0 : i32, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %h : tensor<?x8xf32>
}
}

// -----

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 2, pp = 1, devices = [0, 1]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{has tiles for 3 ranks, but a stage has 2}}
  %b = dist.slice %x {tiles = #dist.tiles<dim = 1, offsets = [0, 4, 6], sizes = [4, 2, 2]>} : tensor<?x8xf32> -> tensor<?x8xf32>
  %a = llm.attention %x, %x, %x {dist.in = [#dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.replicated], layer = 0 : i64, llm.layer = 0 : i32, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %h : tensor<?x8xf32>
}
}

// -----

// Layers are those that have an attention

module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>,
  dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %table: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %x = llm.embedding %ids, %table {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?xi32>, tensor<8x8xf32> -> tensor<?x8xf32>
  // expected-error@+1 {{belongs to layer 7 of a model of 1}}
  %b = llm.add %x, %x {llm.layer = 7 : i32, dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated]} : tensor<?x8xf32>
  %a = llm.attention %x, %x, %x {dist.in = [#dist.replicated, #dist.replicated, #dist.replicated], dist.out = [#dist.replicated], layer = 0 : i64, llm.layer = 0 : i32, q_heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, scale = 0.5 : f32} : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %h = llm.gated_act %a, %a {dist.in = [#dist.replicated, #dist.replicated], dist.out = [#dist.replicated], act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x8xf32>
  return {dist.in = [#dist.replicated], dist.out = []} %h : tensor<?x8xf32>
}
}
