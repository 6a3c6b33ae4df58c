// The ledger of each rank adds up, agrees with the sizes the program itself states, and all ranks of a device fit
// the device together.
#include "runtime/plan/verify_internal.h"

namespace llmrt::plan {

namespace {

constexpr const char *kCheck = "memory";

void verify_ledger(const Plan &plan, const Program &program, Reporter &report) {
  auto bad = [&](std::string message) { report.add(kCheck, program.rank(), std::move(message)); };
  const Ledger &ledger = *program.ledger();
  uint64_t sum = 0;
  bool fits = true;
  for (const LedgerLine *line : each(ledger.lines()))
    fits &= add_fits(sum, line->bytes(), sum);
  if (!fits || sum != ledger.total())
    bad(fits ? cat("The lines of its ledger sum to ", sum, " bytes, and its total is ", ledger.total(), ".")
             : cat("The lines of its ledger do not fit in 64 bits."));
  const Device &device = *plan.topology()->devices()->Get(program.device());
  if (ledger.memory() != device.memory_bytes())
    bad(cat("Its ledger counts on ", ledger.memory(), " bytes of memory, and device ", quoted(device.id()), " has ",
            device.memory_bytes(), "."));
  if (ledger.total() > ledger.budget())
    bad(cat("It needs ", ledger.total(), " bytes, and its budget on device ", quoted(device.id()), " is ",
            ledger.budget(), " of ", ledger.memory(),
            "; compile with more ranks, a smaller --max-model-len or a larger --memory-utilization."));
  if (ledger.budget() > ledger.memory())
    bad(cat("Its budget is ", ledger.budget(), " bytes, and device ", quoted(device.id()), " has ", ledger.memory(),
            "."));

  struct {
    const char *name;
    uint64_t bytes;
  } const stated[] = {{"weights", program.weight_bytes()},
                      {"activations", program.arena_bytes()},
                      {"workspace", program.workspace_bytes()},
                      {"kv_cache", program.kv()->bytes()}};
  for (const auto &line : stated) {
    uint64_t found = 0, times = 0;
    for (const LedgerLine *at : each(ledger.lines()))
      if (view_of(at->name()) == line.name) {
        found = at->bytes();
        ++times;
      }
    if (times != 1)
      bad(cat("Its ledger has ", times, " lines '", line.name, "'; it must have one."));
    else if (found != line.bytes)
      bad(cat("Its ledger gives ", line.name, " ", found, " bytes, and the program takes ", line.bytes, "."));
  }
}

} // namespace

void verify_memory(const Plan &plan, Reporter &report) {
  std::vector<uint64_t> used(size_of(plan.topology()->devices()), 0), ranks(used.size(), 0);
  for (const Program *program : *plan.programs()) {
    verify_ledger(plan, *program, report);
    uint64_t &sum = used[program->device()];
    if (!add_fits(sum, program->ledger()->total(), sum))
      sum = UINT64_MAX;
    ++ranks[program->device()];
  }
  for (uint32_t i = 0; i < used.size(); ++i) {
    const Device &device = *plan.topology()->devices()->Get(i);
    // The utilization is a float: its rounding must not refuse a plan that fits to the byte.
    double share = double(plan.limits()->memory_utilization()) * double(device.memory_bytes()) * (1 + 1e-6);
    if (double(used[i]) > share)
      report.add(kCheck, -1,
                 cat("The ", ranks[i], " ranks on device ", quoted(device.id()), " need ", used[i],
                     " bytes together, and ", plan.limits()->memory_utilization(), " of its ", device.memory_bytes(),
                     " bytes may be used; compile with fewer ranks on it or a larger --memory-utilization."));
  }
}

} // namespace llmrt::plan
