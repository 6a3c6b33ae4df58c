// `llmrt bench`: how fast this plan runs here, each figure beside the limit that the same run measured.
#include "runtime/exec/op_floor.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/support/error.h"
#include "runtime/support/seconds.h"
#include "tools/llmrt/bench_floor.h"
#include "tools/llmrt/bench_load.h"
#include "tools/llmrt/commands.h"
#include "tools/llmrt/startup.h"
#include "tools/llmrt/step_watch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace llmrt::tool {
namespace {

using nlohmann::ordered_json;

struct BenchFlags {
  StartFlags start;
  std::vector<std::string> what = {"latency", "decode", "prefill"};
  std::vector<int> batches = {1, 8, 16, 64, 256};
  std::vector<int> prefills = {128, 512, 2048, 8192};
  int input = 128, output = 128, context = 1024;
  int requests = 256, concurrency = 64;
  double rate = 0;
  bool gaps = false, json = false;
};

class Bench {
public:
  // `watch` must outlive the engine.
  Bench(const BenchFlags &flags, Started &started, StepWatch &watch)
      : flags_(flags), watch_(watch), loaded_(*started.plan), plan_(started.plan->root()), engine_(*started.engine),
        start_seconds_(started.seconds), load_(engine_, plan_.model()->vocab()), floor_(floor_of(plan_)) {}

  ordered_json run() {
    ceilings_ = engine_.measure_ceilings();
    say("read %.2f GB/s, products %.2f TFLOP/s, measured on this plan's devices\n", ceilings_.read_bytes_per_s / 1e9,
        ceilings_.matmul_flops_per_s / 1e12);
    result_["model"] = plan_.model()->name() ? plan_.model()->name()->str() : "";
    result_["tp"] = plan_.tp(), result_["pp"] = plan_.pp();
    result_["read_bytes_per_s"] = ceilings_.read_bytes_per_s;
    result_["matmul_flops_per_s"] = ceilings_.matmul_flops_per_s;
    start_up();
    burst(1, 32, 16); // warms up: algorithms, graphs, pages
    for (const std::string &what : flags_.what) {
      if (what == "latency")
        latency();
      else if (what == "decode")
        decode();
      else if (what == "prefill")
        prefill();
      else
        throughput();
    }
    return result_;
  }

private:
  template <typename... Args> void say(const char *format, Args... args) const {
    if (!flags_.json) {
      std::printf(format, args...);
      std::fflush(stdout);
    }
  }

  std::vector<Track> burst(int count, int input, int output) {
    std::vector<Track> tracks(static_cast<size_t>(count));
    load_.burst(tracks, input, output);
    return tracks;
  }

  bool fits(int sequences, int tokens) const {
    const plan::Limits &limits = *plan_.limits();
    const uint64_t pages = (static_cast<uint64_t>(tokens) + limits.page_size() - 1) / limits.page_size();
    return static_cast<uint32_t>(sequences) <= limits.max_num_seqs() && static_cast<uint32_t>(tokens) <= limits.max_model_len() &&
           pages * static_cast<uint64_t>(sequences) <= limits.num_pages();
  }

  // Seconds of a decode step, from the tokens of all requests while all were decoding.
  static double step_seconds(const std::vector<Track> &tracks) {
    Track::Clock::time_point all_started = tracks[0].tokens.front(), first_done = tracks[0].tokens.back();
    for (const Track &track : tracks) {
      all_started = std::max(all_started, track.tokens.front());
      first_done = std::min(first_done, track.tokens.back());
    }
    std::vector<double> gaps;
    for (const Track &track : tracks)
      for (size_t i = 1; i < track.tokens.size(); ++i)
        if (track.tokens[i - 1] >= all_started && track.tokens[i] <= first_done)
          gaps.push_back(seconds_between(track.tokens[i - 1], track.tokens[i]));
    return quantile(gaps, 0.5);
  }

  // What a decode step cannot go below if all of it could overlap: bytes over bandwidth, or operations over the products' rate.
  double decode_floor(int batch, double context) const {
    const double bytes = floor_.weight_bytes + floor_.kv_bytes_per_token * context * batch;
    const double flops = (floor_.flops_per_token + floor_.flops_per_row) * batch;
    return std::max(bytes / ceilings_.read_bytes_per_s, flops / ceilings_.matmul_flops_per_s);
  }

