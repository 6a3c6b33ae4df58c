#include "runtime/exec/backend.h"

#include "runtime/exec/cuda/backend.h"
#include "runtime/plan/access.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/verify.h"
#include "runtime/support/error.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace llmrt::exec {

namespace {

struct CudaLibrary {
  cuda::CreateExecutor create = nullptr;
  std::string missing; // why not, where create is null
};

// Looks beside the running program, in ../lib beside it, and where the system looks. The library stays loaded.
CudaLibrary load_cuda() {
  std::error_code ec;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
  void *library = nullptr;
  std::string why;
  for (const std::string &path : {(program / cuda::kLibrary).string(), (program / "../lib" / cuda::kLibrary).string(),
                                  std::string(cuda::kLibrary)}) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library)
      break;
    why = dlerror();
    // The one that belongs to this program stands, even if it does not load: another may be of another version.
    if (std::filesystem::exists(path, ec))
      break;
  }
  CudaLibrary result;
  if (!library) {
    result.missing = "its library does not load (" + why + "): install the CUDA 13 runtime with cuBLAS and NCCL, or build llmrt "
                     "where nvcc is found";
    return result;
  }
  const auto why_none = reinterpret_cast<cuda::WhyNoDevices>(dlsym(library, cuda::kWhyEntry));
  const auto create = reinterpret_cast<cuda::CreateExecutor>(dlsym(library, cuda::kEntry));
  if (!why_none || !create)
    result.missing = std::string(cuda::kLibrary) + " is of another version of llmrt";
  else if (const char *reason = why_none())
    result.missing = reason;
  else
    result.create = create;
  return result;
}

bool planned_for_cuda(const plan::LoadedPlan &plan) {
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    if (plan.root().topology()->devices()->Get(plan.program(rank).device())->kind() != plan::DeviceKind::Cuda)
      return false;
  return true;
}

// The file of a driver for GPUs, if this machine has one and nobody has hidden all of them.
std::string gpu_here() {
  const char *shown = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool hidden = shown && (*shown == '\0' || *shown == '-');
  constexpr const char *kDriver = "/dev/nvidiactl";
  std::error_code ec;
  return !hidden && std::filesystem::exists(kDriver, ec) ? kDriver : "";
}

} // namespace

std::unique_ptr<Executor> create_on_devices(const std::shared_ptr<const plan::LoadedPlan> &plan,
                                            const ExecutorOptions &options, const Executor::StepDone &on_done) {
  if (options.backend != "auto" && options.backend != "cpu" && options.backend != "cuda")
    throw Error("backend '" + options.backend + "' is unknown: use auto, cpu or cuda");
  if (options.backend == "cpu")
    return nullptr;
  if (const std::vector<plan::Problem> problems = plan::verify(plan->root()); !problems.empty())
    throw Error("the plan '" + plan->path() + "' does not hold: " + plan::to_string(problems));
  if (!planned_for_cuda(*plan)) {
    if (options.backend == "cuda")
      throw Error("the plan '" + plan->path() + "' has ranks on CPUs: compile it with a topology of cuda devices");
    return nullptr;
  }
  const CudaLibrary library = load_cuda();
  if (!library.create) {
    if (options.backend == "cuda")
      throw Error("the CUDA backend cannot be used: " + library.missing);
    if (const std::string gpu = gpu_here(); !gpu.empty()) // which are not to stand idle for want of a library
      throw Error("this machine has GPUs (" + gpu + "), and the CUDA backend cannot be used: " + library.missing +
                  "; --backend cpu executes the plan on CPUs all the same");
    return nullptr;
  }
  return std::unique_ptr<Executor>(library.create(plan, options, on_done));
}

} // namespace llmrt::exec
