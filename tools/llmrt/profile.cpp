// `llmrt profile`: one step of a plan, broken down by op, each with its time beside the least it could take.
#include "runtime/support/error.h"
#include "tools/llmrt/commands.h"
#include "tools/llmrt/profile_report.h"
#include "tools/llmrt/startup.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace llmrt::tool {
namespace {

struct ProfileFlags {
  StartFlags start;
  int batch = 1, steps = 20;
  std::optional<int> context, prefill;
  std::string trace;
  bool per_op = false, json = false;
};

constexpr int kWarmUps = 3; // algorithms are chosen, graphs captured, clocks up

StepSpec spec_of(const ProfileFlags &flags, const plan::LoadedPlan &plan) {
  StepSpec spec;
  spec.batch = flags.batch;
  spec.fresh = flags.prefill.value_or(1);
  const int longest = static_cast<int>(std::min<uint32_t>(plan.root().limits()->max_model_len(), 1u << 30));
  spec.context = flags.context.value_or(flags.prefill ? *flags.prefill : std::min(1024, longest));
  if (spec.context < spec.fresh)
    throw Error("--context " + std::to_string(spec.context) + " is less than the " + std::to_string(spec.fresh) +
                " new tokens that it includes: give --context at least --prefill");
  return spec;
}

void profile(const ProfileFlags &flags) {
  if (!flags.trace.empty())
    check_trace_path(flags.trace); // known before minutes have gone by
  const std::shared_ptr<const plan::LoadedPlan> plan = load_plan(flags.start);
  StepRunner runner(*plan, spec_of(flags, *plan));
  const StartedExecutor started = start_executor(flags.start, plan, runner.on_done());
  exec::Executor &executor = *started.executor;

  Profile profile;
  profile.spec = spec_of(flags, *plan);
  profile.ranks = plan->num_ranks();
  profile.backend = executor.backend();
  profile.graph = profile.backend == "cuda" && !flags.start.eager;
  profile.steps = flags.steps;
  profile.placement = executor.placement();
  profile.ceilings = executor.measure_ceilings();
  runner.prepare(executor);
  const auto many = [&](int count, Recorder *recorder) {
    std::vector<StepTimes> times;
    for (int i = 0; i < count; ++i)
      times.push_back(runner.run(recorder));
    return times;
  };
  many(kWarmUps, nullptr);
  profile.step_s = mean_seconds(faster_half(many(flags.steps, nullptr)));
  if (plan->root().pp() > 1) {
    profile.in_flight = static_cast<int>(executor.max_in_flight());
    profile.interval_s = runner.interval(flags.steps);
  }

  const std::unique_ptr<exec::KernelTracer> tracer = executor.trace_kernels();
  Recorder recorder(profile.ranks, tracer.get());
  many(kWarmUps, &recorder);
  const std::vector<StepTimes> observed = many(flags.steps, &recorder);
  const std::vector<StepTimes> faster = faster_half(observed);
  profile.observed_s = mean_seconds(faster);
  const std::vector<exec::KernelSpan> kernels = tracer ? tracer->collect() : std::vector<exec::KernelSpan>();
  attribute(profile, *plan, runner.step(), faster, recorder, tracer != nullptr, kernels);

  if (flags.json)
    std::printf("%s\n", profile_json(profile, *plan, flags.per_op).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  else
    print_profile(profile, *plan, flags.per_op);
  if (!flags.trace.empty())
    write_trace(flags.trace, *plan, observed, recorder, tracer != nullptr, kernels);
}

} // namespace

void add_profile_command(CLI::App &app) {
  auto flags = std::make_shared<ProfileFlags>();
  CLI::App *cmd = app.add_subcommand(
      "profile", "Break one step down by op: time, bytes, operations, and how near to its floor each is\n"
                 "\n"
                 "The step is run over and over on caches that were really filled: first as it is, for its own time, then op by op\n"
                 "with every op timed (on CUDA with CUPTI, kernel by kernel and without graphs).\n"
                 "\n"
                 "Examples:\n"
                 "  llmrt profile plan.fb                                     # a decode step of one sequence at context 1024\n"
                 "  llmrt profile plan.fb --batch 64 --context 4096           # a decode step of 64 sequences\n"
                 "  llmrt profile plan.fb --prefill 2048                      # the prefill of a prompt\n"
                 "  llmrt profile plan.fb --prefill 512 --context 4096        # the last 512 tokens of a prompt of 4096\n"
                 "  llmrt profile plan.fb --trace trace.json                  # also a timeline, for ui.perfetto.dev\n"
                 "  llmrt profile plan.fb --per-op --json                     # every op of every rank\n");
  flags->start.add_to(*cmd);
  cmd->add_option("--batch", flags->batch, "Sequences of the step")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  cmd->add_option("--context", flags->context,
                  "Tokens in each sequence's cache once the step is done (default: 1024, or the plan's most; with --prefill the prompt)")
      ->check(CLI::Range(1, 1 << 30));
  cmd->add_option("--prefill", flags->prefill, "Profile a step of this many new tokens a sequence (default: decode, 1 new token)")
      ->check(CLI::Range(1, 1 << 30));
  cmd->add_option("--steps", flags->steps, "Steps to run; the faster half of them counts")->check(CLI::Range(1, 100000))->capture_default_str();
  cmd->add_option("--trace", flags->trace, "Write a timeline of the profiled steps here (Chrome's trace event format)");
  cmd->add_flag("--per-op", flags->per_op, "Every op of every rank, too, not only sums over layers");
  cmd->add_flag("--json", flags->json, "Print the figures as JSON");
  cmd->callback([flags] { profile(*flags); });
}

} // namespace llmrt::tool
