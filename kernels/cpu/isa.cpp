// Chooses the kernel table by CPUID and LLMRT_ISA, once.
#include "kernels/cpu/isa.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels/cpu/impl/table.h"

namespace llmrt::cpu {
namespace {

struct Entry {
  Isa isa;
  const char *name;
  const KernelTable *table;
  bool (*on_this_cpu)();
};

#if defined(__x86_64__)
// The compiler's run-time check of CPUID; it also asks the operating system whether it saves the registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
bool has_avx512_bf16() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#endif

const Entry entries[] = {
    {Isa::plain, "plain", &plain::table, [] { return true; }},
#if defined(__x86_64__)
    {Isa::avx2, "avx2", &avx2::table, has_avx2},
    {Isa::avx512, "avx512", &avx512::table, has_avx512},
    {Isa::avx512_bf16, "avx512_bf16", &avx512_bf16::table, has_avx512_bf16},
#endif
};

std::string supported_names() {
  std::string names;
  for (const Entry &e : entries)
    if (e.on_this_cpu())
      names += (names.empty() ? "" : ", ") + std::string(e.name);
  return names;
}

const Entry *choose() {
  const Entry *best = &entries[0];
  for (const Entry &e : entries)
    if (e.on_this_cpu())
      best = &e;
  const char *wanted = std::getenv("LLMRT_ISA");
  if (!wanted || !*wanted)
    return best;
  for (const Entry &e : entries)
    if (std::string(wanted) == e.name && e.on_this_cpu())
      return &e;
  throw std::invalid_argument("environment variable LLMRT_ISA is \"" + std::string(wanted) +
                              "\", but this machine runs only " + supported_names() +
                              "; unset it or name one of these");
}

std::atomic<const Entry *> chosen{nullptr};

const Entry &current() {
  const Entry *e = chosen.load(std::memory_order_acquire);
  if (!e) {
    e = choose();
    chosen.store(e, std::memory_order_release);
  }
  return *e;
}

} // namespace

const char *isa_name(Isa isa) {
  for (const Entry &e : entries)
    if (e.isa == isa)
      return e.name;
  return "unknown";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> list;
  for (const Entry &e : entries)
    if (e.on_this_cpu())
      list.push_back(e.isa);
  return list;
}

Isa current_isa() {
  return current().isa;
}

void force_isa(Isa isa) {
  for (const Entry &e : entries)
    if (e.isa == isa && e.on_this_cpu()) {
      chosen.store(&e, std::memory_order_release);
      return;
    }
  throw std::invalid_argument("the instruction set " + std::string(isa_name(isa)) +
                              " was asked for, but this machine runs only " + supported_names());
}

const KernelTable &kernels() {
  return *current().table;
}

} // namespace llmrt::cpu
