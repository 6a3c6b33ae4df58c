#include "runtime/exec/cuda/staged.h"

#include "kernels/cpu/convert.h"

namespace llmrt::exec::cuda {

namespace {

cpu::DType host_type(llmrt::cuda::DType t) {
  return t == llmrt::cuda::DType::f32 ? cpu::DType::f32 : t == llmrt::cuda::DType::f16 ? cpu::DType::f16 : cpu::DType::bf16;
}

std::byte *room(PinnedMemory &memory, size_t bytes) {
  if (memory.size() < bytes)
    memory = PinnedMemory(bytes);
  return memory.data();
}

size_t bytes_of(int64_t count, int64_t size) { return static_cast<size_t>(count * size); }

} // namespace

std::byte *Staged::copy_out(PinnedMemory &to, const DevicePart &from, cudaStream_t stream) {
  const size_t row = bytes_of(from.cols, from.size());
  std::byte *data = room(to, row * static_cast<size_t>(from.rows));
  LLMRT_CHECK(cudaMemcpy2DAsync(data, row, from.data, bytes_of(from.ld, from.size()), row, static_cast<size_t>(from.rows),
                                cudaMemcpyDeviceToHost, stream));
  LLMRT_CHECK(cudaStreamSynchronize(stream));
  return data;
}

void Staged::copy_in(const DevicePart &to, const std::byte *from, cudaStream_t stream) {
  const size_t row = bytes_of(to.cols, to.size());
  LLMRT_CHECK(cudaMemcpy2DAsync(to.data, bytes_of(to.ld, to.size()), from, row, row, static_cast<size_t>(to.rows),
                                cudaMemcpyHostToDevice, stream));
  LLMRT_CHECK(cudaStreamSynchronize(stream)); // the buffer is used again
}

void Staged::all_reduce(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream) {
  std::byte *raw = copy_out(rows_, data, stream);
  const int64_t n = data.rows * data.cols;
  sums_.resize(static_cast<size_t>(n));
  cpu::to_f32(sums_.data(), raw, host_type(data.type), n);
  host_.all_reduce(group, seq, sums_.data(), static_cast<size_t>(data.rows), static_cast<size_t>(data.cols),
                   static_cast<size_t>(data.cols));
  cpu::from_f32(raw, host_type(data.type), sums_.data(), n);
  copy_in(data, raw, stream);
}

void Staged::gather(uint32_t group, uint32_t seq, int root, bool receives, const DevicePart &out, const DevicePart &in,
                    const std::vector<int64_t> &widths, cudaStream_t stream) {
  const size_t rows = static_cast<size_t>(in.rows), row = bytes_of(in.cols, in.size());
  std::vector<uint64_t> parts;
  size_t whole = 0;
  for (int64_t width : widths) {
    parts.push_back(bytes_of(width, in.size()));
    whole += parts.back();
  }
  const comm::ConstBlock mine = {copy_out(rows_, in, stream), rows, row, row};
  const comm::Block all = {receives ? room(whole_, rows * whole) : nullptr, rows, whole, whole};
  if (root < 0)
    host_.all_gather(group, seq, all, mine, parts);
  else
    host_.gather(group, seq, static_cast<uint32_t>(root), all, mine, parts);
  if (receives)
    copy_in({out.data, out.ld, in.rows, static_cast<int64_t>(whole) / in.size(), in.type}, whole_.data(), stream);
}

void Staged::broadcast(uint32_t group, uint32_t seq, size_t members, int root, bool sends, int32_t *tokens, size_t count,
                       cudaStream_t stream) {
  const size_t bytes = count * sizeof(int32_t);
  std::byte *mine = room(rows_, bytes), *all = room(whole_, members * bytes);
  if (sends) {
    LLMRT_CHECK(cudaMemcpyAsync(mine, tokens, bytes, cudaMemcpyDeviceToHost, stream));
    LLMRT_CHECK(cudaStreamSynchronize(stream));
  }
  const std::vector<uint64_t> parts(members, bytes);
  host_.all_gather(group, seq, {all, 1, members * bytes, members * bytes}, {mine, 1, bytes, bytes}, parts);
  if (!sends) {
    LLMRT_CHECK(cudaMemcpyAsync(tokens, all + static_cast<size_t>(root) * bytes, bytes, cudaMemcpyHostToDevice, stream));
    LLMRT_CHECK(cudaStreamSynchronize(stream));
  }
}

void Staged::send(uint32_t peer, uint32_t seq, const DevicePart &in, cudaStream_t stream) {
  const size_t row = bytes_of(in.cols, in.size());
  host_.send(peer, seq, {copy_out(rows_, in, stream), static_cast<size_t>(in.rows), row, row});
}

void Staged::recv(uint32_t peer, uint32_t seq, const DevicePart &out, cudaStream_t stream) {
  const size_t row = bytes_of(out.cols, out.size()), rows = static_cast<size_t>(out.rows);
  host_.recv(peer, seq, {room(rows_, rows * row), rows, row, row});
  copy_in(out, rows_.data(), stream);
}

} // namespace llmrt::exec::cuda
