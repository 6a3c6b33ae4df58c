// Cuts all weights into pieces of a few panels, hands them to worker threads, and packs each piece.
#include "runtime/exec/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/linear.h"
#include "runtime/exec/tensor_reader.h"
#include "runtime/exec/weight_files.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

constexpr uint64_t kPieceBytes = 1 << 20; // f32 scratch of a piece, unless one panel needs more

// A weight with its parts in the order of their destination rows, so that those of a piece are found at once.
struct Target {
  const plan::Weight *weight = nullptr;
  plan::Layout layout = plan::Layout::RowMajor; // in memory
  std::byte *data = nullptr;
  std::vector<const plan::WeightPart *> parts; // by dst_row
  std::vector<uint64_t> reach;                 // reach[i]: the largest end row of parts[0 … i]
};

struct Piece {
  uint32_t target = 0;
  uint64_t row = 0, rows = 0;
};

std::string label(uint32_t rank, const plan::Weight &weight) {
  return "weight " + plan::quoted(weight.name()) + " of rank " + std::to_string(rank);
}

cpu::DType memory_type(const std::string &label, plan::DType dtype) {
  switch (dtype) {
  case plan::DType::F32:
    return cpu::DType::f32;
  case plan::DType::F16:
    return cpu::DType::f16;
  case plan::DType::BF16:
    return cpu::DType::bf16;
  case plan::DType::Q8_0:
    return cpu::DType::q8_0;
  case plan::DType::Q4_1:
    return cpu::DType::q4_1;
  default:
    throw Error(label + " is planned as " + plan::name_of(dtype) +
                ", for which the CPU has no kernel: compile the plan again with --dtype float32, bfloat16 or float16");
  }
}

Target make_target(const plan::LoadedPlan &plan, uint32_t rank, const plan::Weight &weight, const WeightPlace &place,
                   const WeightRegion &region) {
  const std::string name = label(rank, weight);
  memory_type(name, weight.dtype());
  uint64_t bytes = 0;
  if (!plan::weight_bytes(weight.dtype(), place.layout, weight.rows(), weight.cols(), bytes) || bytes > place.bytes ||
      place.offset > region.places.bytes || place.bytes > region.places.bytes - place.offset)
    throw Error(name + " needs " + std::to_string(bytes) + " bytes, the plan gives it " + std::to_string(place.bytes) +
                " at " + std::to_string(place.offset) + " of " + std::to_string(region.places.bytes) +
                ": compile the plan again");
  Target target;
  target.weight = &weight;
  target.layout = place.layout;
  target.data = region.data + place.offset;
  for (const plan::WeightPart *part : plan::each(weight.parts())) {
    const plan::Tensor &tensor = plan.tensor(*part);
    const auto inside = [](uint64_t begin, uint64_t count, uint64_t end) {
      return begin <= end && count <= end - begin;
    };
    if (!inside(part->row(), part->rows(), tensor.rows()) || !inside(part->col(), part->cols(), tensor.cols()) ||
        !inside(part->dst_row(), part->rows(), weight.rows()) ||
        !inside(part->dst_col(), part->cols(), weight.cols()))
      throw Error(name + " takes a box out of tensor " + plan::quoted(tensor.name()) + " that exceeds the tensor's " +
                  std::to_string(tensor.rows()) + " x " + std::to_string(tensor.cols()) + " or its own " +
                  std::to_string(weight.rows()) + " x " + std::to_string(weight.cols()) + ": compile the plan again");
    const bool blocks = cpu::is_quantized(memory_type(name, weight.dtype()));
    if (blocks && (target.layout != plan::Layout::Packed16 || part->cols() != weight.cols() || tensor.file() < 0))
      throw Error(name + " is kept as " + plan::name_of(weight.dtype()) + ", which must be packed16 and come from a file in " +
                  "whole rows: compile the plan again");
    if (part->rows() != 0 && part->cols() != 0)
      target.parts.push_back(part);
  }
  std::stable_sort(target.parts.begin(), target.parts.end(),
                   [](const auto *a, const auto *b) { return a->dst_row() < b->dst_row(); });
  uint64_t reach = 0;
  for (const plan::WeightPart *part : target.parts)
    target.reach.push_back(reach = std::max(reach, part->dst_row() + part->rows()));
  return target;
}

// What one worker thread needs.
class Packer {
public:
  Packer(const plan::LoadedPlan &plan, const WeightFiles &files) : plan_(plan), reader_(files) {}

  void pack(const Target &target, const Piece &piece) {
    const plan::Weight &weight = *target.weight;
    const uint64_t cols = weight.cols();
    const cpu::DType dtype = memory_type("a weight", weight.dtype());
    if (cpu::is_quantized(dtype))
      return pack_blocks(target, piece, dtype);
    scratch_.resize(std::max<size_t>(scratch_.size(), piece.rows * cols));
    read_rows(target, piece);

    const auto N = static_cast<int64_t>(weight.rows()), K = static_cast<int64_t>(cols);
    if (target.layout == plan::Layout::Packed16) {
      if (piece.row == 0)
        cpu::pack_weight_padding(target.data, dtype, N, K);
      cpu::pack_weight_rows(target.data, dtype, N, K, static_cast<int64_t>(piece.row),
                            static_cast<int64_t>(piece.rows), scratch_.data(), cpu::DType::f32, K);
    } else {
      cpu::from_f32(target.data + piece.row * cols * cpu::dtype_bytes(dtype), dtype, scratch_.data(),
                    static_cast<int64_t>(piece.rows * cols));
    }
  }

private:
  // Calls use(part, first row of the part, first row of the weight, rows) for what a piece takes of each part.
  template <typename Use> void for_parts(const Target &target, const Piece &piece, Use &&use) {
    const uint64_t end = piece.row + piece.rows, cols = target.weight->cols();
    uint64_t covered = 0;
    size_t i = static_cast<size_t>(std::upper_bound(target.reach.begin(), target.reach.end(), piece.row) -
                                   target.reach.begin());
    for (; i < target.parts.size() && target.parts[i]->dst_row() < end; ++i) {
      const plan::WeightPart &part = *target.parts[i];
      const uint64_t from = std::max(part.dst_row(), piece.row), to = std::min(part.dst_row() + part.rows(), end);
      if (from >= to)
        continue;
      covered += (to - from) * part.cols();
      use(part, part.row() + (from - part.dst_row()), from, to - from);
    }
    if (covered != piece.rows * cols)
      throw Error("weight " + plan::quoted(target.weight->name()) + " has parts for " + std::to_string(covered) +
                  " of the " + std::to_string(piece.rows * cols) + " elements from row " + std::to_string(piece.row) +
                  " on: compile the plan again");
  }

