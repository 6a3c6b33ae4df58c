// Where to cut a row of layers into pipeline stages. Pure arithmetic: dist-split-stages gathers the numbers.
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace llmc {

// Costs by rank of a stage (tp index), for one layer or for what stands before or behind the layers.
struct LayerCost {
  llvm::SmallVector<uint64_t> weightBytes; // [tp]
  llvm::SmallVector<uint64_t> kvBytes;     // [tp], per token
};

struct RankDevice {
  double bandwidth = 1;     // bytes/s
  uint64_t budgetBytes = 0; // for weights and KV cache
};

struct StageCutProblem {
  int64_t tp = 1, stages = 1;
  llvm::SmallVector<LayerCost> layers;
  LayerCost head;  // embedding: always on the first stage
  LayerCost tail;  // final norm and lm_head: always on the last
  bool tied = false; // with one stage head and tail share a table, which then counts once (in `head`)
  llvm::SmallVector<llvm::SmallVector<RankDevice>> devices; // [stages][tp]
};

struct StageCuts {
  llvm::SmallVector<int64_t> firstLayer; // [stages]; stage s runs layers firstLayer[s] .. firstLayer[s+1]-1
  double slowestSeconds = 0;             // weight bytes over bandwidth, the slowest rank of the slowest stage
  double kvTokens = 0;                   // smallest capacity over ranks; negative: weights alone do not fit
};

// Minimises the slowest stage, then (among cuts within 0.1% of that) maximises the smallest KV capacity; cuts whose
// weights do not fit lose to all that fit. Precondition: 1 <= stages <= layers.
StageCuts cutStages(const StageCutProblem &problem);

} // namespace llmc
