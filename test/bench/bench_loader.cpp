// Loads one large bf16 matrix from the page cache, with each route that a weight can take, into staging slots that go
// nowhere; beside it, plain reads of the same bytes by as many threads. One line each: GB/s of the file.
//
//   bench_loader [MiB, default 1024] [threads, default all]
#include "runtime/exec/weight_loader.h"
#include "runtime/plan/access.h"
#include "runtime/plan/hash.h"
#include "runtime/plan/version.h"
#include "runtime/support/affinity.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace llmrt;
using namespace llmrt::exec;

namespace {

constexpr uint64_t kCols = 4096;

class Nowhere final : public WeightSink {
public:
  unsigned prepare(size_t largest, unsigned workers) override {
    slots_.assign(workers, std::vector<std::byte>(largest));
    return workers;
  }
  std::byte *open(unsigned worker, uint32_t, uint64_t, size_t) override { return slots_[worker].data(); }
  void close(unsigned) override {}
  void finish() override {}

private:
  std::vector<std::vector<std::byte>> slots_;
};

template <typename F> double seconds(F &&f) {
  double best = 1e30;
  for (int i = 0; i < 4; ++i) { // the first fills the page cache
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// A matrix [rows, kCols] from the file, stored as `dtype` in `layout`; where halves, as two ranks that split its columns.
std::shared_ptr<const plan::LoadedPlan> make_plan(const std::string &path, uint64_t hash, uint64_t rows, plan::DType dtype,
                                                  plan::Layout layout, bool halves) {
  plan::PlanT made;
  made.version_major = plan::kVersionMajor;
  made.version_minor = plan::kVersionMinor;
  auto file = std::make_unique<plan::FileT>();
  file->path = path;
  file->bytes = rows * kCols * 2;
  file->header_bytes = 64;
  file->header_hash = hash;
  made.files.push_back(std::move(file));
  auto tensor = std::make_unique<plan::TensorT>();
  tensor->name = "matrix";
  tensor->file = 0;
  tensor->bytes = rows * kCols * 2;
  tensor->dtype = plan::DType::BF16;
  tensor->rows = rows;
  tensor->cols = kCols;
  made.tensors.push_back(std::move(tensor));
  for (uint32_t rank = 0; rank < (halves ? 2u : 1u); ++rank) {
    auto program = std::make_unique<plan::ProgramT>();
    auto weight = std::make_unique<plan::WeightT>();
    auto part = std::make_unique<plan::WeightPartT>();
    part->rows = weight->rows = rows;
    part->cols = weight->cols = halves ? kCols / 2 : kCols;
    part->col = rank * kCols / 2;
    weight->name = "matrix";
    weight->dtype = dtype;
    weight->layout = layout;
    plan::weight_bytes(dtype, layout, rows, weight->cols, weight->bytes);
    program->rank = rank;
    program->weight_bytes = weight->bytes;
    weight->parts.push_back(std::move(part));
    program->weights.push_back(std::move(weight));
    made.programs.push_back(std::move(program));
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(plan::Plan::Pack(builder, &made), plan::PlanIdentifier());
  return plan::LoadedPlan::from_bytes({builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()}, path);
}

} // namespace

int main(int argc, char **argv) {
  const uint64_t mib = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024;
  const unsigned threads = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10))
                                    : static_cast<unsigned>(allowed_cores().size());
  if (mib == 0 || threads == 0) {
    std::fprintf(stderr, "usage: bench_loader [MiB] [threads]\n");
    return 2;
  }
  std::string path = (std::filesystem::temp_directory_path() / "bench-loader-XXXXXX").string();
  const int file = mkstemp(path.data());
  std::vector<uint16_t> block(1 << 19);
  for (size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<uint16_t>(0x3c00 + i * 2654435761u % 0x300); // bf16 numbers around 0.01
  for (uint64_t i = 0; i < mib; ++i)
    if (write(file, block.data(), 1 << 20) != 1 << 20) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      unlink(path.c_str());
      return 1;
    }
  const uint64_t bytes = mib << 20, rows = bytes / 2 / kCols, hash = plan::hash_bytes(block.data(), 64);
  auto report = [&](const char *what, double s) {
    std::printf("%-28s %7.2f GB/s  (%llu MiB, %u threads)\n", what, static_cast<double>(bytes) / s / 1e9,
                static_cast<unsigned long long>(mib), threads);
  };

  report("plain reads of 4 MiB", seconds([&] {
           std::vector<std::thread> readers;
           for (unsigned t = 0; t < threads; ++t)
             readers.emplace_back([&, t] {
               std::vector<std::byte> slot(4 << 20);
               for (uint64_t at = uint64_t{t} << 22; at < bytes; at += uint64_t{threads} << 22)
                 if (pread(file, slot.data(), std::min<uint64_t>(4 << 20, bytes - at), static_cast<off_t>(at)) <= 0)
                   std::abort();
             });
           for (std::thread &reader : readers)
             reader.join();
         }));
  struct Route {
    const char *name;
    plan::DType dtype;
    plan::Layout layout;
    bool halves;
  };
  using plan::DType;
  using plan::Layout;
  for (const Route &route : {Route{"bf16 as it is", DType::BF16, Layout::RowMajor, false},
                             Route{"bf16, columns in halves", DType::BF16, Layout::RowMajor, true},
                             Route{"bf16 packed", DType::BF16, Layout::Packed16, false},
                             Route{"bf16 to f16", DType::F16, Layout::RowMajor, false},
                             Route{"bf16 to f32, packed", DType::F32, Layout::Packed16, false}}) {
    const auto plan = make_plan(path, hash, rows, route.dtype, route.layout, route.halves);
    std::vector<WeightPlaces> places;
    for (uint32_t rank = 0; rank < plan->num_ranks(); ++rank)
      places.push_back(planned_places(plan->program(rank)));
    WeightLoad options;
    options.threads = threads;
    report(route.name, seconds([&] {
             Nowhere sink;
             load_weights(*plan, places, sink, options);
           }));
  }
  close(file);
  unlink(path.c_str());
}
