// Slices of tensors from files: which bytes to read, and their conversion.
#include "runtime/exec/tensor_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/cpu/dequant.h"
#include "runtime/exec/fill.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

// One read covers several rows when it stays under this size, which a core's cache holds …
constexpr uint64_t kReadBytes = 256 << 10;
// … and the bytes between two rows' slices are fewer than this: reading them costs less than another call. (bench_loader:
// halves of rows of 8 KiB at 17 GB/s on two cores, at 9 with a call a row.)
constexpr uint64_t kGapBytes = 16 << 10;

} // namespace

cpu::GgmlType file_type(plan::DType dtype) {
  switch (dtype) {
  case plan::DType::F32:
    return cpu::GgmlType::F32;
  case plan::DType::F16:
    return cpu::GgmlType::F16;
  case plan::DType::BF16:
    return cpu::GgmlType::BF16;
  case plan::DType::Q4_0:
    return cpu::GgmlType::Q4_0;
  case plan::DType::Q4_1:
    return cpu::GgmlType::Q4_1;
  case plan::DType::Q5_0:
    return cpu::GgmlType::Q5_0;
  case plan::DType::Q5_1:
    return cpu::GgmlType::Q5_1;
  case plan::DType::Q8_0:
    return cpu::GgmlType::Q8_0;
  case plan::DType::Q4_K:
    return cpu::GgmlType::Q4_K;
  case plan::DType::Q5_K:
    return cpu::GgmlType::Q5_K;
  case plan::DType::Q6_K:
    return cpu::GgmlType::Q6_K;
  }
  throw Error("a tensor has the unknown data type " + std::to_string(static_cast<int>(dtype)) +
              ": compile the plan again with this release's llmc");
}

void check_tensor(const plan::LoadedPlan &plan, const plan::Tensor &tensor) {
  if (tensor.file() < 0) {
    if (tensor.fill() == plan::Fill::FromFile)
      throw Error("tensor " + plan::quoted(tensor.name()) + " has neither a file nor a fill: compile the plan again");
    return;
  }
  const auto *files = plan.root().files();
  if (static_cast<uint32_t>(tensor.file()) >= plan::size_of(files))
    throw Error("tensor " + plan::quoted(tensor.name()) + " is in file " + std::to_string(tensor.file()) + " of " +
                std::to_string(plan::size_of(files)) + ": compile the plan again");
  uint64_t bytes = 0;
  if (!plan::row_major_bytes(tensor.dtype(), tensor.rows(), tensor.cols(), bytes) || bytes != tensor.bytes())
    throw Error("tensor " + plan::quoted(tensor.name()) + " of " + std::to_string(tensor.rows()) + " x " +
                std::to_string(tensor.cols()) + " " + plan::name_of(tensor.dtype()) + " needs " +
                std::to_string(bytes) + " bytes, the plan says " + std::to_string(tensor.bytes()) +
                ": compile the plan again");
  const uint64_t size = files->Get(static_cast<uint32_t>(tensor.file()))->bytes();
  if (tensor.offset() > size || bytes > size - tensor.offset())
    throw Error("tensor " + plan::quoted(tensor.name()) + " lies at [" + std::to_string(tensor.offset()) + ", +" +
                std::to_string(bytes) + "), beyond its file's " + std::to_string(size) +
                " bytes: compile the plan again");
}

void TensorReader::read(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols,
                        float *out, size_t out_stride) {
  if (tensor.file() >= 0)
    return read_file(tensor, row, rows, col, cols, out, out_stride);
  const uint64_t seed = fill_seed(plan::view_of(tensor.name()));
  for (uint64_t i = 0; i < rows; ++i)
    fill_values(out + i * out_stride, tensor.fill(), tensor.fill_scale(), seed, (row + i) * tensor.cols() + col, cols);
}

void TensorReader::copy(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols, std::byte *out,
                        size_t out_stride) {
  const uint64_t element = plan::block_bytes(tensor.dtype()), row_bytes = tensor.cols() * element, slice = cols * element;
  const uint64_t begin = tensor.offset() + row * row_bytes + col * element;
  const auto file = static_cast<uint32_t>(tensor.file());
  if (slice == row_bytes && out_stride == row_bytes)
    return files_.read(file, begin, out, rows * row_bytes);
  if (row_bytes - slice >= kGapBytes || rows == 1) { // nothing to gain from one read over several rows
    for (uint64_t i = 0; i < rows; ++i)
      files_.read(file, begin + i * row_bytes, out + i * out_stride, slice);
    return;
  }
  read_blocks(tensor, row, rows, col, cols, [&](uint64_t first, uint64_t count, const std::byte *bytes, size_t stride) {
    for (uint64_t i = 0; i < count; ++i)
      std::memcpy(out + (first + i) * out_stride, bytes + i * stride, slice);
  });
}

void TensorReader::read_blocks(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols,
                               const UseBlocks &use) {
  const uint64_t elements = plan::block_elements(tensor.dtype()), bytes = plan::block_bytes(tensor.dtype());
  const uint64_t first_block = col / elements;
  const uint64_t blocks = (col + cols + elements - 1) / elements - first_block;
  const uint64_t row_bytes = tensor.cols() / elements * bytes;
  const uint64_t slice_bytes = blocks * bytes;
  const uint64_t at_once =
      row_bytes - slice_bytes < kGapBytes ? std::clamp<uint64_t>(kReadBytes / row_bytes, 1, rows) : 1;
  for (uint64_t done = 0; done < rows; done += at_once) {
    const uint64_t n = std::min(at_once, rows - done);
    const uint64_t span = (n - 1) * row_bytes + slice_bytes;
    if (raw_.size() < span)
      raw_.resize(span);
    files_.read(static_cast<uint32_t>(tensor.file()),
                tensor.offset() + (row + done) * row_bytes + first_block * bytes, raw_.data(), span);
    use(done, n, raw_.data(), row_bytes);
  }
}

void TensorReader::read_file(const plan::Tensor &tensor, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols,
                             float *out, size_t out_stride) {
  const cpu::GgmlType type = file_type(tensor.dtype());
  const uint64_t elements = plan::block_elements(tensor.dtype()), first_block = col / elements;
  const bool aligned = col % elements == 0 && cols % elements == 0;
  if (!aligned)
    row_.resize(((col + cols + elements - 1) / elements - first_block) * elements);
  read_blocks(tensor, row, rows, col, cols,
              [&](uint64_t first, uint64_t count, const std::byte *blocks, size_t row_bytes) {
                for (uint64_t i = 0; i < count; ++i) {
                  float *to = out + (first + i) * out_stride;
                  const std::byte *from = blocks + i * row_bytes;
                  if (aligned) {
                    cpu::dequantize(to, from, type, static_cast<int64_t>(cols));
                  } else {
                    cpu::dequantize(row_.data(), from, type, static_cast<int64_t>(row_.size()));
                    std::memcpy(to, row_.data() + (col - first_block * elements), cols * sizeof(float));
                  }
                }
              });
}

} // namespace llmrt::exec
