// How much scratch the runtime's kernels ask for, and what they take, as the compiler knows it: the kernels' own formulas and limits,
// restated, because the compiler does not link kernels. A unit test holds each against the kernels' function.
#pragma once

#include <algorithm>
#include <cstdint>

namespace llmc::exec {

inline constexpr uint64_t ceilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
inline constexpr uint64_t roundUp(uint64_t a, uint64_t b) { return ceilDiv(a, b) * b; }

// --- CPU (kernels/cpu) --------------------------------------------------------------------------------------------

// Rows of the widest instruction set's register block; narrower ones need less.
inline constexpr uint64_t kCpuBlockRows = 14;

// linear.h: linear_scratch_bytes(). Rows of x packed in chunks of 64 bytes with a sum of each 32 columns, and a tile of
// results a thread.
inline uint64_t cpuLinearScratch(uint64_t team, uint64_t maxRows, uint64_t cols) {
  auto packed = [&](uint64_t rows) { return roundUp(rows * ceilDiv(cols, 32) * 33 * 4, 64); };
  auto tile = [](uint64_t rows) { return std::max<uint64_t>(rows * 2, 32) * 16 * 4; };
  uint64_t shared = std::min(maxRows, std::max(4 * kCpuBlockRows, 64 * team));
  uint64_t own = std::min(maxRows, 64 + kCpuBlockRows);
  return std::max(packed(shared) + team * tile(shared), team * (packed(own) + tile(own)));
}

// attention.h: attention_scratch_bytes(). A list of items, working memory a thread, and partial results where few long
// sequences are split over their keys.
inline uint64_t cpuAttentionScratch(uint64_t team, uint64_t qHeads, uint64_t kvHeads, uint64_t headDim, uint64_t maxTokens,
                                    uint64_t maxContext) {
  constexpr uint64_t itemRows = 112, splitRows = 16, splitKeys = 256, keyBlock = 64, itemBytes = 48;
  uint64_t dim = roundUp(headDim, 16), few = 4 * team, splits = ceilDiv(maxContext, splitKeys);
  uint64_t items = maxTokens * kvHeads + ceilDiv(maxTokens * qHeads, itemRows);
  uint64_t bytes = roundUp((qHeads + kvHeads + 1) * 4, 64) + roundUp((items + few * splits) * itemBytes, 64);
  uint64_t own = (3 * itemRows * dim + 4 * itemRows + kCpuBlockRows * keyBlock + 2 * keyBlock * dim) * 4;
  bytes += team * roundUp(own, 64);
  if (team > 1)
    bytes += few * roundUp(splitRows * splits * (headDim + 2) * 4, 64);
  return bytes;
}

// --- CUDA (kernels/cuda, runtime/exec/cuda) -----------------------------------------------------------------------

// rank.cpp: what cuBLASLt may use for a product.
inline constexpr uint64_t kCudaProductWorkspace = 32 << 20;
// linear.h: kSkinnyMaxRows and kWideMaxRows, up to which the kernels for few rows and for large weights serve a product;
// and what stands for every number of rows.
inline constexpr int64_t kCudaStreamRows = 16, kCudaWideRows = 128, kCudaAllRows = UINT32_MAX;
// What the kernels take: attention.h has attention() for head dimensions up to so many; rows.cu may keep a row of the residual in f32 in a
// block's shared memory, of which some devices have 99 KiB; and a step's tokens are the rows of a grid.
inline constexpr int64_t kCudaMostHeadDim = 256, kCudaMostResidual = 24 << 10, kCudaMostTokens = 65535;
// sample.h: SampleRow, of each row whose token is drawn on the device; rank.cpp: the tokens of two steps.
inline constexpr uint64_t kCudaSampleRowBytes = 32, kCudaTokenBytes = 2 * 4;

// attention.h: attention_workspace_bytes(). Counters, and partial results of sequences that are split over their keys.
inline uint64_t cudaAttentionScratch(uint64_t maxSeqs, uint64_t qHeads, uint64_t headDim) {
  constexpr uint64_t multiprocessors = 160, decodeRows = 16, counters = multiprocessors * decodeRows;
  return counters * 4 + (2 * multiprocessors + 2 * maxSeqs) * qHeads * decodeRows * (headDim + 2) * 4;
}

// rank_sum.h: what one_shot_all_reduce() takes, ring_shape(), one_shot_inbox() and two_shot_inbox(); pushed_sums.cpp: two words of state for each.
inline constexpr uint64_t kCudaOneShotRanks = 8, kCudaSumStates = 2 * 8;
inline constexpr int64_t kCudaOneShotRow = 64 << 10;
inline uint64_t cudaRings(uint64_t ranks, uint64_t rowBytes, uint64_t mostRows) {
  const uint64_t places = 4, slot = ceilDiv(rowBytes, 112) * 128, fit = std::clamp<uint64_t>((10 << 20) / (places * slot), 1, 512);
  const uint64_t blocks = std::min(mostRows, fit > 128 ? fit / 128 * 128 : fit);
  return (ranks - 1) * (blocks * places * slot + roundUp(blocks * places * 4, 256)) + blocks * 4;
}
inline uint64_t cudaOneShotInbox(uint64_t ranks, uint64_t mostBytes, uint64_t rowBytes, uint64_t mostRows) {
  const uint64_t pairs = (512 << 10) / (ranks - 1), lines = (2 << 20) / (ranks - 1);
  return 2 * ranks * (roundUp(2 * std::min(mostBytes, pairs), 256) +
                      roundUp((ceilDiv(std::min(mostBytes, lines), 112) + mostRows) * 128, 256)) +
         (mostBytes > pairs ? cudaRings(ranks, rowBytes, mostRows) : 0);
}
inline uint64_t cudaTwoShotInbox(uint64_t ranks, uint64_t mostBytes, uint64_t rowBytes, uint64_t mostRows) {
  return 2 * (ranks * (roundUp(mostBytes / ranks + rowBytes, 256) + roundUp(ceilDiv(mostRows, ranks) * 4, 256)) +
              roundUp(mostBytes, 256) + roundUp(mostRows * 4, 256));
}
// nccl_group.cpp: what NCCL 2.28 takes of a device to join a group and for its sums, and for each member that gathers send rows to
// or receive them from (itself counts). Measured between two H200 (bench_collectives); with more members the same count.
inline constexpr uint64_t kCudaNcclGroup = 860ull << 20, kCudaNcclPeer = 128ull << 20;
// world.cpp: a sum of ranks that meet on the host, in pieces of so much.
inline constexpr uint64_t kCudaMetScratch = 8 << 20;
// token_round.h: token_box_bytes().
inline uint64_t cudaTokenBox(uint64_t ranks, uint64_t maxLogitsRows) { return 2 * ranks * maxLogitsRows * 16; }

// inputs.cpp: the step's inputs, laid out in one block, and as the uploads of two steps.
inline uint64_t cudaStepInputs(uint64_t maxTokens, uint64_t maxSeqs, uint64_t maxLogitsRows, uint64_t maxModelLen,
                               uint64_t pageSize) {
  auto placed = [](uint64_t count, uint64_t size) { return roundUp(count * size, 256); };
  const uint64_t block = 2 * placed(maxTokens, 4) + placed(maxTokens, 8) + placed(maxSeqs + 1, 4) + placed(maxSeqs, 4) +
                         placed(maxLogitsRows, 4) + placed(maxSeqs * ceilDiv(maxModelLen, pageSize), 4);
  const uint64_t upload =
      block + placed(maxTokens, 4) + placed(maxSeqs + 1, 4) + placed(maxLogitsRows, kCudaSampleRowBytes);
  return block + 2 * upload;
}

} // namespace llmc::exec
