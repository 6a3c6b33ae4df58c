#include "passes/analysis/Liveness.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <numeric>

using namespace llmc;

uint64_t llmc::planArena(llvm::MutableArrayRef<LiveRange> ranges, uint64_t alignment) {
  auto aligned = [&](uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
  llvm::SmallVector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return ranges[a].bytes > ranges[b].bytes; });

  // For each op, the placed ranges that are alive at it; a range meets all its neighbours in the lists of its ops.
  int64_t ops = 0;
  for (const LiveRange &range : ranges)
    ops = std::max(ops, range.lastOp + 1);
  llvm::SmallVector<llvm::SmallVector<size_t, 8>, 0> alive(ops);

  uint64_t size = 0;
  llvm::SmallVector<bool> seen(ranges.size(), false);
  for (size_t index : order) {
    LiveRange &range = ranges[index];
    llvm::SmallVector<size_t> neighbours;
    for (int64_t op = range.firstOp; op <= range.lastOp; ++op)
      for (size_t other : alive[op])
        if (!seen[other]) {
          seen[other] = true;
          neighbours.push_back(other);
        }
    llvm::sort(neighbours, [&](size_t a, size_t b) { return ranges[a].offset < ranges[b].offset; });
    uint64_t offset = 0;
    for (size_t other : neighbours) {
      seen[other] = false;
      if (offset + range.bytes <= ranges[other].offset)
        continue; // fits in front; keep looking only to reset the marks
      offset = std::max(offset, aligned(ranges[other].offset + ranges[other].bytes));
    }
    range.offset = offset;
    size = std::max(size, aligned(offset + range.bytes));
    for (int64_t op = range.firstOp; op <= range.lastOp; ++op)
      alive[op].push_back(index);
  }
  return size;
}
