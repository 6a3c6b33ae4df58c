#include "tools/llmrt/profile_report.h"

#include "runtime/plan/access.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmrt::tool {

namespace {

using nlohmann::ordered_json;

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

// Four characters and a unit.
std::string amount(double value, const char *unit) {
  const char *prefix = "";
  for (const char *p : {"k", "M", "G", "T", "P"}) {
    if (value < 999.5)
      break;
    value /= 1000;
    prefix = p;
  }
  char text[32];
  std::snprintf(text, sizeof(text), value == 0 ? "-" : value < 10 ? "%.2f %s%s" : value < 100 ? "%.1f %s%s" : "%.0f %s%s", value, prefix, unit);
  return text;
}

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f%%", 100 * ratio(part, whole));
  return whole > 0 ? text : "-";
}

void print_line(const Profile &profile, const std::string &name, const std::string &calls, double kernels, double seconds,
                const exec::OpCost &cost, double floor_s) {
  std::printf("%-42s %6s %7s %11.4f %7s %9s %9s %11.4f %8s\n", name.c_str(), calls.c_str(),
              kernels > 0 ? std::to_string(std::lround(kernels)).c_str() : "", seconds * 1e3, percent(seconds, profile.step_s).c_str(),
              amount(static_cast<double>(cost.bytes()), "B").c_str(), amount(static_cast<double>(cost.flops), "").c_str(),
              floor_s * 1e3, floor_s > 0 && seconds > 0 ? percent(floor_s, seconds).c_str() : "-");
}

void print_head(const char *first) {
  std::printf("%-42s %6s %7s %11s %7s %9s %9s %11s %8s\n", first, "calls", "kernels", "time ms", "of step", "bytes", "flops",
              "floor ms", "of floor");
}

ordered_json cost_json(const exec::OpCost &cost) {
  return {{"bytes", cost.bytes()},       {"weight_bytes", cost.weight_bytes}, {"activation_bytes", cost.activation_bytes},
          {"kv_bytes", cost.kv_bytes},   {"flops", cost.flops},               {"link_bytes", cost.link_bytes}};
}

const char *kind_of(const StepSpec &spec) { return spec.fresh == 1 ? "decode" : "prefill"; }

} // namespace

void print_profile(const Profile &profile, const plan::LoadedPlan &plan, bool per_op) {
  const plan::Plan &root = plan.root();
  std::printf("%s step of %s on %s, tp %u, pp %u: %d sequences, %d new tokens each, context %d; means of the faster half of %d steps\n",
              kind_of(profile.spec), root.model()->name() ? root.model()->name()->c_str() : "?", profile.backend.c_str(), root.tp(),
              root.pp(), profile.spec.batch, profile.spec.fresh, profile.spec.context, profile.steps);
  std::printf("measured here: read %.2f GB/s, products %.2f TFLOP/s; a floor is bytes or operations over these, whichever is longer\n",
              profile.ceilings.read_bytes_per_s / 1e9, profile.ceilings.matmul_flops_per_s / 1e12);
  if (profile.ranks > 1)
    std::printf("times and floors are means over the %u ranks; calls, kernels, bytes and flops are those of all ranks\n", profile.ranks);
  std::printf("\n");
  print_head("op");
  exec::OpCost total;
  double calls = 0, kernels = 0;
  for (const TitleResult &title : profile.titles) {
    print_line(profile, title.title, std::to_string(std::lround(title.calls)), title.kernels, title.seconds, title.cost, title.floor_s);
    total += title.cost;
    calls += title.calls;
    kernels += title.kernels;
  }
  print_line(profile, "sum", std::to_string(std::lround(calls)), kernels, profile.sum_s, total, profile.floor_s);
  std::printf("%-42s %6s %7s %11.4f\n", profile.graph ? "step, with graphs where they apply" : "step", "", "", profile.step_s * 1e3);
  std::printf("%-42s %6s %7s %11.4f %7s\n", "neither: gaps, launches, host", "", "", (profile.step_s - profile.sum_s) * 1e3,
              percent(profile.step_s - profile.sum_s, profile.step_s).c_str());
  std::printf("%-42s %6s %7s %11.4f\n", "step while it was profiled", "", "", profile.observed_s * 1e3);
  if (profile.interval_s > 0)
    std::printf("%d steps under way, one ends every %.4f ms; the slowest stage is busy for %.4f ms of it: bubble %s (ideal 0%%; with one "
                "step under way %s)\n",
                profile.in_flight, profile.interval_s * 1e3, profile.slowest_stage_s * 1e3,
                percent(profile.interval_s - profile.slowest_stage_s, profile.interval_s).c_str(),
                percent(profile.step_s - profile.slowest_stage_s, profile.step_s).c_str());
  if (!per_op)
    return;
  std::printf("\n");
  print_head("rank, op, layer");
  for (const OpResult &op : profile.ops) {
    std::string name = std::to_string(op.rank) + " ";
    name += op.op >= 0 ? std::to_string(op.op) + " " : "";
    name += op.layer >= 0 ? std::to_string(op.layer) + " " : "";
    print_line(profile, name + op.title, "1", op.kernels, op.seconds, op.cost, op.floor_s);
    for (const std::string &kernel : op.kernel_names)
      std::printf("    %s\n", kernel.c_str());
  }
}

