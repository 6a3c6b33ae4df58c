#include "runtime/exec/ceilings.h"

#include "kernels/cpu/linear.h"
#include "runtime/support/affinity.h"
#include "runtime/support/region.h"
#include "runtime/support/seconds.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

namespace llmrt::exec {

namespace {

using Clock = std::chrono::steady_clock;

template <typename F> double best_seconds(int times, F &&f) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    f();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

double read_bandwidth(cpu::Team &team) {
  constexpr size_t kBytes = size_t(512) << 20;
  Region region(kBytes, "the memory that bandwidth is measured on");
  std::memset(region.data(), 1, kBytes);
  const uint64_t *words = reinterpret_cast<const uint64_t *>(region.data());
  std::atomic<uint64_t> sink{0};
  const double seconds = best_seconds(5, [&] {
    team.parallel([&](int part, int parts) {
      const size_t n = kBytes / 8, begin = n / parts * part, end = part + 1 == parts ? n : n / parts * (part + 1);
      uint64_t sum[8] = {};
      for (size_t i = begin; i + 8 <= end; i += 8)
        for (size_t j = 0; j < 8; ++j)
          sum[j] ^= words[i + j];
      uint64_t all = 0;
      for (uint64_t s : sum)
        all ^= s;
      sink += all;
    });
  });
  return kBytes / seconds;
}

double matmul_rate(cpu::Team &team, cpu::DType type) {
  const int64_t M = 512, N = 2048, K = 2048;
  std::vector<float> x(M * K, 0.5f), y(M * N), row(K, 0.25f);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 2654435761u % 1000) / 1000.0f - 0.5f;
  std::vector<std::byte> packed(cpu::packed_weight_bytes(type, N, K) + 64);
  void *weight = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(packed.data()) + 63) / 64 * 64);
  for (int64_t n = 0; n < N; ++n)
    cpu::pack_weight_rows(weight, type, N, K, n, 1, row.data(), cpu::DType::f32, K);
  cpu::Linear call{};
  call.x = x.data(), call.ldx = K, call.w = weight, call.dtype = type, call.y = y.data(), call.ldy = N;
  call.M = M, call.N = N, call.K = K;
  const double seconds = best_seconds(5, [&] { cpu::linear(team, call); });
  return 2.0 * M * N * K / seconds;
}

} // namespace

Ceilings measure_host(plan::DType weight_type) {
  cpu::Team team(static_cast<int>(usable_cores()));
  const cpu::DType type = weight_type == plan::DType::F32   ? cpu::DType::f32
                          : weight_type == plan::DType::F16 ? cpu::DType::f16
                                                            : cpu::DType::bf16;
  return {read_bandwidth(team), matmul_rate(team, type)};
}

} // namespace llmrt::exec
