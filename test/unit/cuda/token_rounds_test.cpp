// Tokens that ranks find together, each in its own columns of the logits, and tokens that one of them hands to the others: a thread a
// rank, over as many GPUs as there are, several ranks on one where there are too few.
#include "test/unit/cuda/ranks.h"

#include <array>
#include <barrier>
#include <memory>
#include <stdexcept>

namespace llmrt::cuda::testing {
namespace {

constexpr int64_t kMostRows = 128;
constexpr int kBlocksOfARow = 8; // at most, of greedy tokens

class Group {
public:
  explicit Group(int count) : count_(count) {
    for (int r = 0; r < count; ++r) {
      cudaSetDevice(device_of(r));
      for (int other = 0; other < std::min(count, devices()); ++other)
        if (other != device_of(r) && cudaDeviceEnablePeerAccess(other, 0) == cudaErrorPeerAccessAlreadyEnabled)
          cudaGetLastError();
      const size_t bytes = static_cast<size_t>(token_box_bytes(count, kMostRows));
      cudaMalloc(&boxes_[r], bytes);
      cudaMemset(boxes_[r], 0, bytes);
      cudaDeviceSynchronize();
    }
    cudaHostAlloc(reinterpret_cast<void **>(&host_), 64 * 4, cudaHostAllocPortable);
    std::memset(host_, 0, 64 * 4);
  }
  ~Group() {
    for (int r = 0; r < count_; ++r)
      cudaFree(boxes_[r]);
    cudaFreeHost(host_);
  }
  bool given_up() const { return host_[63] != 0; }
  void give_up() { std::atomic_ref(host_[63]).store(1); }
  uint32_t at(int rank) const { return host_[rank]; }

  TokenRound round(int rank, uint32_t call, const DeviceBytes &tokens, int64_t rows) const {
    TokenRound round{};
    round.tokens = tokens.as<int32_t>(), round.R = rows;
    round.rank = rank, round.count = count_;
    std::copy(boxes_.begin(), boxes_.end(), round.box);
    round.most_rows = kMostRows, round.call = call;
    round.number = 70 + call, round.at = host_ + rank, round.given_up = host_ + 63;
    return round;
  }

private:
  int count_;
  std::array<void *, kMaxPeers> boxes_{};
  uint32_t *host_ = nullptr;
};

// Calls `work(rank, stream)` in a thread for each rank, with its device current, once all have their streams.
template <typename Work> void on_all(int count, Work &&work) {
  std::atomic<int> failed{0};
  std::barrier together(count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      cudaSetDevice(device_of(rank));
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      together.arrive_and_wait();
      try {
        work(rank, stream);
      } catch (const std::exception &) {
        ++failed;
      }
      failed += cudaStreamSynchronize(stream) != cudaSuccess;
      cudaStreamDestroy(stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 0) << "launches or runs that failed";
}

// A buffer of tokens, that holds `fill`, on each rank's GPU.
std::vector<std::unique_ptr<DeviceBytes>> tokens_of(int count, int32_t fill) {
  const std::vector<int32_t> tokens(kMostRows, fill);
  std::vector<std::unique_ptr<DeviceBytes>> all;
  for (int rank = 0; rank < count; ++rank) {
    cudaSetDevice(device_of(rank));
    all.push_back(std::make_unique<DeviceBytes>(tokens.data(), tokens.size() * 4));
    cudaDeviceSynchronize();
  }
  return all;
}

TEST(TokenRounds, AllRanksFindTheBest) {
  for (int count : kRankCounts) {
    SCOPED_TRACE(::testing::Message() << count << " ranks");
    const int64_t rows = std::max<int64_t>(1, most_blocks(count, kMostRows * kBlocksOfARow) / kBlocksOfARow);
    const SpreadLogits logits(count, rows);
    const auto tokens = tokens_of(count, -5);
    std::vector<std::unique_ptr<DeviceBytes>> parts;
    for (int rank = 0; rank < count; ++rank) {
      cudaSetDevice(device_of(rank));
      const std::vector<float> part = logits.of(rank);
      parts.push_back(std::make_unique<DeviceBytes>(part.data(), part.size() * 4));
      cudaDeviceSynchronize();
    }
    Group group(count);
    {
      const GivesUpLate late([&] { group.give_up(); });
      on_all(count, [&](int rank, cudaStream_t stream) {
        const int64_t cols = logits.cols[static_cast<size_t>(rank)], first = logits.first[static_cast<size_t>(rank)];
        uint32_t call = 0;
        for (int64_t R : {int64_t{1}, rows, rows}) {
          sample_greedy_of_ranks(group.round(rank, ++call, *tokens[rank], R), parts[rank]->as<float>(), cols, cols, first, stream);
          if (share_devices(count) && cudaStreamSynchronize(stream) != cudaSuccess) // one at a time: see most_blocks()
            throw std::runtime_error("a call failed");
        }
      });
    }
    ASSERT_FALSE(group.given_up()) << "ranks waited for each other in vain";
    for (int rank = 0; rank < count; ++rank) {
      auto got = tokens[rank]->read<int32_t>();
      got.resize(static_cast<size_t>(rows));
      EXPECT_EQ(got, logits.best) << "rank " << rank;
      EXPECT_EQ(group.at(rank), 73u) << "rank " << rank;
    }
  }
  ASSERT_CUDA(cudaSetDevice(0));
}

TEST(TokenRounds, EveryRankHandsItsTokensRound) {
  for (int count : kRankCounts) {
    SCOPED_TRACE(::testing::Message() << count << " ranks");
    Group group(count);
    uint32_t call = 0;
    for (int root = 0; root < count; ++root) {
      SCOPED_TRACE(::testing::Message() << "root " << root);
      std::vector<int32_t> drawn(kMostRows, -1); // a row may have no token
      for (int32_t i = 1; i < kMostRows; ++i)
        drawn[static_cast<size_t>(i)] = 1000 * i + root;
      const auto tokens = tokens_of(count, -5);
      ASSERT_CUDA(cudaMemcpy(tokens[root]->get(), drawn.data(), drawn.size() * 4, cudaMemcpyHostToDevice));
      {
        const GivesUpLate late([&] { group.give_up(); });
        for (int64_t R : {kMostRows, kMostRows - 27}) { // between two calls the ranks wait for each other
          ++call;
          on_all(count, [&](int rank, cudaStream_t stream) {
            hand_round_tokens(group.round(rank, call, *tokens[rank], R), root, stream);
          });
        }
      }
      ASSERT_FALSE(group.given_up()) << "ranks waited for each other in vain";
      for (int rank = 0; rank < count; ++rank)
        EXPECT_EQ(tokens[rank]->read<int32_t>(), drawn) << "rank " << rank;
    }
  }
  ASSERT_CUDA(cudaSetDevice(0));
}

} // namespace
} // namespace llmrt::cuda::testing
