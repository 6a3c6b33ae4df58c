// All-reduce by size over the GPUs of this machine, for each way that ranks talk: our kernels in one shot (also without lines, as
// over PCIe) and in two, and NCCL, in CUDA graphs, each also with residual and RMSNorm; and ranks that meet on the host, over P2P and
// through host memory. bf16, rows of up to 4096. Prints microseconds a call, before that the device memory that NCCL's
// communicator takes, and in the end the sizes from which on two shots and NCCL are the faster.
//
//   bench_collectives [RANKS [push]]     default: as many as there are GPUs; push: our kernels alone
#include "kernels/cuda/kernels.h"
#include "runtime/exec/cuda/world.h"
#include "test/unit/plan/plan_builder.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace llmrt::cuda;
namespace comm = llmrt::comm;
namespace exec = llmrt::exec;
using exec::cuda::RankLink;

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (auto status = (call); int(status) != 0) {                                                                      \
      std::fprintf(stderr, "%s: status %d\n", #call, int(status));                                                     \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

constexpr int64_t kH = 4096, kMost = 64 << 20, kRowBytes = kH * 2;
constexpr int kCalls = 40, kRounds = 7;

struct RankState {
  void *data, *residual, *out, *inbox[2];
  float *weight;
  uint32_t *state;
  cudaStream_t stream;
  ncclComm_t comm;
  std::unique_ptr<RankLink> met, host;
};

enum class Way { one_shot, one_shot_no_lines, two_shots };

// Microseconds of a size: one shot, without lines, two shots, NCCL, those four with norm, peer, host; 0: not timed.
struct Line {
  int64_t bytes;
  std::vector<double> us;
};

// From which size on a way is faster than all of the others, as far as they were timed.
std::string faster_from(const std::vector<Line> &lines, size_t way, std::initializer_list<size_t> others) {
  int64_t from = 0;
  bool timed = false;
  for (const Line &line : lines) {
    const auto there = [&](size_t i) { return line.us[i] > 0; };
    if (!there(way) || std::none_of(others.begin(), others.end(), there))
      continue;
    timed = true;
    const bool faster = std::all_of(others.begin(), others.end(), [&](size_t i) { return !there(i) || line.us[way] < line.us[i]; });
    from = !faster ? 0 : from ? from : line.bytes;
  }
  return from ? "from " + std::to_string(from) + " bytes on" : timed ? "nowhere" : "untimed";
}

size_t free_bytes() {
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

int main(int argc, char **argv) {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (argc > 1)
    count = std::min(count, std::atoi(argv[1]));
  if (count < 2) {
    std::printf("bench_collectives needs two GPUs or more\n");
    return 0;
  }
  const InboxShape one_box = one_shot_inbox(count, kMost, kRowBytes, kMost / kRowBytes);
  const TwoShotShape two_box = two_shot_inbox(count, kMost, kRowBytes, kMost / kRowBytes);
  llmrt::plan::testing::TinySpec spec; // of its groups alone
  spec.tp = uint32_t(count), spec.pp = 1, spec.q_heads = spec.kv_heads = 16;
  const auto plan = llmrt::plan::testing::load(llmrt::plan::testing::build_tiny_plan(spec));
  const auto world = [&] {
    comm::HostWorldOptions options;
    options.ranks = uint32_t(count);
    options.groups.push_back({"all", {}});
    for (int r = 0; r < count; ++r)
      options.groups[0].ranks.push_back(uint32_t(r));
    options.cores_to_spare = true;
    return comm::HostWorld::create(options);
  };
  bool whole_lines = true;
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b)
      whole_lines = whole_lines && whole_lines_between(a, b);
  const auto met_world = world(), host_world = world();
  std::vector<RankState> ranks(count);
  uint32_t *host = nullptr;
  CHECK(cudaHostAlloc(reinterpret_cast<void **>(&host), 256, cudaHostAllocPortable));
  std::fill(host, host + 64, 0);
  const bool others = argc < 3 || std::strcmp(argv[2], "push") != 0;
  ncclUniqueId id;
  if (others)
    CHECK(ncclGetUniqueId(&id));
  std::barrier together(count);
  auto serve = [&](int rank) {
    RankState &r = ranks[rank];
    CHECK(cudaSetDevice(rank));
    for (int other = 0; other < count; ++other)
      if (other != rank)
        CHECK(cudaDeviceEnablePeerAccess(other, 0));
    for (void **p : {&r.data, &r.residual, &r.out}) {
      CHECK(cudaMalloc(p, kMost));
      fill_random(*p, kMost / 2, DType::bf16, 1, nullptr);
    }
    for (int twice = 0; twice < 2; ++twice) {
      const size_t bytes = size_t(twice ? two_box.bytes() : one_box.bytes());
      CHECK(cudaMalloc(&r.inbox[twice], bytes));
      CHECK(cudaMemset(r.inbox[twice], 0, bytes));
    }
    CHECK(cudaMalloc(&r.weight, kH * 4));
    fill_random(r.weight, kH, DType::f32, 2, nullptr);
    CHECK(cudaMalloc(&r.state, 16));
    CHECK(cudaMemset(r.state, 0, 16));
    CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    together.arrive_and_wait();
    const auto join_others = [&] {
      const size_t before = free_bytes();
      together.arrive_and_wait();
      CHECK(ncclCommInitRank(&r.comm, count, id, rank));
      together.arrive_and_wait();
      const size_t joined = free_bytes();
      CHECK(ncclAllReduce(r.data, r.data, kMost / 2, ncclBfloat16, ncclSum, r.comm, r.stream));
      CHECK(cudaStreamSynchronize(r.stream));
      together.arrive_and_wait();
      const size_t summed = free_bytes();
      CHECK(ncclGroupStart()); // a gather, to itself as well
      CHECK(ncclSend(r.data, kMost / 4, ncclBfloat16, 0, r.comm, r.stream));
      for (int from = 0; rank == 0 && from < count; ++from)
        CHECK(ncclRecv(r.out, kMost / 4, ncclBfloat16, from, r.comm, r.stream));
      CHECK(ncclGroupEnd());
      CHECK(cudaStreamSynchronize(r.stream));
      together.arrive_and_wait();
      for (int at = 0; at < count; ++at) {
        if (at == rank)
          std::printf("NCCL on rank %d takes %.1f MiB to join, %.1f with the first sum, %.1f with the first gather\n", rank,
                      double(before - joined) / (1 << 20), double(before - summed) / (1 << 20), double(before - free_bytes()) / (1 << 20));
        together.arrive_and_wait();
      }
      std::vector<int> devices;
      for (int i = 0; i < count; ++i)
        devices.push_back(i);
      r.met = std::make_unique<RankLink>(*plan, rank, exec::cuda::RankLinkOptions{devices, 1, 60, exec::Collectives::Peer}, *met_world);
      r.host = std::make_unique<RankLink>(*plan, rank, exec::cuda::RankLinkOptions{devices, 1, 60, exec::Collectives::Host}, *host_world);
    };
    if (others)
      join_others();
    if (rank == 0)
      std::printf("%10s %9s %9s %9s %9s | with norm %9s %9s %9s %9s | on the host %9s %9s\n", "us; bytes", "one shot", "no lines",
                  "two shots", "NCCL", "one shot", "no lines", "two shots", "NCCL", "peer", "host");

    std::vector<Line> lines;
    for (int64_t bytes = kRowBytes / 2; bytes <= kMost; bytes *= 2) {
      const int64_t T = std::max<int64_t>(1, bytes / kRowBytes), H = bytes / 2 / T;
      auto push = [&](Way way, bool norm) {
        const bool twice = way == Way::two_shots;
        RankSum p{};
        p.data = r.data, p.ld = p.H = H, p.T = T, p.act = DType::bf16, p.rank = rank, p.count = count;
        for (int i = 0; i < count; ++i)
          p.inbox[i] = ranks[i].inbox[twice];
        p.state = r.state + 2 * twice, p.host.at = host + rank, p.host.given_up = host + 63;
        if (norm)
          p.norm = {r.out, r.residual, r.weight, H, H, 1e-6f, 0};
        if (twice)
          two_shot_all_reduce({p, two_box}, r.stream);
        else
          one_shot_all_reduce({p, one_box, whole_lines && way == Way::one_shot}, r.stream);
      };
      auto nccl = [&](bool norm) {
        CHECK(ncclAllReduce(r.data, r.data, size_t(T * H), ncclBfloat16, ncclSum, r.comm, r.stream));
        if (norm)
          add_rms_norm({r.out, H, r.residual, H, r.data, H, r.weight, T, H, 1e-6f, 0, DType::bf16}, r.stream);
      };
      auto in_graph = [&](bool wanted, const std::function<void()> &call) -> double {
        if (!wanted)
          return 0;
        call(); // connects
        CHECK(cudaStreamSynchronize(r.stream));
        together.arrive_and_wait();
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
        const int calls = bytes > (8 << 20) ? 4 : kCalls;
        for (int i = 0; i < calls; ++i)
          call();
        CHECK(cudaStreamEndCapture(r.stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        cudaEvent_t start, stop;
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&stop));
        std::vector<float> times;
        for (int i = 0; i < kRounds; ++i) {
          together.arrive_and_wait();
          CHECK(cudaGraphLaunch(exec, r.stream)); // levels the ranks
          CHECK(cudaEventRecord(start, r.stream));
          CHECK(cudaGraphLaunch(exec, r.stream));
          CHECK(cudaEventRecord(stop, r.stream));
          CHECK(cudaStreamSynchronize(r.stream));
          float ms = 0;
          CHECK(cudaEventElapsedTime(&ms, start, stop));
          times.push_back(ms * 1e3f / float(calls));
        }
        std::sort(times.begin(), times.end());
        CHECK(cudaEventDestroy(start));
        CHECK(cudaEventDestroy(stop));
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
        together.arrive_and_wait();
        return times[kRounds / 2];
      };
      // Ranks that meet cannot be captured: by the clock, several in a row.
      uint32_t seq = 0;
      auto met = [&](RankLink &link) -> double {
        const exec::cuda::DevicePart part{static_cast<std::byte *>(r.data), H, T, H, DType::bf16};
        const int calls = bytes > (1 << 20) ? 3 : 10;
        for (int i = 0; i < 2; ++i)
          link.all_reduce(0, seq++, part, r.stream);
        CHECK(cudaStreamSynchronize(r.stream));
        together.arrive_and_wait();
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i)
          link.all_reduce(0, seq++, part, r.stream);
        CHECK(cudaStreamSynchronize(r.stream));
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / calls;
      };
      std::vector<double> us;
      for (bool norm : {false, true}) {
        for (const Way way : {Way::one_shot, Way::one_shot_no_lines, Way::two_shots})
          us.push_back(in_graph(true, [&] { push(way, norm); }));
        us.push_back(in_graph(others, [&] { nccl(norm); }));
      }
      us.push_back(others ? met(*r.met) : 0);
      us.push_back(others ? met(*r.host) : 0);
      if (rank == 0) {
        lines.push_back({bytes, us});
        std::printf("%10lld", static_cast<long long>(bytes));
        for (size_t i = 0; i < us.size(); ++i) {
          std::printf("%s", i == 4 ? " |          " : i == 8 ? " |            " : "");
          us[i] > 0 ? std::printf(" %9.2f", us[i]) : std::printf(" %9s", "-");
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
    for (const size_t norm : {0, 4})
      if (rank == 0)
        std::printf("%d ranks%s: two shots are faster than one %s, NCCL than both %s\n", count, norm ? ", with norm" : "",
                    faster_from(lines, norm + 2, {norm}).c_str(), faster_from(lines, norm + 3, {norm, norm + 2}).c_str());
    CHECK(cudaDeviceSynchronize());
    together.arrive_and_wait();
    if (others)
      ncclCommDestroy(r.comm);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        serve(rank);
      } catch (const std::exception &e) {
        std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
        std::exit(1);
      }
    });
  for (std::thread &t : threads)
    t.join();
  return 0;
}
