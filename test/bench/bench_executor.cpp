// What a step costs beyond its kernels: decode steps of a model with SmolLM2's number of ops but next to no
// arithmetic (all time is overhead: hand-over, dispatch, teams, collectives), then steps of SmolLM2's real shape in
// bf16 on random weights, beside the time that reading its weights takes at this machine's measured bandwidth.
//
//   bench_executor [seconds per line]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/exec/executor.h"
#include "runtime/support/affinity.h"
#include "runtime/support/region.h"
#include "runtime/support/wait_word.h"
#include "test/unit/plan/plan_builder.h"

using namespace llmrt;
using Clock = std::chrono::steady_clock;
using plan::testing::TinySpec;

namespace {

double seconds_per_line = 2;

double micros(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  double median_us = 0, best_us = 0;
  size_t ops = 0;           // of rank 0
  uint64_t weight_bytes = 0; // that one step reads, all ranks, embedding table excluded
};

// Decode steps of one sequence, one after the other, at a context around `context`.
Times decode(const TinySpec &spec, unsigned threads, int context) {
  const plan::PlanT plan = plan::testing::build_tiny_plan(spec);
  Times times;
  times.ops = plan.programs[0]->ops.size();
  for (const auto &program : plan.programs)
    for (const auto &weight : program->weights)
      times.weight_bytes += weight->name == "embed" ? 0 : weight->bytes;
  exec::ExecutorOptions options;
  options.threads = threads;
  WaitWord finished;
  auto executor = exec::Executor::create(
      plan::testing::load(plan), options,
      [&](const exec::StepBatch &, const exec::LogitsView &, const std::string &error) {
        if (!error.empty()) {
          std::fprintf(stderr, "%s\n", error.c_str());
          std::exit(1);
        }
        finished.advance();
      });
  const int page_size = static_cast<int>(spec.page_size);
  uint64_t id = 0;
  const auto step = [&](int position, int count) {
    auto batch = std::make_shared<exec::StepBatch>();
    batch->id = ++id;
    for (int i = 0; i < count; ++i) {
      batch->ids.push_back((position + i) * 7 % static_cast<int>(spec.vocab));
      batch->positions.push_back(position + i);
      batch->slot_mapping.push_back(position + i); // page p holds tokens [p, p + 1) × page_size
    }
    batch->seq_starts = {0, count};
    batch->context_lens = {position + count};
    const int pages = (position + count + page_size - 1) / page_size;
    batch->page_starts = {0, pages};
    batch->pages.resize(static_cast<size_t>(pages));
    std::iota(batch->pages.begin(), batch->pages.end(), 0);
    batch->logits_rows = {count - 1};
    const uint32_t seen = finished.load();
    const auto start = Clock::now();
    executor->submit(std::move(batch));
    finished.wait(seen, {std::chrono::microseconds(30)}, std::chrono::seconds(60));
    return micros(Clock::now() - start);
  };
  for (int at = 0; at < context; at += static_cast<int>(spec.max_batched_tokens))
    step(at, std::min(context - at, static_cast<int>(spec.max_batched_tokens)));
  std::vector<double> samples;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds_per_line);
  for (int i = 0; Clock::now() < end || samples.size() < 20; i = (i + 1) % 48) {
    const double us = step(context + i, 1);
    samples.push_back(us);
  }
  times.median_us = median(samples);
  times.best_us = *std::min_element(samples.begin(), samples.end());
  return times;
}

// Bytes per second that `threads` threads read together.
double read_bandwidth(unsigned threads) {
  Region region(size_t{512} << 20, "the bandwidth measurement");
  auto *words = reinterpret_cast<uint64_t *>(region.data());
  const size_t count = region.size() / sizeof(uint64_t);
  for (size_t i = 0; i < count; i += 64)
    words[i] = i;
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    std::atomic<uint64_t> sink{0};
    const auto start = Clock::now();
    std::vector<std::thread> readers;
    for (unsigned t = 0; t < threads; ++t)
      readers.emplace_back([&, t] {
        uint64_t sums[8] = {};
        const size_t begin = count / threads * t / 8 * 8, end = count / threads * (t + 1) / 8 * 8;
        for (size_t i = begin; i < end; i += 8)
          for (size_t j = 0; j < 8; ++j)
            sums[j] += words[i + j];
        sink += std::accumulate(sums, sums + 8, uint64_t{0});
      });
    for (std::thread &reader : readers)
      reader.join();
    best = std::max(best, static_cast<double>(region.size()) / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

TinySpec smol_ops(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp;
  spec.pp = pp;
  spec.layers = 30;
  spec.hidden = 32;
  spec.q_heads = 6;
  spec.kv_heads = 3;
  spec.head_dim = 8;
  spec.ffn = 48;
  spec.vocab = 64;
  spec.linear_layout = plan::Layout::Packed16;
  return spec;
}

TinySpec smol_shape(uint32_t tp, uint32_t pp) {
  TinySpec spec = smol_ops(tp, pp);
  spec.hidden = 576;
  spec.q_heads = 9;
  spec.kv_heads = 3;
  spec.head_dim = 64;
  spec.ffn = 1536;
  spec.vocab = 49152;
  spec.tied = true;
  spec.weight_dtype = spec.kv_dtype = plan::DType::BF16;
  spec.page_size = 16;
  spec.num_pages = 64;
  spec.max_model_len = 1024;
  spec.max_batched_tokens = 256;
  return spec;
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1)
    seconds_per_line = std::max(0.1, std::atof(argv[1]));
  const auto cores = static_cast<unsigned>(allowed_cores().size());
  std::printf("%u cores\n\noverhead: 30 layers, next to no arithmetic, batch 1\n", cores);
  for (const auto &[tp, pp, threads] : {std::tuple{1u, 1u, 1u}, {1u, 1u, cores}, {2u, 1u, cores}, {3u, 1u, cores},
                                        {6u, 1u, cores}, {1u, 2u, cores}, {3u, 2u, cores}}) {
    const Times times = decode(smol_ops(tp, pp), threads, 8);
    std::printf("  tp %u pp %u threads %u: %8.1f us a step (best %.1f), %zu ops on rank 0, %.2f us an op\n", tp, pp,
                threads, times.median_us, times.best_us, times.ops, times.median_us / static_cast<double>(times.ops * pp));
  }

  const double bandwidth = read_bandwidth(cores);
  std::printf("\nSmolLM2's shape, bf16, random weights, batch 1, context 256; read bandwidth %.1f GB/s\n", bandwidth / 1e9);
  for (const auto &[tp, pp] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 1u}, {3u, 2u}}) {
    const Times times = decode(smol_shape(tp, pp), cores, 256);
    const double floor_us = static_cast<double>(times.weight_bytes) / bandwidth * 1e6;
    std::printf("  tp %u pp %u: %8.1f us a step (best %.1f), weights %.1f MB = %.1f us at that bandwidth: %.0f%%\n", tp,
                pp, times.median_us, times.best_us, static_cast<double>(times.weight_bytes) / 1e6, floor_us,
                100 * floor_us / times.median_us);
  }
  return 0;
}
