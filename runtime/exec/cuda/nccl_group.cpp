#include "runtime/exec/cuda/nccl_group.h"

#include "kernels/cuda/rows.h"

#include <atomic>
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

// Between the thread that joins and the one that waits for it. It outlives both: a join that never ends is left behind.
struct Join {
  std::mutex mutex;
  std::condition_variable done;
  bool connecting = false, ended = false; // kernels of NCCL may run on the device; none do any more
  std::atomic<bool> left{false};          // nobody waits
  ncclResult_t status = ncclSuccess;
  ncclComm_t comm = nullptr;
  size_t bytes = 0;
};

size_t free_bytes() {
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

constexpr size_t kTryBytes = 4 << 20; // of a sum that connects: as many channels as a large one has

// NCCL connects members when an operation first needs it, and takes its buffers then: a sum and a gather, so that it has what
// it will have, and no step waits for that. `data`: kTryBytes for each member and once more.
ncclResult_t connect(ncclComm_t comm, int position, int count, int gathers_to, std::byte *data, const std::atomic<bool> &left) {
  constexpr size_t kElements = kTryBytes / sizeof(float);
  const auto is_root = [&](int member) { return gathers_to == NcclGroup::kToAll || gathers_to == member; };
  ncclResult_t status = ncclAllReduce(data, data, kElements, ncclFloat32, ncclSum, comm, nullptr);
  const auto also = [&](ncclResult_t next) { status = status == ncclSuccess ? next : status; };
  also(ncclGroupStart());
  for (int member = 0; member < count; ++member) {
    if (is_root(member))
      also(ncclSend(data, kElements, ncclFloat32, member, comm, nullptr));
    if (is_root(position))
      also(ncclRecv(data + (static_cast<size_t>(member) + 1) * kTryBytes, kElements, ncclFloat32, member, comm, nullptr));
  }
  also(ncclGroupEnd());
  if (status != ncclSuccess)
    return status;
  // A member that failed leaves the kernels of the others waiting for it.
  cudaError_t ran;
  while ((ran = cudaStreamQuery(nullptr)) == cudaErrorNotReady && !left)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return ran == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

// A member without memory for the operations that connect fails before the others have kernels that wait for it. A join that
// fails, or that nobody waits for, ends its kernels, or no memory of the device could be freed any more.
void join_group(Join &join, const ncclUniqueId &id, int position, int count, int gathers_to, int device) {
  ncclComm_t comm = nullptr;
  std::byte *data = nullptr;
  ncclResult_t status = cudaSetDevice(device) == cudaSuccess &&
                                cudaMalloc(&data, (static_cast<size_t>(count) + 1) * kTryBytes) == cudaSuccess
                            ? ncclSuccess
                            : ncclUnhandledCudaError;
  const size_t before = free_bytes();
  if (status == ncclSuccess)
    status = ncclCommInitRank(&comm, count, id, position);
  if (status == ncclSuccess) {
    {
      std::lock_guard lock(join.mutex);
      join.connecting = true;
    }
    status = connect(comm, position, count, gathers_to, data, join.left);
  }
  const size_t after = free_bytes();
  if ((status != ncclSuccess || join.left) && comm) {
    ncclCommAbort(comm);
    comm = nullptr;
  }
  cudaFree(data);
  std::lock_guard lock(join.mutex);
  join.status = status, join.comm = comm, join.bytes = before > after ? before - after : 0, join.ended = true;
  join.done.notify_all();
}

} // namespace

NcclGroup::NcclGroup(const ncclUniqueId &id, int position, int count, int gathers_to, double deadline_s,
                     const comm::HostWorld &world, const std::string &who)
    : position_(position), count_(count) {
  using namespace std::chrono_literals;
  int device = 0;
  LLMRT_CHECK(cudaGetDevice(&device));
  auto join = std::make_shared<Join>();
  std::thread([=] { join_group(*join, id, position, count, gathers_to, device); }).detach();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(deadline_s);
  const auto has_ended = [&] { return join->ended; };
  std::unique_lock lock(join->mutex);
  while (!join->done.wait_for(lock, 100ms, has_ended)) {
    const bool late = std::chrono::steady_clock::now() > deadline;
    if (!late && !world.aborted())
      continue;
    join->left = true;
    if (join->connecting)
      join->done.wait_for(lock, 5s, has_ended);
    if (world.aborted())
      throw comm::Aborted(world.reason());
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
