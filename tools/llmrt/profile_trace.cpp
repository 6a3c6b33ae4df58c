// The trace file: events in Chrome's trace event format, written one by one since there may be very many.
#include "tools/llmrt/profile_report.h"

#include "runtime/plan/access.h"
#include "runtime/support/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>

namespace llmrt::tool {

namespace {

using nlohmann::ordered_json;

class TraceFile {
public:
  explicit TraceFile(const std::string &path) : path_(path), file_(std::fopen(path.c_str(), "w"), &std::fclose) {
    if (!file_)
      fail();
    put("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
  }

  // "process_name" or "thread_name" of a process or one of its threads.
  void name(const char *what, uint32_t process, uint32_t thread, const std::string &text) {
    event({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", text}}}});
  }
  // Keeps threads in this order.
  void order(uint32_t process, uint32_t thread) {
    event({{"name", "thread_sort_index"}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"sort_index", thread}}}});
  }
  void span(const std::string &name, uint32_t process, uint32_t thread, int64_t start_ns, int64_t end_ns, ordered_json args) {
    event({{"name", name}, {"ph", "X"}, {"pid", process}, {"tid", thread}, {"ts", static_cast<double>(start_ns) * 1e-3},
           {"dur", static_cast<double>(std::max<int64_t>(0, end_ns - start_ns)) * 1e-3}, {"args", std::move(args)}});
  }
  void close() {
    put("\n]}\n");
    if (std::fclose(file_.release()) != 0)
      fail();
  }

private:
  void event(const ordered_json &json) {
    put((first_ ? "\n" : ",\n") + json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    first_ = false;
  }
  void put(const std::string &text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size())
      fail();
  }
  [[noreturn]] void fail() { throw Error("the trace cannot be written to '" + path_ + "': " + std::strerror(errno)); }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_;
  bool first_ = true;
};

constexpr uint32_t kHostThread = 0, kFirstStream = 1;

std::string process_name(const plan::LoadedPlan &plan, uint32_t rank) {
  const plan::Program &program = plan.program(rank);
  const std::string_view device = plan::view_of(plan.root().topology()->devices()->Get(program.device())->id());
  return "rank " + std::to_string(rank) + " (" + std::string(device) + ", stage " + std::to_string(program.stage()) + ")";
}

ordered_json op_args(const plan::Program &program, uint64_t step, uint32_t op) {
  ordered_json args = {{"step", step}};
  if (op < plan::size_of(program.ops())) {
    args["op"] = op;
    if (const int layer = program.ops()->Get(op)->layer(); layer >= 0)
      args["layer"] = layer;
  }
  return args;
}

} // namespace

void check_trace_path(const std::string &path) { TraceFile(path).close(); }

void write_trace(const std::string &path, const plan::LoadedPlan &plan, const std::vector<StepTimes> &observed,
                 const Recorder &recorder, bool traced, const std::vector<exec::KernelSpan> &kernels) {
  const uint32_t ranks = plan.num_ranks();
  const int64_t zero = observed.empty() ? 0 : observed.front().submitted_ns;
  std::set<uint64_t> ids;
  for (const StepTimes &step : observed)
    ids.insert(step.id);
  TraceFile file(path);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const plan::Program &program = plan.program(rank);
    file.name("process_name", rank, 0, process_name(plan, rank));
    file.name("thread_name", rank, kHostThread, traced ? "host: launches" : "host: steps");
    file.order(rank, kHostThread);
    // Where kernels are traced, ops span their launches on the host. On CPUs an op runs while it is called: its own thread.
    const uint32_t ops_thread = traced ? kHostThread : kFirstStream;
    if (!traced) {
      file.name("thread_name", rank, ops_thread, "stream 0: the rank's threads");
      file.order(rank, ops_thread);
    }
    for (const OpSpan &span : recorder.spans(rank)) {
      if (ids.count(span.step) == 0)
        continue; // warms up
      const bool whole = span.op == exec::kPhaseStep;
      file.span(whole ? "step " + std::to_string(span.step) : title_of(program, span.op), rank, whole ? kHostThread : ops_thread,
                span.start_ns - zero, span.end_ns - zero, op_args(program, span.step, span.op));
    }
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> threads; // (rank, stream) -> thread
  for (const exec::KernelSpan &kernel : kernels) {
    const SpanTag tag = SpanTag::unpack(kernel.tag);
    if (tag.rank >= ranks || ids.count(tag.step) == 0)
      continue;
    const auto [at, fresh] = threads.try_emplace({tag.rank, kernel.stream}, 0);
    if (fresh) {
      uint32_t of_rank = 0;
      for (const auto &[key, thread] : threads)
        of_rank += key.first == tag.rank;
      at->second = kFirstStream + of_rank - 1;
      file.name("thread_name", tag.rank, at->second, "stream " + std::to_string(kernel.stream) + " of device " + std::to_string(kernel.device));
      file.order(tag.rank, at->second);
    }
    const plan::Program &program = plan.program(tag.rank);
    ordered_json args = op_args(program, tag.step, tag.op);
    args["kernel"] = short_kernel_name(kernel.name);
    file.span(title_of(program, tag.op), tag.rank, at->second, kernel.start_ns - zero, kernel.end_ns - zero, std::move(args));
  }
  file.name("process_name", ranks, 0, "llmrt");
  file.name("thread_name", ranks, kHostThread, "host: submitted to results");
  for (const StepTimes &step : observed)
    file.span("step " + std::to_string(step.id), ranks, kHostThread, step.submitted_ns - zero, step.done_ns - zero, {{"step", step.id}});
  file.close();
}

} // namespace llmrt::tool