  // What it cannot go below op by op.
  double serial_floor(int batch, double context) const {
    return exec::serial_floor_seconds(loaded_, exec::decode_shape(loaded_, batch, static_cast<int>(context)), ceilings_,
                                      engine_.placement());
  }

  void latency() {
    std::vector<double> first, gaps;
    for (int i = 0; i < 3; ++i) {
      const Track track = burst(1, flags_.input, flags_.output)[0];
      first.push_back(seconds_between(track.submitted, track.tokens.front()));
      for (size_t t = 1; t < track.tokens.size(); ++t)
        gaps.push_back(seconds_between(track.tokens[t - 1], track.tokens[t]));
    }
    const double token = quantile(gaps, 0.5), floor = decode_floor(1, flags_.input + flags_.output / 2.0);
    say("latency     %4d in, %4d out: first token %.2f ms, then %.3f ms a token = %.1f tok/s; floor %.3f ms, %.0f%% of it\n",
        flags_.input, flags_.output, quantile(first, 0.5) * 1e3, token * 1e3, 1 / token, floor * 1e3, floor / token * 100);
    result_["latency"] = {{"input", flags_.input},          {"output", flags_.output},       {"first_token_s", quantile(first, 0.5)},
                          {"token_s", token},               {"floor_s", floor},              {"share_of_floor", floor / token}};
  }

  void decode() {
    for (int batch : flags_.batches) {
      if (!fits(batch, flags_.context + flags_.output)) {
        say("decode      batch %d at context %d does not fit this plan\n", batch, flags_.context);
        continue;
      }
      // Prompts arrive over several steps; outputs are long enough that all overlap.
      const int steps = 1 + batch * flags_.context / static_cast<int>(plan_.limits()->max_batched_tokens());
      const int output = std::min(flags_.output + 2 * steps, static_cast<int>(plan_.limits()->max_model_len()) - flags_.context);
      const auto tracks = watched_burst(batch, output, nullptr);
      const double step = step_seconds(tracks), context = flags_.context + output / 2.0;
      const double floor = decode_floor(batch, context), serial = serial_floor(batch, context);
      say("decode      batch %4d, context %5d: %.3f ms a step, %.0f tok/s; floor op by op %.3f ms, %.0f%% of it; of the whole "
          "step %.3f ms, %.0f%%\n",
          batch, flags_.context, step * 1e3, batch / step, serial * 1e3, serial / step * 100, floor * 1e3, floor / step * 100);
      result_["decode"].push_back({{"batch", batch}, {"context", flags_.context}, {"step_s", step},
                                   {"serial_floor_s", serial}, {"share_of_serial_floor", serial / step},
                                   {"floor_s", floor}, {"share_of_floor", floor / step}});
      if (engine_.backend() != "cpu")
        say_host(result_["decode"].back());
      if (flags_.gaps)
        gaps(batch, output, result_["decode"].back());
    }
  }

  // While the engine's steps are watched (not on CPUs, where watching would take time from the ops).
  std::vector<Track> watched_burst(int batch, int output, exec::KernelTracer *tracer) {
    quiet();
    watch_.restart(tracer);
    engine_.observe(engine_.backend() == "cpu" ? nullptr : &watch_);
    std::vector<Track> result = burst(batch, flags_.context, output);
    quiet();
    engine_.observe(nullptr);
    return result;
  }

  // What the start has taken; the first figure that a user waits for.
  void start_up() {
    const exec::StartTimes times = engine_.start_times();
    const double bytes = static_cast<double>(times.weight_bytes), rate = bytes / times.weights_s;
    say("start-up    %.2f s: devices %.2f, weights %.2f (%.2f GB at %.2f GB/s), graphs %.2f\n", start_seconds_, times.devices_s,
        times.weights_s, bytes / 1e9, rate / 1e9, times.graphs_s);
    result_["start_up"] = {{"seconds", start_seconds_},       {"devices_s", times.devices_s}, {"weights_s", times.weights_s},
                           {"weight_bytes", times.weight_bytes}, {"graphs_s", times.graphs_s}};
    if (const double copies = ceilings_.to_device_bytes_per_s; copies > 0) {
      say("            copies to the devices %.2f GB/s: the weights' bytes in %.2f s\n", copies / 1e9, bytes / copies);
      result_["start_up"]["to_device_bytes_per_s"] = copies;
    }
  }