  void read_rows(const Target &target, const Piece &piece) {
    const uint64_t cols = target.weight->cols();
    for_parts(target, piece, [&](const plan::WeightPart &part, uint64_t row, uint64_t to, uint64_t rows) {
      reader_.read(plan_.tensor(part), row, rows, part.col(), part.cols(),
                   scratch_.data() + (to - piece.row) * cols + part.dst_col(), cols);
    });
  }

  // Blocks go into the weight as they are; each part fills whole rows (make_target saw to it).
  void pack_blocks(const Target &target, const Piece &piece, cpu::DType dtype) {
    const auto N = static_cast<int64_t>(target.weight->rows()), K = static_cast<int64_t>(target.weight->cols());
    if (piece.row == 0)
      cpu::pack_weight_padding(target.data, dtype, N, K);
    for_parts(target, piece, [&](const plan::WeightPart &part, uint64_t row, uint64_t to, uint64_t rows) {
      const plan::Tensor &tensor = plan_.tensor(part);
      reader_.read_blocks(tensor, row, rows, part.col(), part.cols(),
                          [&](uint64_t first, uint64_t count, const std::byte *blocks, size_t row_bytes) {
                            cpu::pack_quantized_rows(target.data, dtype, N, K, static_cast<int64_t>(to + first),
                                                     static_cast<int64_t>(count), blocks, file_type(tensor.dtype()), row_bytes);
                          });
    });
  }

  const plan::LoadedPlan &plan_;
  TensorReader reader_;
  std::vector<float> scratch_;
};

// Rows of a piece: whole panels, about kPieceBytes of f32.
uint64_t piece_rows(const plan::Weight &weight) {
  const uint64_t panel = cpu::kPanelRows;
  const uint64_t rows = kPieceBytes / sizeof(float) / std::max<uint64_t>(weight.cols(), 1);
  return std::max(panel, rows / panel * panel);
}

} // namespace

void load_weights(const plan::LoadedPlan &plan, const std::vector<WeightRegion> &regions, const WeightLoad &options) {
  const WeightFiles files(plan, options.folder);
  for (const plan::Tensor *tensor : plan::each(plan.root().tensors()))
    check_tensor(plan, *tensor);

  std::vector<Target> targets;
  std::vector<Piece> pieces;
  uint64_t total = 0;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank) {
    const WeightRegion &region = regions.at(rank);
    for (uint32_t i = 0; i < plan::size_of(plan.program(rank).weights()); ++i) {
      const plan::Weight *weight = plan.program(rank).weights()->Get(i);
      targets.push_back(make_target(plan, rank, *weight, region.places.weights.at(i), region));
      const uint64_t step = piece_rows(*weight);
      for (uint64_t row = 0; row < weight->rows(); row += step)
        pieces.push_back({static_cast<uint32_t>(targets.size() - 1), row, std::min(step, weight->rows() - row)});
      total += weight->bytes();
    }
  }

  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr failure;
  const unsigned workers = std::max(1u, options.threads);
  unsigned running = workers;

  const auto work = [&] {
    try {
      Packer packer(plan, files);
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
        const Target &target = targets[pieces[i].target];
        packer.pack(target, pieces[i]);
        done.fetch_add(target.weight->bytes() * pieces[i].rows / target.weight->rows(), std::memory_order_relaxed);
      }
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failure)
        failure = std::current_exception();
      next.store(pieces.size(), std::memory_order_relaxed); // the others stop at their next piece
    }
    std::lock_guard lock(mutex);
    --running;
    changed.notify_one();
  };

  std::vector<std::thread> threads;
  threads.reserve(workers);
  try {
    for (unsigned i = 0; i < workers; ++i)
      threads.emplace_back(work);
  } catch (const std::system_error &) { // no more threads to be had: go on with those there are
    if (threads.empty())
      throw Error("cannot start a thread to load weights with: raise the limit on threads (ulimit -u)");
    std::lock_guard lock(mutex);
    running -= workers - static_cast<unsigned>(threads.size());
  }
  try {
    std::unique_lock lock(mutex);
    while (running != 0) {
      changed.wait_for(lock, std::chrono::milliseconds(200));
      if (options.on_progress && running != 0) {
        lock.unlock();
        options.on_progress(std::min(done.load(std::memory_order_relaxed), total), total);
        lock.lock();
      }
    }
  } catch (...) { // of the callback
    next.store(pieces.size(), std::memory_order_relaxed);
    for (std::thread &thread : threads)
      thread.join();
    throw;
  }
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
  if (options.on_progress)
    options.on_progress(total, total);
}

} // namespace llmrt::exec
