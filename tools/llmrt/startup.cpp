// Loading with a progress bar, and the report after it; all of it goes to stderr.
#include "tools/llmrt/startup.h"

#include "runtime/plan/verify.h"
#include "runtime/support/error.h"
#include "runtime/support/seconds.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace llmrt::tool {

void StartFlags::add_to(CLI::App &command) {
  command.add_option("PLAN", plan_path, "The plan, as llmc compile wrote it")->required();
  command.add_option("--model-dir", model_dir, "Folder of the weight files, if they are not beside the plan");
  command.add_option("--backend", backend,
                     "Where to execute: cuda, cpu, or auto (the plan's GPUs; the CPU where this machine has none)")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command.add_flag("--share-devices", share_devices, "CUDA: let several ranks run on one GPU where there are too few");
  command.add_flag("--eager", eager, "CUDA: run decode steps op by op, without graphs");
  static const std::map<std::string, exec::Collectives> ways = {{"auto", exec::Collectives::Auto},
                                                                {"nccl", exec::Collectives::Nccl},
                                                                {"peer", exec::Collectives::Peer},
                                                                {"host", exec::Collectives::Host}};
  command
      .add_option_function<std::string>(
          "--collectives", [this](const std::string &way) { collectives = ways.at(way); },
          "CUDA: how ranks talk: nccl, peer (our kernels over P2P or within a GPU), host (through host memory, for GPUs without working "
          "P2P), or auto (peer for the sums that the plan has pushed, nccl for the rest, where the machine allows)")
      ->transform(CLI::IsMember({"auto", "nccl", "peer", "host"}, CLI::ignore_case))
      ->default_str("auto");
  command.add_flag("--check-collectives", check_collectives,
                   "Compare the sequence numbers of all ranks at every collective, and name the last ones on failure (slow)");
  command.add_option("--collective-timeout", collective_timeout_s, "Seconds that a rank waits for another before all end")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_flag("--no-run-ahead", no_run_ahead, "CUDA: compose a step only when the one before it has come back");
  command.add_flag("--no-algorithm-cache", no_algorithm_cache,
                   "CUDA: time algorithms of matrix products anew, and keep none in $XDG_CACHE_HOME/llmrt (~/.cache/llmrt)");
  command.add_option("--threads", threads, "CPU threads, all ranks together (default: every core)")
      ->check(CLI::Range(1u, 4096u));
  command.add_flag("--no-prefix-cache", no_prefix_cache,
                   "Do not reuse the KV pages of prompts that begin alike");
}

namespace {

using Clock = std::chrono::steady_clock;

// "loading [######........]  43%  120 / 280 MiB" or "capturing graphs […]", drawn over itself.
class ProgressBar {
public:
  explicit ProgressBar(bool shown) : shown_(shown) {}
  ~ProgressBar() { clear(); }

  void loading(uint64_t done, uint64_t total) {
    update("loading", done, total, static_cast<double>(1 << 20), " MiB");
  }
  void capturing(uint64_t done, uint64_t total) {
    update("capturing graphs", done, total, 1, "");
    captured_ = total;
  }
  uint64_t captured() const { return captured_; } // how many there were

  void clear() {
    if (drawn_)
      std::fprintf(stderr, "\r\033[K");
    drawn_ = false;
  }

private:
  void update(const char *what, uint64_t done, uint64_t total, double unit, const char *name) {
    if (!shown_ || total == 0)
      return;
    const int width = 30, filled = static_cast<int>(width * std::min(done, total) / total);
    std::fprintf(stderr, "\r%s [%s%s] %3d%%  %.0f / %.0f%s\033[K", what, std::string(filled, '#').c_str(),
                 std::string(width - filled, '.').c_str(), static_cast<int>(100 * std::min(done, total) / total),
                 static_cast<double>(done) / unit, static_cast<double>(total) / unit, name);
    std::fflush(stderr);
    drawn_ = true;
  }