ordered_json profile_json(const Profile &profile, const plan::LoadedPlan &plan, bool per_op) {
  const plan::Plan &root = plan.root();
  ordered_json json;
  json["model"] = root.model()->name() ? root.model()->name()->str() : "";
  json["backend"] = profile.backend;
  json["tp"] = root.tp(), json["pp"] = root.pp();
  json["step"] = {{"kind", kind_of(profile.spec)}, {"batch", profile.spec.batch}, {"new_tokens", profile.spec.fresh},
                  {"context", profile.spec.context}};
  json["steps"] = profile.steps;
  json["graphs"] = profile.graph;
  json["read_bytes_per_s"] = profile.ceilings.read_bytes_per_s;
  json["matmul_flops_per_s"] = profile.ceilings.matmul_flops_per_s;
  json["step_s"] = profile.step_s;
  json["profiled_step_s"] = profile.observed_s;
  json["sum_s"] = profile.sum_s;
  json["neither_s"] = profile.step_s - profile.sum_s;
  json["floor_s"] = profile.floor_s;
  if (profile.interval_s > 0)
    json["pipeline"] = {{"in_flight", profile.in_flight}, {"interval_s", profile.interval_s},
                        {"slowest_stage_s", profile.slowest_stage_s},
                        {"bubble", 1 - ratio(profile.slowest_stage_s, profile.interval_s)}};
  ordered_json &titles = json["ops"] = ordered_json::array();
  for (const TitleResult &title : profile.titles) {
    ordered_json line = {{"op", title.title}, {"calls", std::lround(title.calls)}, {"kernels", std::lround(title.kernels)},
                         {"time_s", title.seconds}, {"share_of_step", ratio(title.seconds, profile.step_s)}};
    line.update(cost_json(title.cost));
    line["floor_s"] = title.floor_s;
    line["share_of_floor"] = ratio(title.floor_s, title.seconds);
    line["kernel_names"] = title.kernel_names;
    titles.push_back(std::move(line));
  }
  if (!per_op)
    return json;
  ordered_json &ops = json["per_op"] = ordered_json::array();
  for (const OpResult &op : profile.ops) {
    ordered_json line = {{"rank", op.rank}, {"index", op.op}, {"layer", op.layer}, {"op", op.title},
                         {"kernels", std::lround(op.kernels)}, {"time_s", op.seconds}};
    line.update(cost_json(op.cost));
    line["floor_s"] = op.floor_s;
    line["share_of_floor"] = ratio(op.floor_s, op.seconds);
    line["kernel_names"] = op.kernel_names;
    ops.push_back(std::move(line));
  }
  return json;
}

} // namespace llmrt::tool
