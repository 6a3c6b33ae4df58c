// Shared by the verify_*.cpp files: the collector of problems, checked arithmetic, and one function per proof.
// Every proof after `structure` may rely on what structure has proven (see verify_structure.cpp).
#pragma once

#include "runtime/plan/access.h"
#include "runtime/plan/verify.h"

#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace llmrt::plan {

// Joins strings and numbers into one message.
template <typename... Parts> std::string cat(const Parts &...parts) {
  std::string out;
  auto add = [&out](const auto &part) {
    using T = std::decay_t<decltype(part)>;
    if constexpr (std::is_arithmetic_v<T>)
      out += std::to_string(part);
    else
      out += part;
  };
  (add(parts), ...);
  return out;
}

class Reporter {
public:
  // Beyond kMost problems of one check only their number is kept.
  void add(const char *check, int64_t rank, std::string message) { add(check, rank, -1, nullptr, std::move(message)); }
  void add(const char *check, int64_t rank, int64_t index, const Op *op, std::string message);
  bool empty() const { return problems_.empty(); }
  std::vector<Problem> finish();

private:
  static constexpr uint64_t kMost = 20;
  std::vector<Problem> problems_;
  std::map<std::string, uint64_t> counts_;
};

// a + b and a * b, false on overflow of 64 bits.
inline bool add_fits(uint64_t a, uint64_t b, uint64_t &out) { return !__builtin_add_overflow(a, b, &out); }
inline bool mul_fits(uint64_t a, uint64_t b, uint64_t &out) { return !__builtin_mul_overflow(a, b, &out); }

// [begin, begin+count) inside [0, size), without overflow.
inline bool inside(uint64_t begin, uint64_t count, uint64_t size) { return begin <= size && count <= size - begin; }

// "x[0:576]": a view for a message.
std::string describe(const Program &program, const View &view);

void verify_structure(const Plan &plan, Reporter &report);
void verify_limits(const Plan &plan, Reporter &report);
void verify_shapes(const Plan &plan, Reporter &report);
void verify_weights(const Plan &plan, Reporter &report);
void verify_buffers(const Plan &plan, Reporter &report);
void verify_memory(const Plan &plan, Reporter &report);
void verify_kv(const Plan &plan, Reporter &report);
void verify_dataflow(const Plan &plan, Reporter &report); // heads, ffn columns, vocabulary, output
void verify_communication(const Plan &plan, Reporter &report);
void verify_topology(const Plan &plan, Reporter &report);

} // namespace llmrt::plan
