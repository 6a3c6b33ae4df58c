#include "runtime/exec/cuda/nccl_group.h"

#include "kernels/cuda/kernels.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

namespace {

ncclDataType_t library_type(k::DType t) {
  return t == k::DType::f32 ? ncclFloat32 : t == k::DType::f16 ? ncclFloat16 : ncclBfloat16;
}

// What the thread that joins tells the one that waits for it. It outlives both: a join that never ends is left behind.
struct Join {
  std::mutex mutex;
  std::condition_variable done;
  bool ended = false;
  ncclResult_t status = ncclSuccess;
  ncclComm_t comm = nullptr;
  size_t bytes = 0;
};

size_t free_bytes() {
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

// NCCL connects members when an operation first needs it, and takes its buffers then: a sum and a gather, so that it has what it will
// have, and no step waits for that.
ncclResult_t connect(ncclComm_t comm, int position, int count, int gathers_to) {
  constexpr size_t kBytes = 4 << 20, kElements = kBytes / sizeof(float); // as many channels as a large sum has
  const auto is_root = [&](int member) { return gathers_to == NcclGroup::kToAll || gathers_to == member; };
  std::byte *data = nullptr;
  if (cudaMalloc(&data, (static_cast<size_t>(count) + 1) * kBytes) != cudaSuccess)
    return ncclUnhandledCudaError;
  ncclResult_t status = ncclAllReduce(data, data, kElements, ncclFloat32, ncclSum, comm, nullptr);
  const auto also = [&](ncclResult_t next) { status = status == ncclSuccess ? next : status; };
  also(ncclGroupStart());
  for (int member = 0; member < count; ++member) {
    if (is_root(member))
      also(ncclSend(data, kElements, ncclFloat32, member, comm, nullptr));
    if (is_root(position))
      also(ncclRecv(data + (static_cast<size_t>(member) + 1) * kBytes, kElements, ncclFloat32, member, comm, nullptr));
  }
  also(ncclGroupEnd());
  if (cudaStreamSynchronize(nullptr) != cudaSuccess)
    also(ncclUnhandledCudaError);
  cudaFree(data);
  return status;
}

} // namespace

NcclGroup::NcclGroup(const ncclUniqueId &id, int position, int count, int gathers_to, double deadline_s,
                     const comm::HostWorld &world, const std::string &who)
    : position_(position), count_(count) {
  using namespace std::chrono_literals;
  int device = 0;
  LLMRT_CHECK(cudaGetDevice(&device));
  auto join = std::make_shared<Join>();
  std::thread([join, id, position, count, gathers_to, device] {
    ncclComm_t comm = nullptr;
    ncclResult_t status = cudaSetDevice(device) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
    const size_t before = free_bytes();
    if (status == ncclSuccess)
      status = ncclCommInitRank(&comm, count, id, position);
    if (status == ncclSuccess)
      status = connect(comm, position, count, gathers_to);
    const size_t after = free_bytes();
    std::lock_guard lock(join->mutex);
    join->status = status, join->comm = comm, join->bytes = before > after ? before - after : 0, join->ended = true;
    join->done.notify_all();
  }).detach();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline_s);
  std::unique_lock lock(join->mutex);
  while (!join->done.wait_for(lock, 100ms, [&] { return join->ended; })) {
    if (world.aborted())
      throw comm::Aborted(world.reason());
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(who + " waited " + std::to_string(deadline_s) +
                  " s for the other members to start NCCL: see what holds them up, NCCL_DEBUG=INFO tells more");
  }
  LLMRT_CHECK(join->status);
  comm_ = join->comm;
  bytes_ = join->bytes;
}

void NcclGroup::abort() {
  if (comm_)
    ncclCommAbort(comm_);
  comm_ = nullptr;
}

void NcclGroup::all_reduce(const DevicePart &data, cudaStream_t stream) {
  LLMRT_CHECK(ncclAllReduce(data.data, data.data, static_cast<size_t>(data.rows * data.cols), library_type(data.type), ncclSum,
                            comm_, stream));
}

void NcclGroup::broadcast(int32_t *tokens, size_t count, int root, cudaStream_t stream) {
  LLMRT_CHECK(ncclBroadcast(tokens, tokens, count, ncclInt32, root, comm_, stream));
}

// Members' columns come one behind the other into `parts`, and are laid side by side from there.
void NcclGroup::gather(int root, const DevicePart &out, const DevicePart &in, const std::vector<int64_t> &widths,
                       std::byte *parts, cudaStream_t stream) {
  const int64_t size = in.size();
  const bool receives = root < 0 || root == position_;
  LLMRT_CHECK(ncclGroupStart());
  int64_t column = 0;
  for (int i = 0; i < count_; ++i) {
    if (root < 0 || i == root)
      LLMRT_CHECK(ncclSend(in.data, static_cast<size_t>(in.rows * in.cols), library_type(in.type), i, comm_, stream));
    const int64_t width = widths[static_cast<size_t>(i)];
    if (receives)
      LLMRT_CHECK(ncclRecv(parts + in.rows * column * size, static_cast<size_t>(in.rows * width), library_type(in.type), i, comm_,
                           stream));
    column += width;
  }
  LLMRT_CHECK(ncclGroupEnd());
  column = 0;
  for (int64_t width : widths) {
    if (receives)
      k::copy_rows(out.data + column * size, out.ld * size, parts + in.rows * column * size, width * size, in.rows, width * size,
                   stream);
    column += width;
  }
}

} // namespace llmrt::exec::cuda
