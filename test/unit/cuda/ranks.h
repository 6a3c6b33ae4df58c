// What tests of several ranks in one process share: how many ranks there are, which GPU each has, how much of a GPU they may fill
// where they share it, and logits whose columns are theirs.
#pragma once

#include "test/unit/cuda/device_data.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace llmrt::cuda::testing {

inline constexpr int kRankCounts[] = {2, 3, 4, 8}, kMostRanks = 8;

inline int devices() {
  int count = 0;
  cudaGetDeviceCount(&count);
  return count;
}
inline int device_of(int rank) { return rank % devices(); }
inline bool share_devices(int count) { return count > devices(); }

// How many blocks a rank's kernel may have so that all blocks of all ranks on a GPU run at once, each on a multiprocessor of its own: a
// block that waits keeps out the one that it waits for. `most` where no ranks share a GPU.
inline int64_t most_blocks(int count, int64_t most) {
  cudaDeviceProp prop{};
  cudaGetDeviceProperties(&prop, 0);
  const int together = (count + devices() - 1) / devices();
  return together == 1 ? most : std::min<int64_t>(most, prop.multiProcessorCount / together);
}

// CUDA reads these when it begins, which is later. Kernels that wait for each other on one GPU are all loaded before the first of them
// runs, for loading may wait for what runs, and no two ranks' streams go through one queue.
inline const bool ready_to_share = [] {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  return true;
}();

// Calls `give_up`, which is to tell ranks to stop waiting for each other, when they have had half a minute: a test fails and does not
// hang.
class GivesUpLate {
public:
  explicit GivesUpLate(std::function<void()> give_up)
      : thread_([give_up = std::move(give_up)](std::stop_token stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any woken;
          if (!woken.wait_for(lock, stop, std::chrono::seconds(30), [&] { return stop.stop_requested(); }))
            give_up();
        }) {}

private:
  std::jthread thread_;
};

// Logits f32 [rows, all columns] of which each rank has columns, unevenly many, and the token that is the best of each row: the lower
// one of two where ranks have the same value, and none in a row of NaN.
struct SpreadLogits {
  std::vector<int64_t> cols, first; // of each rank
  int64_t rows, all = 0;
  std::vector<float> values;
  std::vector<int32_t> best;

  SpreadLogits(int ranks, int64_t rows) : rows(rows) {
    constexpr int64_t kCols[kMostRanks] = {5000, 2999, 17, 4096, 1, 3001, 778, 2048};
    for (int rank = 0; rank < ranks; ++rank) {
      cols.push_back(kCols[rank]);
      first.push_back(all);
      all += kCols[rank];
    }
    values = random_floats(static_cast<size_t>(rows * all), 9);
    for (int64_t r = 0; r < rows; ++r) {
      float *row = values.data() + r * all;
      if (r % 4 == 1) // a tie between the first rank and the last
        row[123] = row[all - 1] = 50.0f;
      if (r % 4 == 2)
        row[all - 1] = 50.0f;
      if (r % 4 == 0) // each rank in turn
        row[first[static_cast<size_t>(r / 4 % ranks)]] = 50.0f;
      if (r == 3)
        std::fill(row, row + all, NAN);
      best.push_back(r == 3 ? -1 : static_cast<int32_t>(std::max_element(row, row + all) - row));
    }
  }
  std::vector<float> of(int rank) const {
    std::vector<float> mine;
    for (int64_t r = 0; r < rows; ++r) {
      const auto begin = values.begin() + r * all + first[static_cast<size_t>(rank)];
      mine.insert(mine.end(), begin, begin + cols[static_cast<size_t>(rank)]);
    }
    return mine;
  }
};

} // namespace llmrt::cuda::testing
