// Any bytes as a plan: reading, proving and dumping must neither crash, hang nor allocate without bound.
#include "runtime/plan/dump.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/verify.h"
#include "runtime/support/error.h"

#include <cstdint>
#include <vector>

using namespace llmrt::plan;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    auto plan = LoadedPlan::from_bytes(std::vector<uint8_t>(data, data + size));
    to_string(verify(plan->root()));
    dump_text(plan->root());
    dump_json(plan->root());
  } catch (const llmrt::Error &) {
  }
  return 0;
}
