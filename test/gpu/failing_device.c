/* Preloaded in front of the CUDA runtime: lets a device fail for good in the middle of the work, as seen from this process alone.
 *
 *   FAILING_DEVICE=1 FAILING_WAY=address|lost|hang FAILING_WHEN=FILE FAILING_AFTER=3000 LD_PRELOAD=libfailing_device.so llmrt serve ...
 *
 * From the time on that the file exists (without FAILING_WHEN: from the start) and when as many kernels more have been launched there
 * (not in graphs), either the next kernel gets an address that is no memory (an illegal access, after which nothing runs on the device
 * any more), or the runtime refuses every call for the device, as it does for one that has fallen off the bus, or, on the made-up GPUs of
 * test/e2e/null_gpus.c alone, the kernel never ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kUnavailable = 46 }; /* cudaErrorDevicesUnavailable */

/* The CUDA runtime is loaded late and for one library alone, so that it does not come "next"; what is preloaded behind this does. */
static int find_runtime(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  if (!info->dlpi_name || !strstr(info->dlpi_name, "/libcudart.so"))
    return 0;
  *(void **)found = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  return 1;
}

static void *of_runtime(const char *name) {
  static _Atomic(void *) known;
  void *next = dlsym(RTLD_NEXT, name), *runtime = known;
  if (next)
    return next;
  if (!runtime) {
    dl_iterate_phdr(find_runtime, &runtime);
    known = runtime;
  }
  return dlsym(runtime, name);
}

static int here(void) {
  int device = -1;
  ((int (*)(int *))of_runtime("cudaGetDevice"))(&device);
  const char *failing = getenv("FAILING_DEVICE");
  return failing && device == atoi(failing);
}

static int is_way(const char *name) {
  const char *way = getenv("FAILING_WAY");
  return way && !strcmp(way, name);
}
static int is_lost(void) { return is_way("lost"); }

static atomic_int failed; /* the device has */

/* Whether the device fails with this launch. */
static int fails_now(void) {
  static atomic_long launches;
  const char *when = getenv("FAILING_WHEN"), *after = getenv("FAILING_AFTER");
  if (when && access(when, F_OK) != 0)
    return 0;
  return atomic_fetch_add(&launches, 1) == (after ? atol(after) : 0);
}

int cudaLaunchKernelExC(const void *config, const void *kernel, void **args) {
  if (here()) {
    if (fails_now()) {
      failed = 1;
      void *nowhere = (void *)(is_way("hang") ? 0x200L : 0x100L); /* in place of the first pointer that the kernel takes */
      if (!is_lost())
        memcpy(args[0], &nowhere, sizeof nowhere);
    }
    if (failed && is_lost())
      return kUnavailable;
  }
  return ((int (*)(const void *, const void *, void **))of_runtime("cudaLaunchKernelExC"))(config, kernel, args);
}

/* Arguments are integers and pointers, passed on as they are. */
#define REFUSED_WHERE_LOST(name)                                                                                       \
  int name(long a, long b, long c, long d, long e, long f, long g, long h) {                                           \
    if (failed && is_lost() && here())                                                                                 \
      return kUnavailable;                                                                                             \
    return ((int (*)(long, long, long, long, long, long, long, long))of_runtime(#name))(a, b, c, d, e, f, g, h);       \
  }
REFUSED_WHERE_LOST(cudaGraphLaunch)
REFUSED_WHERE_LOST(cudaGraphExecDestroy)
REFUSED_WHERE_LOST(cudaEventQuery)
REFUSED_WHERE_LOST(cudaEventRecord)
REFUSED_WHERE_LOST(cudaEventDestroy)
REFUSED_WHERE_LOST(cudaStreamWaitEvent)
REFUSED_WHERE_LOST(cudaStreamQuery)
REFUSED_WHERE_LOST(cudaStreamSynchronize)
REFUSED_WHERE_LOST(cudaStreamDestroy)
REFUSED_WHERE_LOST(cudaDeviceSynchronize)
REFUSED_WHERE_LOST(cudaMemcpyAsync)
REFUSED_WHERE_LOST(cudaMemcpy2DAsync)
REFUSED_WHERE_LOST(cudaFree)
REFUSED_WHERE_LOST(cudaFreeHost)