  // Until the engine is idle and no rank has a step left.
  void quiet() {
    if (!engine_.wait_idle(10))
      throw Error("the engine was not idle ten seconds after its last answer");
    watch_.wait();
  }

  void say_host(ordered_json &line) {
    const HostTimes host = watch_.host_times();
    say("            host %.1f us a step: composing it %.1f, launching it %.1f (inputs %.1f, ops %.1f, draws %.1f), taking its "
        "results in %.1f; its callbacks, on their own thread, %.1f\n",
        host.total() * 1e6, host.compose * 1e6, host.launch.total() * 1e6, host.launch.inputs * 1e6, host.launch.ops * 1e6,
        host.launch.draws * 1e6, host.results * 1e6, host.deliver * 1e6);
    line["host_s"] = {{"total", host.total()},
                      {"compose", host.compose},
                      {"launch", host.launch.total()},
                      {"launch_inputs", host.launch.inputs},
                      {"launch_ops", host.launch.ops},
                      {"launch_draws", host.launch.draws},
                      {"results", host.results},
                      {"callbacks", host.deliver}};
  }

  // The same steps again with every kernel traced, which slows the host but not what lies between a device's kernels.
  void gaps(int batch, int output, ordered_json &line) {
    const std::unique_ptr<exec::KernelTracer> tracer = engine_.trace_kernels();
    if (!tracer)
      throw Error("--gaps looks at kernels of GPUs, and this plan runs on CPUs");
    watched_burst(batch, output, tracer.get());
    const std::vector<exec::KernelSpan> kernels = tracer->collect();
    double idle = 0, most = 0;
    size_t steps = 0;
    for (uint32_t rank = 0; rank < loaded_.num_ranks(); ++rank) {
      const std::vector<double> of_rank = idle_between_steps(kernels, rank);
      idle = std::max(idle, quantile(of_rank, 0.5));
      most = std::max(most, quantile(of_rank, 0.95));
      steps = of_rank.size();
    }
    if (steps == 0)
      throw Error("the tracer has seen no two steps that follow each other, so what lies between them is not known");
    watch_.restart(nullptr);
    say("            idle between steps %.1f us (95%% of %zu: at most %.1f), without sampling and inputs\n", idle * 1e6, steps,
        most * 1e6);
    line["idle_between_steps_s"] = {{"median", idle}, {"quantile_95", most}, {"steps", steps}};
  }

  void prefill() {
    for (int tokens : flags_.prefills) {
      if (!fits(1, tokens + 1))
        continue;
      std::vector<double> times;
      for (int i = 0; i < 4; ++i) {
        const Track track = burst(1, tokens, 1)[0];
        if (i)
          times.push_back(seconds_between(track.submitted, track.tokens.front()));
      }
      const double seconds = quantile(times, 0.5), t = tokens;
      const double flops = floor_.flops_per_token * t + floor_.flops_per_row + floor_.attention_flops * t * t / 2;
      say("prefill     %5d tokens: %.2f ms, %.0f tok/s, %.2f TFLOP/s = %.0f%% of the products' rate\n", tokens, seconds * 1e3,
          t / seconds, flops / seconds / 1e12, flops / seconds / ceilings_.matmul_flops_per_s * 100);
      result_["prefill"].push_back({{"tokens", tokens}, {"seconds", seconds}, {"flops_per_s", flops / seconds},
                                    {"share_of_matmul", flops / seconds / ceilings_.matmul_flops_per_s}});
    }
  }

