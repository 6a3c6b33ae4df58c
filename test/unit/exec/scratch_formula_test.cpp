// The compiler's restatement of the kernels' scratch against the kernels' own functions: never less for any instruction
// set, and the same for the widest.
#include <gtest/gtest.h>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear.h"
#include "passes/exec/KernelScratch.h"
#ifdef LLMRT_HAVE_CUDA
#include "kernels/cuda/kernels.h"
#endif

using namespace llmrt;

namespace {

constexpr uint64_t kTeams[] = {1, 2, 3, 8, 16, 64};
constexpr uint64_t kTokens[] = {1, 17, 64, 512, 8192};

// Calls check(kernel's bytes, compiler's bytes) for each instruction set of this machine; the last is the widest.
template <class Kernel> void compare(Kernel &&kernel, uint64_t compiler) {
  const cpu::Isa before = cpu::current_isa();
  uint64_t widest = 0;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::force_isa(isa);
    const uint64_t bytes = kernel();
    EXPECT_LE(bytes, compiler) << cpu::isa_name(isa);
    if (isa >= cpu::Isa::avx512)
      widest = bytes;
  }
  cpu::force_isa(before);
  if (widest != 0) {
    EXPECT_EQ(widest, compiler);
  }
}

TEST(ScratchFormula, CpuLinear) {
  for (const uint64_t team : kTeams)
    for (const uint64_t rows : kTokens)
      for (const uint64_t cols : {1, 31, 576, 1536, 18944}) {
        SCOPED_TRACE(std::to_string(team) + " threads, " + std::to_string(rows) + " x " + std::to_string(cols));
        compare([&] { return cpu::linear_scratch_bytes(static_cast<int>(team), static_cast<int64_t>(rows),
                                                       static_cast<int64_t>(cols)); },
                llmc::exec::cpuLinearScratch(team, rows, cols));
      }
}

TEST(ScratchFormula, CpuAttention) {
  for (const uint64_t team : kTeams)
    for (const uint64_t tokens : kTokens)
      for (const uint64_t context : {1, 256, 257, 131072})
        for (const auto &[q, kv, dim] : {std::tuple{1u, 1u, 16u}, std::tuple{9u, 3u, 64u}, std::tuple{7u, 7u, 100u},
                                         std::tuple{64u, 8u, 128u}}) {
          SCOPED_TRACE(std::to_string(team) + " threads, " + std::to_string(tokens) + " tokens, context " +
                       std::to_string(context) + ", heads " + std::to_string(q) + "/" + std::to_string(kv) + " of " +
                       std::to_string(dim));
          compare([&] { return cpu::attention_scratch_bytes(static_cast<int>(team), static_cast<int>(q),
                                                            static_cast<int>(kv), static_cast<int>(dim),
                                                            static_cast<int64_t>(tokens), static_cast<int64_t>(context)); },
                  llmc::exec::cpuAttentionScratch(team, q, kv, dim, tokens, context));
        }
}

#ifdef LLMRT_HAVE_CUDA
TEST(ScratchFormula, CudaAttention) {
  for (const int seqs : {1, 64, 256, 1024})
    for (const auto &[q, dim] : {std::pair{1, 64}, std::pair{9, 64}, std::pair{28, 128}, std::pair{64, 256}})
      EXPECT_EQ(cuda::attention_workspace_bytes(8192, seqs, q, dim),
                llmc::exec::cudaAttentionScratch(static_cast<uint64_t>(seqs), static_cast<uint64_t>(q),
                                                 static_cast<uint64_t>(dim)));
}

TEST(ScratchFormula, CudaInboxes) {
  for (const int ranks : {2, 3, 8})
    for (const int64_t bytes : {16ll, 7168ll, 65536ll, 4ll << 20})
      for (const int64_t rows : {1, 64, 585, 8192}) {
        const auto of = [](auto value) { return static_cast<uint64_t>(value); };
        for (const int64_t row : {16, 1152, 7168, 16384, 65536})
          EXPECT_EQ(of(cuda::one_shot_inbox(ranks, bytes, row, rows).bytes()),
                    llmc::exec::cudaOneShotInbox(of(ranks), of(bytes), of(row), of(rows)));
        EXPECT_EQ(of(cuda::two_shot_inbox(ranks, bytes, 7168, rows).bytes()),
                  llmc::exec::cudaTwoShotInbox(of(ranks), of(bytes), 7168, of(rows)));
        EXPECT_EQ(of(cuda::token_box_bytes(ranks, rows)), llmc::exec::cudaTokenBox(of(ranks), of(rows)));
      }
  EXPECT_TRUE(cuda::one_shot_takes(llmc::exec::kCudaOneShotRow / 2, llmc::exec::kCudaOneShotRow / 2, cuda::DType::bf16));
  EXPECT_FALSE(cuda::one_shot_takes(llmc::exec::kCudaOneShotRow / 2 + 8, llmc::exec::kCudaOneShotRow, cuda::DType::bf16));
  EXPECT_LE(llmc::exec::kCudaOneShotRanks, static_cast<uint64_t>(cuda::kMaxPeers));
}

TEST(ScratchFormula, CudaProducts) {
  EXPECT_EQ(cuda::kSkinnyMaxRows, llmc::exec::kCudaStreamRows);
  EXPECT_EQ(cuda::kWideMaxRows, llmc::exec::kCudaWideRows);
}

TEST(ScratchFormula, CudaDraws) {
  EXPECT_EQ(sizeof(cuda::SampleRow), llmc::exec::kCudaSampleRowBytes);
}
#endif

} // namespace