  bool shown_, drawn_ = false;
  uint64_t captured_ = 0;
};

uint64_t planned(const plan::Ledger &ledger, const std::vector<std::string_view> &names) {
  uint64_t bytes = 0;
  if (ledger.lines())
    for (const plan::LedgerLine *line : *ledger.lines())
      if (line->name() && std::find(names.begin(), names.end(), line->name()->string_view()) != names.end())
        bytes += line->bytes();
  return bytes;
}

void print_memory(const plan::LoadedPlan &plan, const std::vector<exec::RankMemory> &measured) {
  const char *columns[] = {"weights", "activations", "workspace", "communication", "KV pages", "total"};
  std::fprintf(stderr, "memory in MiB, measured / planned:\n  %-4s %-14s", "rank", "device");
  for (const char *column : columns)
    std::fprintf(stderr, " %17s", column);
  auto pair = [](uint64_t is, uint64_t should) {
    char text[40];
    std::snprintf(text, sizeof text, "%.1f / %.1f", static_cast<double>(is) / (1 << 20),
                  static_cast<double>(should) / (1 << 20));
    return std::string(text);
  };
  for (const exec::RankMemory &m : measured) {
    if (m.rank >= plan.num_ranks())
      continue;
    const plan::Program &program = plan.program(m.rank);
    const plan::Ledger &ledger = *program.ledger();
    const auto *device = plan.root().topology()->devices()->Get(program.device());
    const uint64_t total = m.weights + m.arena + m.workspace + m.communication + m.kv;
    std::fprintf(stderr, "\n  %-4u %-14s", m.rank, device->id() ? device->id()->c_str() : "?");
    for (const auto &[is, lines] : {std::pair<uint64_t, std::vector<std::string_view>>{m.weights, {"weights"}},
                                    {m.arena, {"activations"}},
                                    {m.workspace, {"workspace"}},
                                    {m.communication, {"communication"}},
                                    {m.kv, {"kv_cache"}},
                                    {total, {"weights", "activations", "workspace", "communication", "kv_cache"}}})
      std::fprintf(stderr, " %17s", pair(is, planned(ledger, lines)).c_str());
  }
  std::fprintf(stderr, "\n");
}

// The devices are the compiler's business, but a plan for GPUs that runs on the CPU should not surprise
// anybody.
void notice_devices(const plan::Plan &plan, const std::string &backend) {
  if (backend != "cpu")
    return;
  uint32_t cuda = 0;
  for (const plan::Program *program : *plan.programs())
    cuda += plan.topology()->devices()->Get(program->device())->kind() == plan::DeviceKind::Cuda;
  if (cuda > 0)
    std::fprintf(stderr, "llmrt: notice: the plan is for %u CUDA devices; here its ranks run on the CPU\n",
                 cuda);
}

} // namespace

std::shared_ptr<const plan::LoadedPlan> load_plan(const StartFlags &flags) {
  std::shared_ptr<const plan::LoadedPlan> plan = plan::LoadedPlan::load(flags.plan_path);
  if (const auto problems = plan::verify(plan->root()); !problems.empty())
    throw Error("the plan '" + plan->path() + "' does not hold: " + plan::to_string(problems.front()) +
                (problems.size() > 1
                     ? " (and " + std::to_string(problems.size() - 1) + " more; see llmc verify)"
                     : ""));
  return plan;
}

StartedExecutor start_executor(const StartFlags &flags, std::shared_ptr<const plan::LoadedPlan> plan,
                               exec::Executor::StepDone on_done) {
  StartedExecutor s;
  s.plan = std::move(plan);
  ProgressBar bar(isatty(STDERR_FILENO));
  exec::ExecutorOptions options;
  options.plan_folder = flags.model_dir.empty() ? s.plan->folder() : flags.model_dir;
  options.threads = flags.threads;
  options.backend = flags.backend;
  options.share_devices = flags.share_devices;
  options.eager = flags.eager;
  options.algorithm_cache = !flags.no_algorithm_cache;
  options.on_progress = [&](const exec::LoadProgress &p) { bar.loading(p.bytes_done, p.bytes_total); };
  options.on_capture = [&](uint64_t done, uint64_t total) { bar.capturing(done, total); };
  s.executor = exec::Executor::create(s.plan, options, std::move(on_done));
  bar.clear();
  notice_devices(s.plan->root(), s.executor->backend());
  return s;
}

Started start(const StartFlags &flags, uint32_t max_queued_requests, bool report) {
  const auto begin = Clock::now();
  Started s;
  s.plan = load_plan(flags);
  ProgressBar bar(isatty(STDERR_FILENO));
  EngineOptions options;
  options.plan_folder = flags.model_dir;
  options.threads = flags.threads;
  options.backend = flags.backend;
  options.share_devices = flags.share_devices;
  options.eager = flags.eager;
  options.collectives = flags.collectives;
  options.check_collectives = flags.check_collectives;
  options.collective_timeout_s = flags.collective_timeout_s;
  options.algorithm_cache = !flags.no_algorithm_cache;
  options.run_ahead = !flags.no_run_ahead;
  options.max_queued_requests = max_queued_requests;
  options.prefix_cache = !flags.no_prefix_cache;
  options.on_load_progress = [&](uint64_t done, uint64_t total) { bar.loading(done, total); };
  options.on_capture_progress = [&](uint64_t done, uint64_t total) { bar.capturing(done, total); };
  s.engine = Engine::create(s.plan, options);
  bar.clear();
  notice_devices(s.plan->root(), s.engine->backend());
  s.seconds = seconds_since(begin);
  if (report) {
    print_memory(*s.plan, s.engine->memory());
    if (bar.captured())
      std::fprintf(stderr, "captured %llu graphs of decode steps (--eager does without)\n",
                   static_cast<unsigned long long>(bar.captured()));
    const plan::Plan &plan = s.plan->root();
    const plan::Limits &limits = *plan.limits();
    std::fprintf(stderr,
                 "loaded %s in %.1f s: %u ranks (tp %u, pp %u), up to %u sequences of %u tokens, KV pages "
                 "for %llu tokens\n",
                 plan.model()->served_name() ? plan.model()->served_name()->c_str() : s.plan->path().c_str(),
                 s.seconds, s.plan->num_ranks(), plan.tp(), plan.pp(), limits.max_num_seqs(),
                 limits.max_model_len(),
                 static_cast<unsigned long long>(s.engine->stats().pages_total) * limits.page_size());
  }
  return s;
}

} // namespace llmrt::tool