  // Closed loop (a new request whenever one ends), or open (a Poisson stream of `rate` requests a second).
  void throughput() {
    if (!fits(1, flags_.input + flags_.output))
      throw Error("requests of " + std::to_string(flags_.input) + " + " + std::to_string(flags_.output) +
                  " tokens do not fit this plan's max_model_len of " + std::to_string(plan_.limits()->max_model_len()));
    std::vector<Track> tracks(static_cast<size_t>(flags_.requests));
    const double seconds = flags_.rate > 0 ? load_.open_loop(tracks, flags_.rate, flags_.input, flags_.output)
                                           : load_.closed_loop(tracks, flags_.concurrency, flags_.input, flags_.output);
    std::vector<double> first, token;
    size_t tokens = 0;
    for (const Track &track : tracks) {
      tokens += track.tokens.size();
      first.push_back(seconds_between(track.submitted, track.tokens.front()));
      token.push_back(seconds_between(track.tokens.front(), track.last) / std::max<double>(1, double(track.tokens.size()) - 1));
    }
    char how[64];
    std::snprintf(how, sizeof how, "%g %s", flags_.rate > 0 ? flags_.rate : flags_.concurrency, flags_.rate > 0 ? "a second" : "at once");
    say("throughput  %d requests of %d in, %d out, %s: %.1f s, %.0f output tok/s; first token %.1f ms (99%%: %.1f), then %.2f ms a "
        "token (99%%: %.2f)\n",
        flags_.requests, flags_.input, flags_.output, how, seconds, static_cast<double>(tokens) / seconds, quantile(first, 0.5) * 1e3,
        quantile(first, 0.99) * 1e3, quantile(token, 0.5) * 1e3, quantile(token, 0.99) * 1e3);
    result_["throughput"] = {{"requests", flags_.requests}, {"input", flags_.input},     {"output", flags_.output},
                             {"concurrency", flags_.concurrency}, {"rate", flags_.rate}, {"seconds", seconds},
                             {"output_tokens_per_s", static_cast<double>(tokens) / seconds},
                             {"first_token_s", quantile(first, 0.5)}, {"first_token_s_99", quantile(first, 0.99)},
                             {"token_s", quantile(token, 0.5)}, {"token_s_99", quantile(token, 0.99)}};
  }

  const BenchFlags &flags_;
  StepWatch &watch_;
  const plan::LoadedPlan &loaded_;
  const plan::Plan &plan_;
  Engine &engine_;
  double start_seconds_;
  BenchLoad load_;
  Floor floor_;
  exec::Ceilings ceilings_;
  ordered_json result_;
};

} // namespace

void add_bench_command(CLI::App &app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App *cmd = app.add_subcommand(
      "bench", "Measure this plan on this machine, each figure beside the limit measured in the same run\n"
               "\n"
               "Examples:\n"
               "  llmrt bench plan.fb                                       # start-up, latency, batched decode, prefill\n"
               "  llmrt bench plan.fb --what decode --batch 1,64 --context 4096\n"
               "  llmrt bench plan.fb --what decode --batch 256 --gaps      # also the GPU's idle time between steps\n"
               "  llmrt bench plan.fb --what throughput --requests 512 --input 1024 --output 1024 --concurrency 256\n"
               "  llmrt bench plan.fb --what throughput --rate 8            # open loop: 8 requests a second\n");
  flags->start.no_prefix_cache = true; // prompts are random; a cache would only be in the way
  flags->start.add_to(*cmd);
  cmd->add_option("--what", flags->what, "latency, decode, prefill, throughput")
      ->delimiter(',')
      ->check(CLI::IsMember({"latency", "decode", "prefill", "throughput"}))
      ->capture_default_str();
  cmd->add_option("--batch", flags->batches, "Batch sizes of decode")->delimiter(',')->capture_default_str();
  cmd->add_option("--context", flags->context, "Prompt tokens of decode")->capture_default_str();
  cmd->add_option("--prefill", flags->prefills, "Prompt lengths of prefill")->delimiter(',')->capture_default_str();
  cmd->add_option("--input", flags->input, "Prompt tokens of latency and throughput")->capture_default_str();
  cmd->add_option("--output", flags->output, "Output tokens")->capture_default_str();
  cmd->add_option("--requests", flags->requests, "Requests of throughput")->capture_default_str();
  cmd->add_option("--concurrency", flags->concurrency, "Requests at once of throughput")->capture_default_str();
  cmd->add_option("--rate", flags->rate, "Throughput: requests a second, in place of --concurrency");
  cmd->add_flag("--gaps", flags->gaps, "Decode on GPUs: run again with kernels traced (CUPTI), for how long the device is idle between steps");
  cmd->add_flag("--json", flags->json, "Print the figures as JSON");
  cmd->callback([flags] {
    if (flags->input < 1 || flags->output < 2 || flags->context < 1 || flags->requests < 1 || flags->concurrency < 1)
      throw CLI::ValidationError("--input, --context, --requests and --concurrency must be at least 1, --output at least 2");
    std::optional<StepWatch> watch; // outlives the engine
    Started started = start(flags->start, 1u << 16, true);
    const ordered_json result = Bench(*flags, started, watch.emplace(started.plan->num_ranks())).run();
    if (flags->json)
      std::printf("%s\n", result.dump(2).c_str());
  });
}

} // namespace llmrt::tool
