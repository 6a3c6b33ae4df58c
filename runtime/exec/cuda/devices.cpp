#include "runtime/exec/cuda/devices.h"

#include "kernels/cuda/device_code.h"
#include "runtime/exec/cuda/check.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

namespace llmrt::exec::cuda {

namespace {

std::string uuid_text(const cudaUUID_t &uuid) {
  std::string text = "GPU-";
  char pair[3];
  for (int i = 0; i < 16; ++i) {
    std::snprintf(pair, sizeof(pair), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += pair;
    if (i == 3 || i == 5 || i == 7 || i == 9)
      text += '-';
  }
  return text;
}

std::string hidden_by() {
  const char *shown = std::getenv("CUDA_VISIBLE_DEVICES");
  return shown ? std::string(" (CUDA_VISIBLE_DEVICES shows '") + shown + "')" : std::string();
}

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

} // namespace

std::string why_no_devices() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0)
    return {};
  cudaGetLastError(); // not to be reported again by the next call
  if (status == cudaSuccess || status == cudaErrorNoDevice)
    return "the driver shows no CUDA device" + hidden_by();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (status == cudaErrorInsufficientDriver && driver == 0)
    return "there is no NVIDIA driver (libcuda.so.1 does not load): install one for CUDA " + version_text(runtime) +
           " or newer, or let the container have it";
  if (status == cudaErrorInsufficientDriver)
    return "the NVIDIA driver is of CUDA " + version_text(driver) + ", and llmrt was built with CUDA " + version_text(runtime) +
           ": install a driver for that version or a newer one";
  return "the NVIDIA driver (of CUDA " + version_text(driver) + ") refuses with error " + std::to_string(static_cast<int>(status)) +
         ", " + cudaGetErrorString(status) + ": see what nvidia-smi says";
}

LiveMachine live_machine() {
  LiveMachine machine;
  machine.hidden_by = hidden_by();
  int count = 0;
  LLMRT_CHECK(cudaGetDeviceCount(&count));
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp prop;
    LLMRT_CHECK(cudaGetDeviceProperties(&prop, i));
    char pci[32] = {};
    LLMRT_CHECK(cudaDeviceGetPCIBusId(pci, sizeof(pci), i));
    machine.devices.push_back({prop.name, uuid_text(prop.uuid), pci, static_cast<unsigned>(prop.major * 10 + prop.minor)});
  }
  return machine;
}

bool can_access(int from, int to) {
  int can = from == to;
  if (from != to)
    LLMRT_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
  return can != 0;
}

// The first touch of a device takes a good part of a second.
std::map<int, DeviceRoom> open_devices(const std::vector<int> &devices) {
  std::map<int, DeviceRoom> room;
  for (int device : devices)
    room[device];
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (auto &[device, has] : room)
    threads.emplace_back([&failure, &mutex, device, &has] {
      try {
        size_t free = 0, total = 0;
        if (const cudaError_t status = cudaSetDevice(device); status != cudaSuccess)
          throw Error("CUDA device " + std::to_string(device) + " cannot be used (" + cudaGetErrorString(status) +
                      "): see what nvidia-smi says of it");
        LLMRT_CHECK(cudaMemGetInfo(&free, &total));
        has = {free, total};
        if (!llmrt::cuda::has_code_for_device()) {
          cudaDeviceProp prop;
          LLMRT_CHECK(cudaGetDeviceProperties(&prop, device));
          throw Error("this llmrt was built for compute capability " + llmrt::cuda::built_for() + ", and CUDA device " + std::to_string(device) +
                      " (" + prop.name + ") has " + std::to_string(prop.major) + "." + std::to_string(prop.minor) +
                      (prop.major < 8 ? ", for which there are no kernels: run the plan with --backend cpu"
                                      : ": build it with -DLLMRT_CUDA_ARCHITECTURES=" + std::to_string(prop.major * 10 + prop.minor)));
        }
      } catch (...) {
        std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
  return room;
}

} // namespace llmrt::exec::cuda
