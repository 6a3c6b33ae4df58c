// CUPTI's activity records: kernels, copies and fills with their times, and records that tie the call which launched them to
// the tag pushed around it. Records of the calls themselves are enabled because the ties come with them alone.
#include "runtime/exec/cuda/tracer.h"

#include "runtime/support/error.h"

#ifndef LLMRT_HAVE_CUPTI

std::unique_ptr<llmrt::exec::KernelTracer> llmrt::exec::cuda::open_tracer(const std::vector<int> &) {
  throw Error("this llmrt was built where cupti.h was not found, so kernels cannot be timed: install CUPTI's headers (Debian "
              "package cuda-cupti-dev-13-0, or another toolkit's) and build again");
}

#else

#include "runtime/exec/cuda/check.h"

#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace llmrt::exec::cuda {

namespace {

constexpr size_t kBufferBytes = 8 << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

// The functions used, found by name in a library that is not linked.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_text = nullptr;

  static const Cupti &get() {
    static const Cupti library = open();
    return library;
  }

  void check(CUptiResult status, const char *call) const {
    if (status == CUPTI_SUCCESS)
      return;
    const char *text = nullptr;
    result_text(status, &text);
    throw Error(std::string("CUPTI: ") + call + " failed: " + (text ? text : "unknown") +
                (status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "; end the other profiler of this process" : ""));
  }

private:
  static Cupti open() {
    const std::string major = std::to_string(CUDART_VERSION / 1000), minor = std::to_string(CUDART_VERSION % 1000 / 10);
    const std::string versioned = "libcupti.so." + major;
    std::vector<std::string> places = {versioned, "libcupti.so"};
    std::vector<std::string> roots = {"/usr/local/cuda", "/usr/local/cuda-" + major + "." + minor};
    if (const char *home = std::getenv("CUDA_HOME"))
      roots.insert(roots.begin(), home);
    for (const std::string &root : roots)
      for (const char *folder : {"/lib64/", "/lib/", "/extras/CUPTI/lib64/"})
        places.push_back(root + folder + versioned);
    void *library = nullptr;
    std::string why;
    for (const std::string &place : places) {
      library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library)
        break;
      if (why.empty())
        why = dlerror();
    }
    if (!library)
      throw Error("kernels cannot be timed without CUPTI, and its library does not load (" + why + "): install the package cuda-cupti-" +
                  major + "-" + minor + " (with pip: nvidia-cuda-cupti), or set LD_LIBRARY_PATH to where " + versioned + " is");
    Cupti c;
    bool complete = true;
    const auto find = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      complete = complete && function;
    };
    find(c.register_callbacks, "cuptiActivityRegisterCallbacks");
    find(c.enable, "cuptiActivityEnable");
    find(c.disable, "cuptiActivityDisable");
    find(c.flush, "cuptiActivityFlushAll");
    find(c.next, "cuptiActivityGetNextRecord");
    find(c.dropped, "cuptiActivityGetNumDroppedRecords");
    find(c.push, "cuptiActivityPushExternalCorrelationId");
    find(c.pop, "cuptiActivityPopExternalCorrelationId");
    find(c.timestamp, "cuptiGetTimestamp");
    find(c.result_text, "cuptiGetResultString");
    if (!complete)
      throw Error("the CUPTI library found lacks functions that kernels are timed with: install that of CUDA " + major + "." + minor);
    return c;
  }
};

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Tracer;
std::atomic<Tracer *> current{nullptr}; // CUPTI's callbacks know no owner

class Tracer final : public KernelTracer {
public:
  explicit Tracer(const std::vector<int> &devices) : cupti_(Cupti::get()), devices_(devices) {
    Tracer *none = nullptr;
    if (!current.compare_exchange_strong(none, this))
      throw Error("kernels are being timed already, and can be by one profile at a time");
    try {
      cupti_.check(cupti_.register_callbacks(buffer_wanted, buffer_full), "cuptiActivityRegisterCallbacks");
      for (const CUpti_ActivityKind kind : kKinds) {
        cupti_.check(cupti_.enable(kind), "cuptiActivityEnable");
        ++enabled_;
      }
      offset_ = steady_offset();
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Tracer() override { stop(); }

  void push(uint64_t tag) override {
    cupti_.check(cupti_.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, tag), "cuptiActivityPushExternalCorrelationId");
  }
  void pop() override {
    uint64_t last = 0;
    cupti_.check(cupti_.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last), "cuptiActivityPopExternalCorrelationId");
  }

