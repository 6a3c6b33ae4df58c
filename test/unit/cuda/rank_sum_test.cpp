// The all-reduces of ranks that write each other's memory, in one shot and in two, a thread a rank: over as many GPUs as there
// are, several ranks on one where there are too few. Against double precision; the same bits on every rank; calls of changing sizes
// behind each other; replayed graphs.
#include "test/unit/cuda/ranks.h"

#include <array>
#include <barrier>
#include <memory>
#include <span>

namespace llmrt::cuda::testing {
namespace {

constexpr int64_t kMostBytes = 3 << 20, kMostRows = 1100, kMostRowBytes = 64 << 10;

struct Shape {
  int64_t T, H;
  bool norm;
};

// In one shot over links that keep lines whole or not, or in two.
enum class Way { lines, one_shot, two_shots };

class Group {
public:
  Group(int count, Way way) : count_(count), way_(way) {
    box_ = one_shot_inbox(count, kMostBytes, kMostRowBytes, kMostRows);
    two_box_ = two_shot_inbox(count, kMostBytes, kMostRowBytes, kMostRows);
    const size_t bytes = static_cast<size_t>(way == Way::two_shots ? two_box_.bytes() : box_.bytes());
    for (int r = 0; r < count; ++r) {
      cudaSetDevice(device_of(r));
      for (int other = 0; other < std::min(count, devices()); ++other)
        if (other != device_of(r) && cudaDeviceEnablePeerAccess(other, 0) == cudaErrorPeerAccessAlreadyEnabled)
          cudaGetLastError();
      cudaMalloc(&inbox_[r], bytes);
      cudaMemset(inbox_[r], 0, bytes);
      cudaMalloc(&state_[r], 8);
      cudaMemset(state_[r], 0, 8);
      cudaDeviceSynchronize();
    }
    cudaHostAlloc(reinterpret_cast<void **>(&host_), 64 * 4, cudaHostAllocPortable);
    std::memset(host_, 0, 64 * 4);
  }
  ~Group() {
    for (int r = 0; r < count_; ++r)
      cudaFree(inbox_[r]), cudaFree(state_[r]);
    cudaFreeHost(host_);
  }
  // Members share a GPU. Kernels that are started early behind a waiting one could then fill it, and keep out the one that is
  // waited for: a call at a time.
  bool crowded() const { return share_devices(count_); }
  bool given_up() const { return host_[63] != 0; }
  void give_up() { std::atomic_ref(host_[63]).store(1); }
  uint32_t at(int rank) const { return host_[rank]; }

