// RUN: %opt %s --exec-select-kernels="keep-quantized=true" | FileCheck %s
// RUN: %opt %s --exec-select-kernels | FileCheck %s --check-prefix=WIDE

// Which weights of a CPU rank stay in the block format of their file. Unless asked, none does.

// WIDE-NOT: exec.quant
module attributes {dist.mesh = #dist.mesh<tp = 1, pp = 1, devices = [0]>,
  dist.topology = #dist.topology<name = "t", hosts = ["h"], devices = [#dist.device<id = "cpu0", kind = "cpu", name = "", uuid = "", pci = "", host = 0, memory = 1073741824, reserved = 0, capability = 0, bandwidth = 1.0e10, flops = 1.0e11>], links = []>} {
exec.program @rank0 attributes {rank = 0 : i64, stage = 0 : i64, tp_index = 0 : i64, device = 0 : i64} {
  // Q8_0 and Q4_1 stay as they are; Q4_0 becomes Q4_1, whose offset holds its constant one.
  // CHECK: exec.weight "q8" {{.*}} : <16, 64, !exec.quant<q8_0>, packed16>
  %q8 = exec.weight "q8" {parts = [#exec.part<name = "a", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q8_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 64, bf16, row_major>
  // CHECK: exec.weight "q4_1" {{.*}} : <16, 64, !exec.quant<q4_1>, packed16>
  %q4_1 = exec.weight "q4_1" {parts = [#exec.part<name = "b", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q4_1", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 64, bf16, row_major>
  // CHECK: exec.weight "q4_0" {{.*}} : <16, 64, !exec.quant<q4_1>, packed16>
  %q4_0 = exec.weight "q4_0" {parts = [#exec.part<name = "c", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q4_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 64, bf16, row_major>
  // Stacked parts stay if they are of one format, and if every part is.
  // CHECK: exec.weight "stacked" {{.*}} : <32, 64, !exec.quant<q4_1>, packed16>
  %stacked = exec.weight "stacked" {parts = [#exec.part<name = "d", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q4_1", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>, #exec.part<name = "e", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q4_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 16, dst_col = 0>]} : !exec.weight<32, 64, bf16, row_major>
  // CHECK: exec.weight "mixed" {{.*}} : <32, 64, bf16, packed16>
  %mixed = exec.weight "mixed" {parts = [#exec.part<name = "f", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q4_1", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>, #exec.part<name = "g", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q8_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 16, dst_col = 0>]} : !exec.weight<32, 64, bf16, row_major>
  // CHECK: exec.weight "half" {{.*}} : <32, 64, bf16, packed16>
  %half = exec.weight "half" {parts = [#exec.part<name = "h", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q8_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>, #exec.part<name = "i", tensor = <file = 0, offset = 0, bytes = 0, dtype = "bf16", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 16, dst_col = 0>]} : !exec.weight<32, 64, bf16, row_major>
  // A format without a kernel is widened.
  // CHECK: exec.weight "k_quant" {{.*}} : <16, 64, bf16, packed16>
  %k_quant = exec.weight "k_quant" {parts = [#exec.part<name = "j", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q4_k", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 64, bf16, row_major>
  // So is a part that does not begin and end with blocks; one that does stays.
  // CHECK: exec.weight "cut" {{.*}} : <16, 48, bf16, packed16>
  %cut = exec.weight "cut" {parts = [#exec.part<name = "k", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q8_0", shape = [16, 96]>, box = <row = 0, rows = 16, col = 48, cols = 48, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 48, bf16, row_major>
  // CHECK: exec.weight "cut_well" {{.*}} : <16, 32, !exec.quant<q8_0>, packed16>
  %cut_well = exec.weight "cut_well" {parts = [#exec.part<name = "l", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q8_0", shape = [16, 96]>, box = <row = 0, rows = 16, col = 32, cols = 32, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 32, bf16, row_major>
  // A table that is only looked up is not packed, so it is widened.
  // CHECK: exec.weight "lookup" {{.*}} : <16, 64, bf16, row_major>
  %lookup = exec.weight "lookup" {parts = [#exec.part<name = "m", tensor = <file = 0, offset = 0, bytes = 0, dtype = "q8_0", shape = [16, 64]>, box = <row = 0, rows = 16, col = 0, cols = 64, replica = false>, dst_row = 0, dst_col = 0>]} : !exec.weight<16, 64, bf16, row_major>
  %x64 = exec.buffer "x64" : !exec.buffer<tokens, 64, f32>
  %x48 = exec.buffer "x48" : !exec.buffer<tokens, 48, f32>
  %x32 = exec.buffer "x32" : !exec.buffer<tokens, 32, f32>
  %y16 = exec.buffer "y16" : !exec.buffer<tokens, 16, f32>
  %y32 = exec.buffer "y32" : !exec.buffer<tokens, 32, f32>
  exec.embedding %lookup into %x64 : !exec.weight<16, 64, bf16, row_major>, !exec.buffer<tokens, 64, f32>
  exec.linear %x64, %q8 into %y16 : !exec.buffer<tokens, 64, f32>, !exec.weight<16, 64, bf16, row_major>, !exec.buffer<tokens, 16, f32>
  exec.linear %x64, %q4_1 into %y16 : !exec.buffer<tokens, 64, f32>, !exec.weight<16, 64, bf16, row_major>, !exec.buffer<tokens, 16, f32>
  exec.linear %x64, %q4_0 into %y16 : !exec.buffer<tokens, 64, f32>, !exec.weight<16, 64, bf16, row_major>, !exec.buffer<tokens, 16, f32>
  exec.linear %x64, %stacked into %y32 : !exec.buffer<tokens, 64, f32>, !exec.weight<32, 64, bf16, row_major>, !exec.buffer<tokens, 32, f32>
  exec.linear %x64, %mixed into %y32 : !exec.buffer<tokens, 64, f32>, !exec.weight<32, 64, bf16, row_major>, !exec.buffer<tokens, 32, f32>
  exec.linear %x64, %half into %y32 : !exec.buffer<tokens, 64, f32>, !exec.weight<32, 64, bf16, row_major>, !exec.buffer<tokens, 32, f32>
  exec.linear %x64, %k_quant into %y16 : !exec.buffer<tokens, 64, f32>, !exec.weight<16, 64, bf16, row_major>, !exec.buffer<tokens, 16, f32>
  exec.linear %x48, %cut into %y16 : !exec.buffer<tokens, 48, f32>, !exec.weight<16, 48, bf16, row_major>, !exec.buffer<tokens, 16, f32>
  exec.linear %x32, %cut_well into %y16 : !exec.buffer<tokens, 32, f32>, !exec.weight<16, 32, bf16, row_major>, !exec.buffer<tokens, 16, f32>
}
}
