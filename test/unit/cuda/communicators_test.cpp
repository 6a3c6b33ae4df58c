// Every way that ranks talk (one shot, two, NCCL, meeting on the host over P2P, host memory), by a thread a rank: sums of many sizes
// agree with double precision; all ranks have the same bits; gathered columns and tokens arrive as they were. Where there are too few
// GPUs for all ranks to have one, ranks share them, and do what `llmrt --share-devices` does: kernels that wait for other ranks are not
// used then (rank_sum_test.cpp and token_rounds_test.cpp have ours all the same).
#include "test/unit/cuda/team.h"

#include <cmath>
#include <tuple>

namespace llmrt::exec::cuda {
namespace {

using llmrt::cuda::DType;
using testing::Team;
using namespace llmrt::cuda::testing;

class Communicators : public ::testing::TestWithParam<std::tuple<Collectives, int>> {
protected:
  const Collectives way_ = std::get<0>(GetParam());
  const uint32_t count_ = static_cast<uint32_t>(std::get<1>(GetParam()));
  const bool shared_ = share_devices(std::get<1>(GetParam()));
  const bool pushes_ = !shared_ && (way_ == Collectives::Auto || way_ == Collectives::Peer); // kernels that wait for other ranks

  void SetUp() override {
    const bool reach = pushes_ || way_ == Collectives::Peer;
    for (int a = 0; reach && a < std::min(std::get<1>(GetParam()), devices()); ++a)
      for (int b = 0; b < a; ++b)
        if (!can_access(a, b) || !can_access(b, a))
          GTEST_SKIP() << "GPUs " << a << " and " << b << " do not reach each other's memory";
  }
  static void TearDownTestSuite() { Team::dismiss_all(); }
};

struct Sum {
  DType type;
  int64_t T, H;
  std::vector<std::unique_ptr<Tensor>> parts = {}; // of each rank, and in their place the sums
  std::vector<int> shots = {};                     // 0: not pushed
};

TEST_P(Communicators, SumsAgree) {
  Team &team = Team::of(way_, count_);
  std::vector<Sum> sums;
  for (DType type : {DType::bf16, DType::f32})
    // Fewer rows than ranks, as many, and numbers of rows and columns that no number of ranks divides; of 1,001 columns, rows are no
    // whole chunks; the last are more bytes than are pushed, and of 600 rows more than ranks that meet sum at once.
    for (const auto &[T, H] : std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {1, 4096}, {3, 576}, {5, 4096}, {9, 4088}, {7, 1001},
                                                                      {8, 2048}, {61, 3592}, {64, 3584}, {100, 4096}, {600, 4096}})
      sums.push_back({type, T, H});
  for (Sum &sum : sums)
    sum.parts.resize(count_), sum.shots.resize(count_);
  team.run([&](uint32_t rank, RankLink &, cudaStream_t) {
    for (Sum &sum : sums)
      sum.parts[rank] = std::make_unique<Tensor>(static_cast<size_t>(sum.T * sum.H), sum.type, 40 + rank);
    LLMRT_CHECK(cudaDeviceSynchronize());
  });
  team.run([&](uint32_t rank, RankLink &link, cudaStream_t stream) {
    uint32_t seq = 3;
    for (Sum &sum : sums) {
      const DevicePart part{sum.parts[rank]->device.as<std::byte>(), sum.H, sum.T, sum.H, sum.type};
      if (link.pushes(part, Team::kPush)) {
        sum.shots[rank] = static_cast<uint64_t>(sum.T * sum.H * part.size()) > Team::kPush.one_shot_bytes ? 2 : 1;
        link.all_reduce_pushed(seq, part, Team::kPush, {}, stream);
      } else {
        link.all_reduce(0, seq, part, stream);
      }
      ++seq;
    }
  });
  ASSERT_EQ(team.failure(), "");
  int by_shots[3] = {};
  for (const Sum &sum : sums) {
    SCOPED_TRACE(::testing::Message() << "type " << int(sum.type) << ", " << sum.T << " x " << sum.H << ", shots " << sum.shots[0]);
    EXPECT_EQ(sum.shots, std::vector<int>(count_, sum.shots[0]));
    ++by_shots[sum.shots[0]];
    std::vector<double> want(static_cast<size_t>(sum.T * sum.H));
    std::vector<unsigned char> bits;
    for (const std::unique_ptr<Tensor> &part : sum.parts) {
      for (size_t i = 0; i < want.size(); ++i)
        want[i] += part->host[i];
      const auto mine = part->device.read<unsigned char>();
      if (bits.empty())
        bits = mine;
      EXPECT_TRUE(mine == bits) << "rank " << &part - sum.parts.data() << " has other bits";
    }
    // NCCL rounds at every rank; the others once.
    const bool nccl = !shared_ && sum.shots[0] == 0 && (way_ == Collectives::Auto || way_ == Collectives::Nccl);
    EXPECT_LT(relative_error(decode(bits, sum.type), want), tolerance(sum.type) * (nccl ? std::sqrt(count_ / 2.0) : 1));
  }
  EXPECT_GT(by_shots[0], 0);
  EXPECT_EQ(by_shots[1] > 0, pushes_);
  EXPECT_EQ(by_shots[2] > 0, pushes_);
}

TEST_P(Communicators, GathersColumns) {
  Team &team = Team::of(way_, count_);
  constexpr int64_t T = 5, kCols[kMostRanks] = {64, 96, 1, 33, 128, 7, 40, 65};
  std::vector<int64_t> first;
  int64_t all = 0;
  for (uint32_t rank = 0; rank < count_; ++rank) {
    first.push_back(all);
    all += kCols[rank];
  }
  std::vector<std::unique_ptr<Tensor>> in(count_);
  for (int root : {0, static_cast<int>(count_) - 1, -1}) { // -1: to all
    SCOPED_TRACE(::testing::Message() << "to " << root);
    std::vector<std::unique_ptr<DeviceBytes>> out(count_);
    team.run([&](uint32_t rank, RankLink &, cudaStream_t) {
      in[rank] = std::make_unique<Tensor>(static_cast<size_t>(T * kCols[rank]), DType::f32, 50 + rank);
      out[rank] = std::make_unique<DeviceBytes>(static_cast<size_t>(T * all) * 4);
      LLMRT_CHECK(cudaDeviceSynchronize());
    });
    team.run([&](uint32_t rank, RankLink &link, cudaStream_t stream) {
      link.gather(0, 4, root, {out[rank]->as<std::byte>(), all, T, all, DType::f32},
                  {in[rank]->device.as<std::byte>(), kCols[rank], T, kCols[rank], DType::f32}, stream);
    });
    ASSERT_EQ(team.failure(), "");
    std::vector<float> want(static_cast<size_t>(T * all));
    for (uint32_t rank = 0; rank < count_; ++rank)
      for (int64_t t = 0; t < T; ++t)
        std::copy_n(in[rank]->host.begin() + t * kCols[rank], kCols[rank], want.begin() + t * all + first[rank]);
    for (int rank = root < 0 ? 0 : root; rank < (root < 0 ? static_cast<int>(count_) : root + 1); ++rank)
      EXPECT_TRUE(out[rank]->read<float>() == want) << "rank " << rank;
  }
}

TEST_P(Communicators, HandsTokensRound) {
  Team &team = Team::of(way_, count_);
  constexpr int32_t kTokens = 100;
  for (uint32_t root = 0; root < count_; ++root) {
    SCOPED_TRACE(::testing::Message() << "root " << root);
    std::vector<int32_t> drawn(kTokens), none(kTokens, -5);
    for (int32_t i = 0; i < kTokens; ++i)
      drawn[i] = i == 7 ? -1 : 1000 * i + static_cast<int32_t>(root);
    std::vector<std::unique_ptr<DeviceBytes>> tokens(count_);
    team.run([&](uint32_t rank, RankLink &, cudaStream_t) {
      tokens[rank] = std::make_unique<DeviceBytes>((rank == root ? drawn : none).data(), kTokens * 4);
      LLMRT_CHECK(cudaDeviceSynchronize());
    });
    for (int round = 0; round < 3; ++round) // between two of them the ranks wait for each other, as steps do
      team.run([&](uint32_t rank, RankLink &link, cudaStream_t stream) {
        link.hand_round_tokens(tokens[rank]->as<int32_t>(), static_cast<size_t>(kTokens - round), root, stream);
      });
    ASSERT_EQ(team.failure(), "");
    for (uint32_t rank = 0; rank < count_; ++rank)
      EXPECT_EQ(tokens[rank]->read<int32_t>(), drawn) << "rank " << rank;
  }
}

// Each rank has a part of every row; all find the best token of the whole.
TEST_P(Communicators, DrawsTogether) {
  Team &team = Team::of(way_, count_);
  const SpreadLogits logits(static_cast<int>(count_), Team::kMostRows);
  std::vector<std::unique_ptr<DeviceBytes>> parts(count_), tokens(count_);
  std::vector<char> able(count_);
  team.run([&](uint32_t rank, RankLink &link, cudaStream_t) {
    const std::vector<float> mine = logits.of(static_cast<int>(rank));
    parts[rank] = std::make_unique<DeviceBytes>(mine.data(), mine.size() * 4);
    tokens[rank] = std::make_unique<DeviceBytes>(Team::kMostRows * 4);
    able[rank] = link.draws_together();
    LLMRT_CHECK(cudaDeviceSynchronize());
  });
  ASSERT_EQ(team.failure(), "");
  ASSERT_EQ(able, std::vector<char>(count_, pushes_)); // the other ways gather the logits
  if (pushes_)
    team.run([&](uint32_t rank, RankLink &link, cudaStream_t stream) {
      for (int64_t rows : {int64_t{1}, int64_t{64}, Team::kMostRows, Team::kMostRows})
        link.sample_greedy(tokens[rank]->as<int32_t>(), static_cast<size_t>(rows),
                           {parts[rank]->as<float>(), logits.cols[rank], logits.cols[rank], logits.first[rank]}, stream);
    });
  ASSERT_EQ(team.failure(), "");
  for (uint32_t rank = 0; pushes_ && rank < count_; ++rank)
    EXPECT_EQ(tokens[rank]->read<int32_t>(), logits.best) << "rank " << rank;
}

const char *name_of(Collectives way) {
  switch (way) {
  case Collectives::Auto: return "Auto";
  case Collectives::Nccl: return "Nccl";
  case Collectives::Peer: return "Peer";
  case Collectives::Host: return "Host";
  }
  return "";
}

// NCCL refuses two ranks on one GPU.
std::vector<std::tuple<Collectives, int>> those_possible_here() {
  std::vector<std::tuple<Collectives, int>> all;
  for (Collectives way : {Collectives::Auto, Collectives::Nccl, Collectives::Peer, Collectives::Host})
    for (int count : kRankCounts)
      if (way != Collectives::Nccl || !share_devices(count))
        all.push_back({way, count});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, Communicators, ::testing::ValuesIn(those_possible_here()), [](const auto &info) {
  return name_of(std::get<0>(info.param)) + std::string("By") + std::to_string(std::get<1>(info.param));
});

class CommunicatorsThatShare : public ::testing::TestWithParam<int> {};

TEST_P(CommunicatorsThatShare, LeaveOutWhatWaits) {
  if (share_devices(GetParam()))
    GTEST_SKIP() << GetParam() << " ranks met on the host. Sums in one shot and in two, tokens found together and all of NCCL want as many "
                 << "GPUs, and there " << (devices() == 1 ? "is " : "are ") << devices();
}

INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorsThatShare, ::testing::ValuesIn(kRankCounts), ::testing::PrintToStringParamName());

TEST(CommunicatorsRefuse, NcclToRanksThatShare) {
  const Team team(Collectives::Nccl, static_cast<uint32_t>(devices() + 1));
  EXPECT_NE(team.failure().find("--collectives nccl needs a GPU for every rank"), std::string::npos) << team.failure();
}

} // namespace
} // namespace llmrt::exec::cuda