  // A call of rank `rank`; with residual and norm where `norm` says so.
  void sum(int rank, void *data, const Shape &s, DType act, uint32_t number, const decltype(RankSum::norm) &norm,
           cudaStream_t stream) const {
    RankSum sum{};
    sum.data = data, sum.ld = s.H, sum.T = s.T, sum.H = s.H, sum.act = act;
    sum.rank = rank, sum.count = count_;
    for (int r = 0; r < count_; ++r)
      sum.inbox[r] = inbox_[r];
    sum.state = state_[rank], sum.number = number, sum.norm = norm;
    sum.host.at = host_ + rank, sum.host.given_up = host_ + 63;
    if (way_ == Way::two_shots)
      two_shot_all_reduce({sum, two_box_}, stream);
    else
      one_shot_all_reduce({sum, box_, way_ == Way::lines}, stream);
  }

private:
  int count_;
  Way way_;
  InboxShape box_;
  TwoShotShape two_box_;
  std::array<void *, kMaxPeers> inbox_{};
  std::array<uint32_t *, kMaxPeers> state_{};
  uint32_t *host_ = nullptr;
};

// What one rank brings to a call, and what came of it.
struct Part {
  Part(int rank, const Shape &s, DType act)
      : data(s.T * s.H, act, 100 + rank), residual(s.T * s.H, act, 7), weight(s.H, DType::f32, 8),
        out(static_cast<size_t>(s.T * s.H) * dtype_bytes(act)) {}
  Tensor data, residual, weight;
  DeviceBytes out;
};

void check(int count, DType act, const std::vector<Shape> &shapes, bool graph, Way way) {
  SCOPED_TRACE(::testing::Message() << count << " ranks, type " << int(act) << (graph ? ", graph" : ""));
  Group group(count, way);
  std::vector<std::vector<std::unique_ptr<Part>>> parts(count);
  for (int r = 0; r < count; ++r) {
    ASSERT_CUDA(cudaSetDevice(device_of(r)));
    for (const Shape &s : shapes)
      parts[r].push_back(std::make_unique<Part>(r, s, act));
    ASSERT_CUDA(cudaDeviceSynchronize());
  }
  std::atomic<int> failed{0};
  std::barrier together(count);
  auto serve = [&](int rank) {
    cudaSetDevice(device_of(rank));
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    auto all = [&] {
      for (size_t i = 0; i < shapes.size(); ++i) {
        Part &part = *parts[rank][i];
        decltype(RankSum::norm) norm{};
        if (shapes[i].norm)
          norm = {part.out.get(), part.residual.device.get(), part.weight.device.template as<float>(), shapes[i].H, shapes[i].H, 1e-6f, 0};
        try {
          group.sum(rank, part.data.device.get(), shapes[i], act, static_cast<uint32_t>(i), norm, stream);
        } catch (const std::exception &) {
          ++failed;
        }
        if (group.crowded())
          failed += cudaStreamSynchronize(stream) != cudaSuccess;
      }
    };
    together.arrive_and_wait();
    if (graph) {
      cudaGraph_t captured = nullptr;
      cudaGraphExec_t exec = nullptr;
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      all();
      cudaStreamEndCapture(stream, &captured);
      failed += cudaGraphInstantiate(&exec, captured, 0) != cudaSuccess;
      together.arrive_and_wait();
      failed += cudaGraphLaunch(exec, stream) != cudaSuccess;
      failed += cudaStreamSynchronize(stream) != cudaSuccess;
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(captured);
    } else {
      all();
    }
    failed += cudaStreamSynchronize(stream) != cudaSuccess;
    cudaStreamDestroy(stream);
  };
  {
    const GivesUpLate late([&] { group.give_up(); });
    std::vector<std::thread> threads;
    for (int r = 0; r < count; ++r)
      threads.emplace_back(serve, r);
    for (std::thread &t : threads)
      t.join();
  }
  ASSERT_EQ(failed, 0);
  ASSERT_FALSE(group.given_up()) << "ranks waited for each other in vain";

  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &s = shapes[i];
    SCOPED_TRACE(::testing::Message() << "T " << s.T << " H " << s.H << (s.norm ? " with norm" : ""));
    std::vector<double> want(static_cast<size_t>(s.T * s.H));
    for (int64_t t = 0; t < s.T; ++t) {
      double square = 0;
      for (int64_t h = 0; h < s.H; ++h) {
        double &sum = want[t * s.H + h];
        for (int r = 0; r < count; ++r)
          sum += parts[r][i]->data.host[t * s.H + h];
        if (s.norm)
          sum += parts[0][i]->residual.host[t * s.H + h];
        square += sum * sum;
      }
      for (int64_t h = 0; s.norm && h < s.H; ++h)
        want[t * s.H + h] *= parts[0][i]->weight.host[h] / std::sqrt(square / double(s.H) + 1e-6);
    }
    std::vector<unsigned char> first;
    for (int r = 0; r < count; ++r) {
      ASSERT_CUDA(cudaSetDevice(device_of(r)));
      const auto bits = (s.norm ? parts[r][i]->out : parts[r][i]->data.device).read<unsigned char>();
      if (r == 0)
        first = bits;
      EXPECT_EQ(std::memcmp(first.data(), bits.data(), first.size()), 0) << "rank " << r << " has other bits";
      EXPECT_LT(relative_error(decode(bits, act), want), tolerance(act));
    }
  }
  ASSERT_CUDA(cudaSetDevice(0));
}

const std::vector<Shape> kShapes = {{1, 3584, false}, {1, 3584, true}, {32, 512, true},  {3, 576, false}, {32, 3584, true},
                                    {2, 8, true},     {32, 8192, false}, {1, 12288, true}, {31, 16384, true}, {1, 64, false},
                                    {300, 576, true}, {600, 1000, false}, {40, 28672, true}, {9, 5000, true},
                                    {330, 3584, true}, {1100, 1000, false}, {700, 1536, true}, {130, 8192, false}, {53, 20480, true}};
constexpr size_t kShortShapes = 14; // the first ones

// Blocks of a call: one a row, or fewer for long messages, whose rows go through rings.
int64_t blocks_of(const Shape &s, DType act, int count, Way way) {
  const RingShape ring = one_shot_inbox(count, kMostBytes, kMostRowBytes, kMostRows).ring;
  const bool in_ring = way != Way::two_shots && count > 1 && s.T * s.H * static_cast<int64_t>(dtype_bytes(act)) > kLinesBytes;
  return in_ring ? std::min(s.T, ring.blocks) : s.T;
}

// All of it is carried by lines of whole links only where those are whole: over NVLink, or within one GPU.
bool links_are(Way way) {
  const int used = std::min(devices(), kMostRanks);
  bool whole = true;
  for (int a = 0; way == Way::lines && a < used; ++a)
    for (int b = 0; b < used; ++b)
      whole = whole && whole_lines_between(a, b);
  return whole;
}

class AllReduce : public ::testing::TestWithParam<Way> {
protected:
  void SetUp() override {
    if (!links_are(GetParam()))
      GTEST_SKIP() << "needs links that keep lines whole (NVLink)";
  }
};

TEST_P(AllReduce, EqualsTheSumOfAllRanks) {
  for (int count : {1, 2, 3, 4, 8})
    for (DType act : {DType::bf16, DType::f16, DType::f32}) {
      std::vector<Shape> shapes;
      for (const Shape &s : std::span(kShapes).first(count <= 3 && act != DType::f32 ? kShapes.size() : kShortShapes))
        if (const int64_t row = s.H * static_cast<int64_t>(dtype_bytes(act));
            row <= kMostRowBytes && s.T * row <= kMostBytes && blocks_of(s, act, count, GetParam()) <= most_blocks(count, kMostRows))
          shapes.push_back(s);
      check(count, act, shapes, false, GetParam());
      if (HasFatalFailure())
        return;
    }
}

TEST_P(AllReduce, ReplaysInGraphs) {
  if (devices() < 2)
    GTEST_SKIP() << "needs two GPUs";
  std::vector<Shape> shapes;
  for (int i = 0; i < 40; ++i)
    shapes.push_back(kShapes[i * 3 % kShapes.size()]);
  for (int count : kRankCounts)
    if (!share_devices(count))
      check(count, DType::bf16, shapes, true, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ways, AllReduce, ::testing::Values(Way::lines, Way::one_shot, Way::two_shots), [](const auto &info) {
  return info.param == Way::lines ? "InLines" : info.param == Way::one_shot ? "InOneShot" : "InTwoShots";
});

// A rank that never comes: the others stop once the host gives the group up, and say where they are.
TEST_P(AllReduce, GivesUpWhenTold) {
  for (const Shape shape : {Shape{100, 512, false}, Shape{1100, 1000, false}}) { // the second through rings
    Group group(2, GetParam());
    ASSERT_CUDA(cudaSetDevice(device_of(0)));
    Part part(0, shape, DType::bf16);
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    group.sum(0, part.data.device.get(), shape, DType::bf16, 17, {}, stream);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    EXPECT_EQ(group.at(0), 17u);
    group.give_up();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_CUDA(cudaStreamDestroy(stream));
  }
}

} // namespace
} // namespace llmrt::cuda::testing
