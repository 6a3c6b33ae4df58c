// All-reduce by size over the GPUs of this machine, inside CUDA graphs: our one-shot kernel, the same with residual and
// RMSNorm, and NCCL (with our norm behind it). bf16, rows of 4096. Prints microseconds a call and the ratio to NCCL.
//
//   bench_collectives [RANKS]     default: as many as there are GPUs
#include "kernels/cuda/kernels.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace llmrt::cuda;

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (auto status = (call); int(status) != 0) {                                                                      \
      std::fprintf(stderr, "%s: status %d\n", #call, int(status));                                                     \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (0)

constexpr int64_t kH = 4096, kRowBytes = kH * 2, kMost = 64 << 20, kOneShotMost = 8 << 20;
constexpr int kCalls = 40, kRounds = 9;

struct RankState {
  void *data, *residual, *out, *inbox;
  float *weight;
  uint32_t *state;
  cudaStream_t stream;
  ncclComm_t comm;
};

int main(int argc, char **argv) {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (argc > 1)
    count = std::min(count, std::atoi(argv[1]));
  if (count < 2) {
    std::printf("bench_collectives needs two GPUs or more\n");
    return 0;
  }
  const InboxShape box = one_shot_inbox(count, kOneShotMost, kOneShotMost / kRowBytes);
  std::vector<RankState> ranks(count);
  uint32_t *host = nullptr;
  CHECK(cudaHostAlloc(reinterpret_cast<void **>(&host), 256, cudaHostAllocPortable));
  std::fill(host, host + 64, 0);
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id));
  std::barrier together(count);
  double micros[4] = {}; // of the size at hand: one-shot, fused, NCCL, NCCL + norm
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
    CHECK(cudaMalloc(&r.inbox, box.bytes()));
    CHECK(cudaMemset(r.inbox, 0, box.bytes()));
    CHECK(cudaMalloc(&r.weight, kH * 4));
    fill_random(r.weight, kH, DType::f32, 2, nullptr);
    CHECK(cudaMalloc(&r.state, 8));
    CHECK(cudaMemset(r.state, 0, 8));
    CHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    CHECK(ncclCommInitRank(&r.comm, count, id, rank));
    CHECK(cudaDeviceSynchronize());
    together.arrive_and_wait();

    for (int64_t bytes = kRowBytes; bytes <= kMost; bytes *= 2) {
      const int64_t T = bytes / kRowBytes;
      auto one_shot = [&](bool norm) {
        OneShot p{};
        p.data = r.data, p.ld = p.H = kH, p.T = T, p.act = DType::bf16, p.rank = rank, p.count = count;
        for (int i = 0; i < count; ++i)
          p.inbox[i] = ranks[i].inbox;
        p.box = box, p.state = r.state, p.host.at = host + rank, p.host.given_up = host + 63;
        if (norm)
          p.norm = {r.out, r.residual, r.weight, kH, kH, 1e-6f, 0};
        one_shot_all_reduce(p, r.stream);
      };
      auto nccl = [&](bool norm) {
        CHECK(ncclAllReduce(r.data, r.data, size_t(T * kH), ncclBfloat16, ncclSum, r.comm, r.stream));
        if (norm)
          add_rms_norm({r.out, kH, r.residual, kH, r.data, kH, r.weight, T, kH, 1e-6f, 0, DType::bf16}, r.stream);
      };
      const std::function<void()> ways[] = {[&] { one_shot(false); }, [&] { one_shot(true); }, [&] { nccl(false); },
                                            [&] { nccl(true); }};
      for (int way = 0; way < 4; ++way) {
        if (way < 2 && bytes > kOneShotMost) {
          micros[way] = 0;
          continue;
        }
        ways[way](); // connects
        CHECK(cudaStreamSynchronize(r.stream));
        together.arrive_and_wait();
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < kCalls; ++i)
          ways[way]();
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
          times.push_back(ms * 1e3f / kCalls);
        }
        std::sort(times.begin(), times.end());
        if (rank == 0)
          micros[way] = times[kRounds / 2];
        CHECK(cudaEventDestroy(start));
        CHECK(cudaEventDestroy(stop));
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
        together.arrive_and_wait();
      }
      if (rank == 0) {
        if (micros[0] > 0)
          std::printf("%9lld B: one-shot %8.2f us (%.2fx NCCL), with norm %8.2f us (%.2fx); NCCL %8.2f us, and norm %8.2f us\n",
                      static_cast<long long>(bytes), micros[0], micros[2] / micros[0], micros[1], micros[3] / micros[1], micros[2],
                      micros[3]);
        else
          std::printf("%9lld B: NCCL %8.2f us, and norm %8.2f us\n", static_cast<long long>(bytes), micros[2], micros[3]);
        std::fflush(stdout);
      }
    }
    CHECK(cudaDeviceSynchronize());
    together.arrive_and_wait();
    ncclCommDestroy(r.comm);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back(serve, rank);
  for (std::thread &t : threads)
    t.join();
  return 0;
}
