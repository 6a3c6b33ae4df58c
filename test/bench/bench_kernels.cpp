// Times the CPU kernels, each beside its floor measured in the same run: bytes over the read bandwidth for
// what streams, flops over a library's f32 matrix product for what computes (oneDNN where it is installed).
//   bench_kernels [--threads N] [--filter team|linear|attention|rows|load] [--best yes] [--dtype
//   f32|bf16|f16|q8_0|q4_1]
// Times are medians; with --best yes the shortest of the runs, for machines that others use as well.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include "kernels/cpu/kernels.h"

#ifdef LLMRT_BENCH_DNNL
#include <dnnl.h>
#include <dnnl.hpp>
#endif

using namespace llmrt::cpu;

namespace {

int threads = 2;
bool best = false;
std::string filter, only_dtype;

struct Buffer { // aligned, in huge pages where the system has them, touched
  explicit Buffer(size_t bytes)
      : bytes(bytes), p(std::aligned_alloc(1 << 21, (bytes + 0x1fffff) >> 21 << 21)) {
    madvise(p, (bytes + 0x1fffff) >> 21 << 21, MADV_HUGEPAGE);
    std::memset(p, 0, bytes);
  }
  ~Buffer() { std::free(p); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  float *f() { return static_cast<float *>(p); }
  size_t bytes;
  void *p;
};

void randomize(float *x, size_t n) {
  uint32_t s = 12345;
  for (size_t i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    x[i] = static_cast<float>(static_cast<int32_t>(s)) * 0x1p-31f;
  }
}

// Median (or best) seconds of one call, over about 0.2 s.
double seconds(const std::function<void()> &fn) {
  using Clock = std::chrono::steady_clock;
  auto once = [&] {
    const auto a = Clock::now();
    fn();
    return std::chrono::duration<double>(Clock::now() - a).count();
  };
  once();
  const double guess = std::max(1e-7, once());
  const int inner = static_cast<int>(std::clamp(2e-4 / guess, 1.0, 2000.0));
  const int runs = static_cast<int>(std::clamp(0.2 / (guess * inner), 3.0, 101.0));
  std::vector<double> t;
  for (int r = 0; r < runs; r++) {
    const auto a = Clock::now();
    for (int i = 0; i < inner; i++)
      fn();
    t.push_back(std::chrono::duration<double>(Clock::now() - a).count() / inner);
  }
  std::sort(t.begin(), t.end());
  return best ? t[0] : t[static_cast<size_t>(runs / 2)];
}

bool wanted(const std::string &section) {
  return filter.empty() || section.find(filter) != std::string::npos;
}

// Eight streams with prefetch: more than one stream is needed to read at the memory's speed.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t sum_words(const uint64_t *p, size_t n) {
  uint64_t s[8] = {};
  const size_t part = n / 8;
  for (size_t i = 0; i + 8 <= part; i += 8) {
    for (size_t j = 0; j < 8; j++)
      __builtin_prefetch(p + j * part + i + 256);
    for (size_t k = 0; k < 8; k++)
      for (size_t j = 0; j < 8; j++)
        s[k] += p[j * part + i + k];
  }
  return s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

double read_bandwidth(Team &team) {
  static Buffer b(size_t{512} << 20);
  std::atomic<uint64_t> sink{0};
  const size_t words = b.bytes / 8 - 1024;
  const double t = seconds([&] {
    team.parallel([&](int part, int parts) {
      const size_t a = words * static_cast<size_t>(part) / static_cast<size_t>(parts);
      const size_t e = words * static_cast<size_t>(part + 1) / static_cast<size_t>(parts);
      sink += sum_words(static_cast<const uint64_t *>(b.p) + a, e - a);
    });
  });
  return static_cast<double>(b.bytes) / t;
}

#ifdef LLMRT_BENCH_DNNL
double dnnl_sgemm_flops() {
  const dnnl_dim_t n = 2048;
  Buffer a(n * n * 4), b(n * n * 4), c(n * n * 4);
  randomize(a.f(), n * n);
  randomize(b.f(), n * n);
  const double t = seconds([&] { dnnl_sgemm('N', 'N', n, n, n, 1, a.f(), n, b.f(), n, 0, c.f(), n); });
  return 2.0 * n * n * n / t;
}

// oneDNN's matmul with weights in the layout it prefers, as a peer: seconds of y[M,N] = x[M,K] W.
double dnnl_matmul_seconds(int64_t M, int64_t N, int64_t K, bool bf16) {
  using namespace dnnl;
  engine e(engine::kind::cpu, 0);
  stream s(e);
  const auto in = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  memory::desc xd({M, K}, in, memory::format_tag::ab), wd({K, N}, in, memory::format_tag::any),
      yd({M, N}, memory::data_type::f32, memory::format_tag::ab);
  matmul::primitive_desc pd(matmul::desc(xd, wd, yd), e);
  memory x(xd, e), w(pd.weights_desc(), e), y(yd, e);
  std::memset(w.get_data_handle(), 0x3c, pd.weights_desc().get_size());
  std::memset(x.get_data_handle(), 0x3c, xd.get_size());
  matmul prim(pd);
  return seconds([&] {
    prim.execute(s, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    s.wait();
  });
}
#endif

const char *name(DType t) {
  const char *names[] = {"f32", "bf16", "f16", "q8_0", "q4_1"};
  return names[static_cast<int>(t)];
}

void bench_linear(Team &team, double bandwidth, double peak) {
  struct Shape {
    int64_t N, K;
  };
  std::printf("\nlinear (weights rotate through > 128 MB so that they come from memory; floor: the larger of "
              "bytes and "
              "sgemm flops)\n%-6s %6s %6s %5s %10s %9s %9s %8s %8s\n",
              "dtype", "N", "K", "M", "us", "GB/s", "GFLOP/s", "of read", "of sgemm");
  for (DType t : {DType::bf16, DType::f32, DType::f16, DType::q8_0, DType::q4_1}) {
    if (!only_dtype.empty() && only_dtype != name(t))
      continue;
    for (Shape s : {Shape{960, 576}, {576, 576}, {3072, 576}, {576, 1536}, {49152, 576}}) {
      const size_t bytes = packed_weight_bytes(t, s.N, s.K);
      const size_t copies = std::max<size_t>(1, (size_t{128} << 20) / bytes);
      Buffer w(bytes * copies), row(static_cast<size_t>(s.K) * 4);
      randomize(row.f(), static_cast<size_t>(s.K));
      for (size_t c = 0; c < copies; c++) {
        char *at = static_cast<char *>(w.p) + c * bytes;
        if (is_quantized(t))
          std::memset(at, 0x11, bytes); // small scales, any integers
        else if (c == 0)
          for (int64_t n = 0; n < s.N; n++)
            pack_weight_rows(at, t, s.N, s.K, n, 1, row.p, DType::f32, s.K);
        else
          std::memcpy(at, w.p, bytes);
      }
      for (int64_t M : {1, 2, 4, 8, 16, 32, 64, 128, 512}) {
        if (s.N > 10000 && M > 16)
          continue;
        Buffer x(static_cast<size_t>(M * s.K) * 4), y(static_cast<size_t>(M * s.N) * 4);
        randomize(x.f(), static_cast<size_t>(M * s.K));
        size_t turn = 0;
        const double sec = seconds([&] {
          linear(team, {.x = x.f(),
                        .ldx = s.K,
                        .w = static_cast<char *>(w.p) + turn * bytes,
                        .dtype = t,
                        .y = y.f(),
                        .ldy = s.N,
                        .M = M,
                        .N = s.N,
                        .K = s.K});
          turn = (turn + 1) % copies;
        });
        const double gbs = static_cast<double>(bytes) / sec,
                     flops = 2.0 * static_cast<double>(M * s.N * s.K) / sec;
        std::printf("%-6s %6ld %6ld %5ld %10.1f %9.1f %9.1f %7.0f%% %7.0f%%\n", name(t), s.N, s.K, M,
                    sec * 1e6, gbs * 1e-9, flops * 1e-9, 100 * gbs / bandwidth,
                    peak > 0 ? 100 * flops / peak : 0);
      }
#ifdef LLMRT_BENCH_DNNL
      if ((t == DType::f32 || t == DType::bf16) && s.N < 10000)
        for (int64_t M : {1, 512}) {
          const double sec = dnnl_matmul_seconds(M, s.N, s.K, t == DType::bf16);
          std::printf(
              "%-6s %6ld %6ld %5ld %10.1f %9s %9.1f   oneDNN matmul, x already %s, weights in cache\n",
              name(t), s.N, s.K, M, sec * 1e6, "", 2e-9 * static_cast<double>(M * s.N * s.K) / sec, name(t));
        }
#endif
    }
  }
}

void bench_attention(Team &team, double bandwidth, double peak) {
  std::printf(
      "\nattention, 9 query heads on 3 KV heads of 64, page 16\n%-6s %8s %8s %5s %10s %9s %9s %8s %8s\n",
      "kv", "new", "context", "seqs", "us", "GB/s", "GFLOP/s", "of read", "of sgemm");
  constexpr int hd = 64, kvh = 3, qh = 9, page = 16;
  struct Case {
    int64_t rows, context, seqs;
  };
  for (DType t : {DType::bf16, DType::f32})
    for (Case c : {Case{512, 512, 1},
                   {512, 2048, 1},
                   {512, 8192, 1},
                   {1, 128, 1},
                   {1, 512, 1},
                   {1, 4096, 1},
                   {1, 32768, 1},
                   {1, 1024, 32},
                   {1, 4096, 32}}) {
      const int64_t pages_per_seq = (c.context + page - 1) / page, pages = pages_per_seq * c.seqs;
      const int64_t stride = 2 * kvh * page * hd * static_cast<int64_t>(dtype_bytes(t));
      Buffer kv(static_cast<size_t>(pages * stride));
      std::vector<float> one(static_cast<size_t>(stride) / dtype_bytes(t));
      randomize(one.data(), one.size());
      for (int64_t p = 0; p < pages; p++)
        from_f32(static_cast<char *>(kv.p) + p * stride, t, one.data(), static_cast<int64_t>(one.size()));
      std::vector<int32_t> table(static_cast<size_t>(pages)), starts, contexts, heads;
      for (size_t i = 0; i < table.size(); i++)
        table[i] = static_cast<int32_t>(i);
      std::shuffle(table.begin(), table.end(), std::mt19937(1));
      for (int64_t s = 0; s <= c.seqs; s++)
        starts.push_back(static_cast<int32_t>(s * c.rows));
      contexts.assign(static_cast<size_t>(c.seqs), static_cast<int32_t>(c.context));
      for (int h = 0; h < qh; h++)
        heads.push_back(h / 3);
      const int64_t T = c.rows * c.seqs;
      Buffer q(static_cast<size_t>(T * qh * hd) * 4), out(static_cast<size_t>(T * qh * hd) * 4);
      randomize(q.f(), static_cast<size_t>(T * qh * hd));
      const double sec = seconds([&] {
        paged_attention(team, {.q = q.f(),
                               .q_stride = qh * hd,
                               .out = out.f(),
                               .out_stride = qh * hd,
                               .kv = {kv.p, stride, t, kvh, page, hd},
                               .q_heads = qh,
                               .kv_head_of_q = heads.data(),
                               .num_seqs = static_cast<int>(c.seqs),
                               .seq_starts = starts.data(),
                               .context_lens = contexts.data(),
                               .page_table = table.data(),
                               .page_table_stride = pages_per_seq,
                               .scale = 0.125f});
      });
      const double keys = static_cast<double>(c.rows) *
                          (static_cast<double>(c.context) - static_cast<double>(c.rows - 1) / 2);
      const double flops = 4.0 * keys * qh * hd * static_cast<double>(c.seqs) / sec;
      const double gbs = static_cast<double>(kv.bytes) / sec;
      std::printf("%-6s %8ld %8ld %5ld %10.1f %9.1f %9.1f %7.0f%% %7.0f%%\n", name(t), c.rows, c.context,
                  c.seqs, sec * 1e6, gbs * 1e-9, flops * 1e-9, 100 * gbs / bandwidth,
                  peak > 0 ? 100 * flops / peak : 0);
    }
}

void bench_rows(Team &team, double bandwidth) {
  std::printf("\nrow kernels (SmolLM2 widths; floor: bytes read and written over the read bandwidth; small "
              "ones stay in cache)\n"
              "%-16s %6s %10s %10s\n",
              "kernel", "rows", "us", "floor us");
  for (int64_t T : {1, 32, 512, 8192}) {
    constexpr int64_t H = 576, F = 1536, W = 960;
    Buffer a(static_cast<size_t>(T * 2 * F) * 4), b(static_cast<size_t>(T * 2 * F) * 4), w(F * 4);
    randomize(a.f(), static_cast<size_t>(T * 2 * F));
    randomize(b.f(), static_cast<size_t>(T * 2 * F));
    randomize(w.f(), F);
    std::vector<int32_t> pos(static_cast<size_t>(T));
    for (int64_t t = 0; t < T; t++)
      pos[static_cast<size_t>(t)] = static_cast<int32_t>(t);
    std::vector<float> freq(32), table(static_cast<size_t>(T * 64));
    for (size_t i = 0; i < 32; i++)
      freq[i] = static_cast<float>(std::pow(1e4, -static_cast<double>(i) / 32));
    auto line = [&](const char *kernel, double bytes, const std::function<void()> &fn) {
      std::printf("%-16s %6ld %10.2f %10.2f\n", kernel, T, seconds(fn) * 1e6,
                  bytes * static_cast<double>(T) / bandwidth * 1e6);
    };
    line("rms_norm", 8 * H, [&] { rms_norm(team, b.f(), H, a.f(), H, w.f(), 1e-5f, 0, T, H); });
    line("add_rms_norm", 16 * H,
         [&] { add_rms_norm(team, b.f(), H, a.f(), H, b.f(), H, w.f(), 1e-5f, 0, T, H); });
    line("gated_act silu", 12 * F,
         [&] { gated_act(team, Act::silu, b.f(), F, a.f(), 2 * F, a.f() + F, 2 * F, T, F); });
    line("rope_table", 256, [&] { rope_table(team, table.data(), pos.data(), freq.data(), 1, T, 64); });
    line("rope q+k", 8 * 768, [&] {
      rope(team, {.x = a.f(),
                  .x_stride = W,
                  .table = table.data(),
                  .T = T,
                  .heads = 12,
                  .head_dim = 64,
                  .rotary_dim = 64});
    });
    line("add", 12 * H, [&] { add(team, b.f(), H, a.f(), H, b.f(), H, T, H); });
    line("f32 to bf16", 6 * H, [&] { from_f32(b.p, DType::bf16, a.f(), T * H); });
  }
}

void bench_team(Team &team) {
  const double t = seconds([&] { team.parallel([](int, int) {}); });
  std::printf("\nteam: an empty parallel region of %d threads takes %.2f us\n", team.size(), t * 1e6);
}

void bench_load(double bandwidth) {
  std::printf("\nload-time kernels, one thread\n");
  constexpr int64_t N = 3072, K = 1536;
  Buffer src(N * K * 4), dst(N * K * 4);
  randomize(src.f(), N * K);
  for (DType t : {DType::f32, DType::bf16, DType::f16}) {
    const double s = seconds([&] { pack_weight_rows(dst.p, t, N, K, 0, N, src.p, DType::f32, K); });
    std::printf("pack f32 -> %-5s %7.3f ns/element (%.0f%% of read bandwidth)\n", name(t), s * 1e9 / (N * K),
                400.0 * N * K / s / bandwidth);
  }
  for (GgmlType t : {GgmlType::F16, GgmlType::Q4_0, GgmlType::Q4_1, GgmlType::Q5_0, GgmlType::Q5_1,
                     GgmlType::Q8_0, GgmlType::Q4_K, GgmlType::Q5_K, GgmlType::Q6_K}) {
    const double s = seconds([&] { dequantize(dst.f(), src.p, t, N * K / 4); });
    std::printf("dequantize %-6s %7.3f ns/element\n", ggml_type_name(t), s * 1e9 / (N * K / 4));
  }
}

} // namespace

int main(int argc, char **argv) {
  threads = static_cast<int>(std::thread::hardware_concurrency());
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--threads"))
      threads = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--filter"))
      filter = argv[i + 1];
    if (!std::strcmp(argv[i], "--dtype"))
      only_dtype = argv[i + 1];
    if (!std::strcmp(argv[i], "--best"))
      best = true;
  }
  Team team(threads);
  const double bandwidth = read_bandwidth(team);
  double peak = 0;
#ifdef LLMRT_BENCH_DNNL
  peak = dnnl_sgemm_flops();
#endif
  std::printf("isa %s, %d threads, %s times, read %.1f GB/s, library sgemm 2048^3 %.1f GFLOP/s\n",
              isa_name(current_isa()), threads, best ? "best" : "median", bandwidth * 1e-9, peak * 1e-9);
  if (wanted("team"))
    bench_team(team);
  if (wanted("linear"))
    bench_linear(team, bandwidth, peak);
  if (wanted("attention"))
    bench_attention(team, bandwidth, peak);
  if (wanted("rows"))
    bench_rows(team, bandwidth);
  if (wanted("load"))
    bench_load(bandwidth);
  return 0;
}
