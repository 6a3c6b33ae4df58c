// Two layers as an importer writes them, with norms on q and k and one table for both ends, and four CPU ranks to run them.
module attributes {dist.topology = #dist.topology<name = "t", hosts = ["h0"], devices = [
    #dist.device<id = "d0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 4194304, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d1", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 4194304, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d2", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 4194304, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>,
    #dist.device<id = "d3", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 4194304, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = [
    #dist.link<a = 0, b = 1, kind = "HOST", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 2, kind = "HOST", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 0, b = 3, kind = "HOST", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 2, kind = "HOST", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 1, b = 3, kind = "HOST", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>,
    #dist.link<a = 2, b = 3, kind = "HOST", bandwidth = 1.0e10, latency = 1.0e-6, p2p = true>]>,
  dist.limits = #dist.limits<max_model_len = 64, max_num_seqs = 4, max_batched_tokens = 16, max_logits_rows = 4, page_size = 16, memory_utilization = 1.0, kv_dtype = f32>} {
func.func @forward(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
  %table = llm.weight "table" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>} : tensor<64x16xf32>
  %x0 = llm.embedding %ids, %table : tensor<?xi32>, tensor<64x16xf32> -> tensor<?x16xf32>
  %n0 = llm.weight "l0.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>, llm.layer = 0 : i32} : tensor<16xf32>
  %y0 = llm.rms_norm %x0, %n0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq0 = llm.weight "l0.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 16]>, llm.layer = 0 : i32} : tensor<16x16xf32>
  %q0 = llm.linear %y0 weights(%wq0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %wk0 = llm.weight "l0.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 16]>, llm.layer = 0 : i32} : tensor<8x16xf32>
  %k0 = llm.linear %y0 weights(%wk0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<8x16xf32>) -> (tensor<?x8xf32>)
  %wv0 = llm.weight "l0.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 16]>, llm.layer = 0 : i32} : tensor<8x16xf32>
  %v0 = llm.linear %y0 weights(%wv0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<8x16xf32>) -> (tensor<?x8xf32>)
  %hq0 = llm.weight "l0.qn" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>, llm.layer = 0 : i32} : tensor<8xf32>
  %hk0 = llm.weight "l0.kn" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>, llm.layer = 0 : i32} : tensor<8xf32>
  %qn0 = llm.head_norm %q0, %hq0 {head_dim = 8 : i64, eps = 1.0e-6 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<8xf32>
  %kn0 = llm.head_norm %k0, %hk0 {head_dim = 8 : i64, eps = 1.0e-6 : f32, llm.layer = 0 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %qr0, %kr0 = llm.rope %qn0, %kn0, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a0 = llm.attention %qr0, %kr0, %v0 {layer = 0 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo0 = llm.weight "l0.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 16]>, llm.layer = 0 : i32} : tensor<16x16xf32>
  %o0 = llm.linear %a0 weights(%wo0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %s0 = llm.add %x0, %o0 {llm.layer = 0 : i32} : tensor<?x16xf32>
  %m0 = llm.weight "l0.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>, llm.layer = 0 : i32} : tensor<16xf32>
  %z0 = llm.rms_norm %s0, %m0 {eps = 1.0e-5 : f32, llm.layer = 0 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg0 = llm.weight "l0.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>, llm.layer = 0 : i32} : tensor<64x16xf32>
  %g0 = llm.linear %z0 weights(%wg0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  %wu0 = llm.weight "l0.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>, llm.layer = 0 : i32} : tensor<64x16xf32>
  %u0 = llm.linear %z0 weights(%wu0) {llm.layer = 0 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  %h0 = llm.gated_act %g0, %u0 {act = #llm.act<silu>, llm.layer = 0 : i32} : tensor<?x64xf32>
  %wd0 = llm.weight "l0.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 64]>, llm.layer = 0 : i32} : tensor<16x64xf32>
  %d0 = llm.linear %h0 weights(%wd0) {llm.layer = 0 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %r0 = llm.add %s0, %d0 {llm.layer = 0 : i32} : tensor<?x16xf32>
  %n1 = llm.weight "l1.norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>, llm.layer = 1 : i32} : tensor<16xf32>
  %y1 = llm.rms_norm %r0, %n1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wq1 = llm.weight "l1.q" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 16]>, llm.layer = 1 : i32} : tensor<16x16xf32>
  %q1 = llm.linear %y1 weights(%wq1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %wk1 = llm.weight "l1.k" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 16]>, llm.layer = 1 : i32} : tensor<8x16xf32>
  %k1 = llm.linear %y1 weights(%wk1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<8x16xf32>) -> (tensor<?x8xf32>)
  %wv1 = llm.weight "l1.v" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8, 16]>, llm.layer = 1 : i32} : tensor<8x16xf32>
  %v1 = llm.linear %y1 weights(%wv1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<8x16xf32>) -> (tensor<?x8xf32>)
  %hq1 = llm.weight "l1.qn" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>, llm.layer = 1 : i32} : tensor<8xf32>
  %hk1 = llm.weight "l1.kn" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [8]>, llm.layer = 1 : i32} : tensor<8xf32>
  %qn1 = llm.head_norm %q1, %hq1 {head_dim = 8 : i64, eps = 1.0e-6 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<8xf32>
  %kn1 = llm.head_norm %k1, %hk1 {head_dim = 8 : i64, eps = 1.0e-6 : f32, llm.layer = 1 : i32} : tensor<?x8xf32>, tensor<8xf32>
  %qr1, %kr1 = llm.rope %qn1, %kn1, %positions {head_dim = 8 : i64, rotary_dim = 2 : i64, style = #llm.rope_style<neox>, inv_freq = array<f32: 1.0>, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?xi32>
  %a1 = llm.attention %qr1, %kr1, %v1 {layer = 1 : i64, q_heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, scale = 0.35 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  %wo1 = llm.weight "l1.o" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 16]>, llm.layer = 1 : i32} : tensor<16x16xf32>
  %o1 = llm.linear %a1 weights(%wo1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<16x16xf32>) -> (tensor<?x16xf32>)
  %s1 = llm.add %r0, %o1 {llm.layer = 1 : i32} : tensor<?x16xf32>
  %m1 = llm.weight "l1.ffn_norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>, llm.layer = 1 : i32} : tensor<16xf32>
  %z1 = llm.rms_norm %s1, %m1 {eps = 1.0e-5 : f32, llm.layer = 1 : i32} : tensor<?x16xf32>, tensor<16xf32>
  %wg1 = llm.weight "l1.gate" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>, llm.layer = 1 : i32} : tensor<64x16xf32>
  %g1 = llm.linear %z1 weights(%wg1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  %wu1 = llm.weight "l1.up" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [64, 16]>, llm.layer = 1 : i32} : tensor<64x16xf32>
  %u1 = llm.linear %z1 weights(%wu1) {llm.layer = 1 : i32} : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  %h1 = llm.gated_act %g1, %u1 {act = #llm.act<silu>, llm.layer = 1 : i32} : tensor<?x64xf32>
  %wd1 = llm.weight "l1.down" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16, 64]>, llm.layer = 1 : i32} : tensor<16x64xf32>
  %d1 = llm.linear %h1 weights(%wd1) {llm.layer = 1 : i32} : tensor<?x64xf32>, (tensor<16x64xf32>) -> (tensor<?x16xf32>)
  %r1 = llm.add %s1, %d1 {llm.layer = 1 : i32} : tensor<?x16xf32>
  %nf = llm.weight "norm" {tensor = #llm.tensor<file = -1, offset = 0, bytes = 0, dtype = "f32", shape = [16]>} : tensor<16xf32>
  %yf = llm.rms_norm %r1, %nf {eps = 1.0e-5 : f32} : tensor<?x16xf32>, tensor<16xf32>
  %sel = llm.select_rows %yf, %rows : tensor<?x16xf32>, tensor<?xi32>
  %logits = llm.linear %sel weights(%table) : tensor<?x16xf32>, (tensor<64x16xf32>) -> (tensor<?x64xf32>)
  return %logits : tensor<?x64xf32>
}
}