  std::vector<KernelSpan> collect() override {
    for (const int device : devices_) {
      LLMRT_CHECK(cudaSetDevice(device));
      LLMRT_CHECK(cudaDeviceSynchronize());
    }
    cupti_.check(cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    std::lock_guard lock(mutex_);
    if (dropped_)
      throw Error("CUPTI dropped " + std::to_string(dropped_) + " records, so the profile would be wrong: profile fewer steps");
    std::vector<KernelSpan> result;
    for (auto &[correlation, span] : spans_) {
      const auto tag = tags_.find(correlation);
      span.tag = tag == tags_.end() ? 0 : tag->second;
      result.push_back(std::move(span));
    }
    spans_.clear();
    tags_.clear();
    std::sort(result.begin(), result.end(), [](const KernelSpan &a, const KernelSpan &b) { return a.start_ns < b.start_ns; });
    return result;
  }

private:
  // CUPTI's clock against ours: of several tries the one that took the shortest time.
  int64_t steady_offset() const {
    int64_t best = INT64_MAX, offset = 0;
    for (int i = 0; i < 16; ++i) {
      uint64_t theirs = 0;
      const int64_t before = steady_ns();
      cupti_.check(cupti_.timestamp(&theirs), "cuptiGetTimestamp");
      const int64_t after = steady_ns();
      if (after - before < best) {
        best = after - before;
        offset = before + (after - before) / 2 - static_cast<int64_t>(theirs);
      }
    }
    return offset;
  }

  void stop() {
    while (enabled_ > 0)
      cupti_.disable(kKinds[--enabled_]);
    cupti_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    current = nullptr;
  }

  static void buffer_wanted(uint8_t **buffer, size_t *size, size_t *most_records) {
    *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;
    *most_records = 0; // as many as fit
  }

  static void buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t, size_t valid) {
    if (Tracer *tracer = current; tracer && valid)
      tracer->read(context, stream, buffer, valid);
    std::free(buffer);
  }

  void read(CUcontext context, uint32_t stream, uint8_t *buffer, size_t valid) {
    std::lock_guard lock(mutex_);
    CUpti_Activity *record = nullptr;
    while (cupti_.next(buffer, valid, &record) == CUPTI_SUCCESS)
      take(*record);
    size_t dropped = 0;
    if (cupti_.dropped(context, stream, &dropped) == CUPTI_SUCCESS)
      dropped_ += dropped;
  }

  // Records of later CUPTIs only grow at their ends.
  void take(const CUpti_Activity &record) {
    switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
      const auto &kernel = reinterpret_cast<const CUpti_ActivityKernel9 &>(record);
      add(kernel, kernel.name ? kernel.name : "kernel", false);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto &copy = reinterpret_cast<const CUpti_ActivityMemcpy5 &>(record);
      add(copy, copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "copy to device"
                : copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "copy to host"
                                                                   : "copy on device", true);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto &copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4 &>(record);
      add(copy, "copy between devices", true);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      add(reinterpret_cast<const CUpti_ActivityMemset4 &>(record), "fill", true);
      return;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto &tie = reinterpret_cast<const CUpti_ActivityExternalCorrelation &>(record);
      if (tie.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        tags_[tie.correlationId] = tie.externalId;
      return;
    }
    default:
      return;
    }
  }

  template <typename Record> void add(const Record &record, const char *name, bool copy) {
    KernelSpan span;
    span.device = record.deviceId;
    span.stream = record.streamId;
    span.start_ns = static_cast<int64_t>(record.start) + offset_;
    span.end_ns = static_cast<int64_t>(record.end) + offset_;
    span.name = name;
    span.copy = copy;
    spans_.emplace_back(record.correlationId, std::move(span));
  }

  const Cupti &cupti_;
  const std::vector<int> devices_;
  size_t enabled_ = 0; // of kKinds
  int64_t offset_ = 0;
  std::mutex mutex_;
  std::vector<std::pair<uint32_t, KernelSpan>> spans_; // with the id of the call that launched them
  std::unordered_map<uint32_t, uint64_t> tags_;        // by that id
  size_t dropped_ = 0;
};

} // namespace

std::unique_ptr<KernelTracer> open_tracer(const std::vector<int> &devices) { return std::make_unique<Tracer>(devices); }

} // namespace llmrt::exec::cuda

#endif
