// Which instruction set the kernels run with: the best one that both this build and this CPU have,
// or a lower one forced by the environment variable LLMRT_ISA=plain|avx2|avx512|avx512_bf16.
#pragma once

#include <vector>

namespace llmrt::cpu {

// Ordered: a machine that has one of them has all the lower ones. AMX would come after avx512_bf16.
enum class Isa { plain = 0, avx2 = 1, avx512 = 2, avx512_bf16 = 3 };

const char *isa_name(Isa isa);

// The instruction sets that this build and this CPU support, lowest first; never empty.
std::vector<Isa> available_isas();

// The one in use. The first call reads LLMRT_ISA; throws std::invalid_argument where it names an unknown
// instruction set or one that this machine lacks.
Isa current_isa();

// For tests and benches: switches every later kernel call of the process. Not while a kernel runs.
void force_isa(Isa isa);

} // namespace llmrt::cpu
