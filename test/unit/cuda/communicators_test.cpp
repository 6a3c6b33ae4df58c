// Every way that ranks talk (one shot, two, NCCL, meeting on the host over P2P, host memory), by a thread a rank, each with a GPU of its
// own: sums of many sizes agree with double precision and, to rounding, with each other; all ranks have the same bits; gathered
// columns and tokens arrive as they were.
#include "runtime/exec/cuda/world.h"
#include "test/unit/cuda/device_data.h"
#include "test/unit/plan/plan_builder.h"

#include <algorithm>
#include <barrier>
#include <thread>

namespace llmrt::exec::cuda {
namespace {

using llmrt::cuda::DType;
using namespace llmrt::cuda::testing;

constexpr uint32_t kRanks = 2;
constexpr PushLimits kPush = {64 << 10, 1 << 20}; // forced: the compiler sends nothing in two shots between two ranks

// Only its groups, limits and sums count.
std::shared_ptr<const plan::LoadedPlan> a_plan() {
  plan::testing::TinySpec spec;
  spec.tp = kRanks, spec.pp = 1, spec.hidden = 4096, spec.layers = 1, spec.max_batched_tokens = 128, spec.max_logits_rows = 128;
  plan::PlanT plan = plan::testing::build_tiny_plan(spec);
  for (auto &link : plan.topology->links)
    link->p2p = true;
  for (auto &program : plan.programs)
    for (auto &op : program->ops)
      if (plan::AllReduceT *sum = op->op.AsAllReduce())
        sum->one_shot_bytes = kPush.one_shot_bytes, sum->two_shot_bytes = kPush.two_shot_bytes;
  return plan::testing::load(plan);
}

// Runs `work(rank, link, stream)` on every rank at once.
template <typename Work> void on_all(Collectives way, Work &&work) {
  const auto plan = a_plan();
  comm::HostWorldOptions options;
  options.ranks = kRanks;
  options.groups = {{"all", {0, 1}}};
  const auto world = comm::HostWorld::create(options);
  std::vector<std::string> failures(kRanks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        LLMRT_CHECK(cudaSetDevice(static_cast<int>(rank)));
        RankLink link(*plan, rank, {{0, 1}, 1, 20, way}, *world);
        Stream stream;
        link.begin_step(1);
        work(rank, link, stream);
        LLMRT_CHECK(cudaStreamSynchronize(stream));
      } catch (const std::exception &e) {
        failures[rank] = e.what();
        world->abort(e.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

class Communicators : public ::testing::TestWithParam<Collectives> {
protected:
  void SetUp() override {
    int devices = 0;
    ASSERT_CUDA(cudaGetDeviceCount(&devices));
    if (devices < static_cast<int>(kRanks))
      GTEST_SKIP() << "needs two GPUs";
  }
};

TEST_P(Communicators, SumsAgree) {
  struct Case {
    DType type;
    int64_t T, H;
    std::vector<float> parts[kRanks] = {};
    std::vector<unsigned char> sums[kRanks] = {};
  };
  std::vector<Case> cases;
  for (DType type : {DType::bf16, DType::f32})
    for (const auto &[T, H] : std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {1, 4096}, {3, 576}, {64, 3584}, {100, 4096}, {512, 4096}})
      cases.push_back({type, T, H});
  on_all(GetParam(), [&](uint32_t rank, RankLink &link, cudaStream_t stream) {
    uint32_t seq = 3;
    for (Case &c : cases) {
      Tensor data(static_cast<size_t>(c.T * c.H), c.type, 40 + rank);
      c.parts[rank] = data.host;
      const DevicePart part{data.device.as<std::byte>(), c.H, c.T, c.H, c.type};
      if (link.pushes(part, kPush))
        link.all_reduce_pushed(seq, part, kPush, {}, stream);
      else
        link.all_reduce(0, seq, part, stream);
      ++seq;
      LLMRT_CHECK(cudaStreamSynchronize(stream));
      c.sums[rank] = data.device.read<unsigned char>();
    }
  });
  for (const Case &c : cases) {
    SCOPED_TRACE(::testing::Message() << "type " << int(c.type) << ", " << c.T << " x " << c.H);
    ASSERT_EQ(c.sums[0].size(), static_cast<size_t>(c.T * c.H) * llmrt::cuda::dtype_bytes(c.type));
    EXPECT_EQ(c.sums[0], c.sums[1]);
    std::vector<double> want;
    for (size_t i = 0; i < c.parts[0].size(); ++i)
      want.push_back(double(c.parts[0][i]) + double(c.parts[1][i]));
    EXPECT_LT(relative_error(decode(c.sums[0], c.type), want), tolerance(c.type));
  }
}

TEST_P(Communicators, GathersColumns) {
  constexpr int64_t T = 5, kCols[kRanks] = {64, 96}, kAll = 160;
  std::vector<float> parts[kRanks], got;
  on_all(GetParam(), [&](uint32_t rank, RankLink &link, cudaStream_t stream) {
    Tensor in(static_cast<size_t>(T * kCols[rank]), DType::f32, 50 + rank);
    DeviceBytes out(static_cast<size_t>(T * kAll) * 4);
    parts[rank] = in.host;
    link.gather(0, 4, 0, {out.as<std::byte>(), kAll, T, kAll, DType::f32},
                {in.device.as<std::byte>(), kCols[rank], T, kCols[rank], DType::f32}, stream);
    LLMRT_CHECK(cudaStreamSynchronize(stream));
    if (rank == 0)
      got = out.read<float>();
  });
  ASSERT_EQ(got.size(), static_cast<size_t>(T * kAll));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < kAll; ++c)
      ASSERT_EQ(got[t * kAll + c], c < kCols[0] ? parts[0][t * kCols[0] + c] : parts[1][t * kCols[1] + c - kCols[0]]) << t << " " << c;
}

TEST_P(Communicators, HandsTokensRound) {
  std::vector<int32_t> got[kRanks][kRanks]; // by root
  std::barrier together(kRanks);
  on_all(GetParam(), [&](uint32_t rank, RankLink &link, cudaStream_t stream) {
    for (uint32_t root = 0; root < kRanks; ++root) {
      std::vector<int32_t> mine(100, -5);
      for (int i = 0; i < 100 && rank == root; ++i)
        mine[i] = i == 7 ? -1 : 1000 * i;
      DeviceBytes tokens(mine.data(), mine.size() * 4);
      for (int round = 0; round < 3; ++round) {
        link.hand_round_tokens(tokens.as<int32_t>(), static_cast<size_t>(100 - round), root, stream);
        LLMRT_CHECK(cudaStreamSynchronize(stream));
        together.arrive_and_wait();
      }
      got[root][rank] = tokens.read<int32_t>();
    }
  });
  for (uint32_t root = 0; root < kRanks; ++root) {
    ASSERT_EQ(got[root][root].size(), 100u);
    EXPECT_EQ(got[root][root][99], 99000);
    EXPECT_EQ(got[root][root][7], -1);
    EXPECT_EQ(got[root][0], got[root][1]);
  }
}

// Each rank has a part of every row; both find the best token of the whole.
TEST_P(Communicators, DrawsTogether) {
  constexpr int64_t kCols[kRanks] = {5000, 2999}, kAll = 7999, kRows = 128;
  std::vector<float> logits = random_floats(static_cast<size_t>(kRows * kAll), 9);
  std::vector<int32_t> want, got[kRanks];
  for (int64_t r = 0; r < kRows; ++r) {
    float *row = logits.data() + r * kAll;
    if (r % 4 == 1) // a tie across the parts
      row[123] = row[6000] = 50.0f;
    if (r % 4 == 2)
      row[kAll - 1] = 50.0f;
    if (r == 3)
      std::fill(row, row + kAll, NAN);
    want.push_back(r == 3 ? -1 : static_cast<int32_t>(std::max_element(row, row + kAll) - row));
  }
  bool able[kRanks] = {};
  on_all(GetParam(), [&](uint32_t rank, RankLink &link, cudaStream_t stream) {
    able[rank] = link.draws_together();
    if (!able[rank])
      return;
    const int64_t cols = kCols[rank], first = rank == 0 ? 0 : kCols[0];
    std::vector<float> mine;
    for (int64_t r = 0; r < kRows; ++r)
      mine.insert(mine.end(), logits.begin() + r * kAll + first, logits.begin() + r * kAll + first + cols);
    DeviceBytes part(mine.data(), mine.size() * 4), tokens(kRows * 4);
    for (size_t rows : {size_t{1}, size_t{64}, size_t{kRows}, size_t{kRows}})
      link.sample_greedy(tokens.as<int32_t>(), rows, {part.as<float>(), cols, cols, first}, stream);
    LLMRT_CHECK(cudaStreamSynchronize(stream));
    got[rank] = tokens.read<int32_t>();
  });
  EXPECT_EQ(able[0], GetParam() == Collectives::Auto || GetParam() == Collectives::Peer);
  EXPECT_EQ(able[0], able[1]);
  for (uint32_t rank = 0; able[0] && rank < kRanks; ++rank)
    EXPECT_EQ(got[rank], want) << "rank " << rank;
}

INSTANTIATE_TEST_SUITE_P(Ways, Communicators,
                         ::testing::Values(Collectives::Auto, Collectives::Nccl, Collectives::Peer, Collectives::Host),
                         [](const auto &info) -> std::string {
                           switch (info.param) {
                           case Collectives::Auto: return "Auto";
                           case Collectives::Nccl: return "Nccl";
                           case Collectives::Peer: return "Peer";
                           default: return "Host";
                           }
                         });

} // namespace
} // namespace llmrt::exec::cuda
