#include "tools/llmrt/profile_result.h"

#include "runtime/exec/op_floor.h"
#include "runtime/plan/access.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace llmrt::tool {

namespace {

constexpr uint32_t kNobody = UINT32_MAX; // rank and op of kernels that were launched under no tag

struct Seen {
  double seconds = 0, kernels = 0; // over all steps looked at
  std::vector<std::string> names;
};

void add_name(std::vector<std::string> &names, const std::string &name) {
  if (std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(name);
}

// (rank, op) -> what was seen of it in the steps that count.
class Sightings {
public:
  explicit Sightings(const std::vector<StepTimes> &steps) : steps_(steps) {
    for (const StepTimes &step : steps)
      ids_.insert(step.id);
  }

  void add(uint64_t step, uint32_t rank, uint32_t op, double seconds, const std::string *kernel) {
    if (ids_.count(step) == 0)
      return;
    Seen &seen = seen_[{rank, op}];
    seen.seconds += seconds;
    if (kernel) {
      seen.kernels += 1;
      add_name(seen.names, *kernel);
    }
  }
  const Seen *find(uint32_t rank, uint32_t op) const {
    const auto at = seen_.find({rank, op});
    return at == seen_.end() ? nullptr : &at->second;
  }
  // The step under way at `ns`, or 0; for kernels without a tag.
  uint64_t step_at(int64_t ns) const {
    for (const StepTimes &step : steps_)
      if (step.submitted_ns <= ns && ns < step.done_ns)
        return step.id;
    return 0;
  }
  double steps() const { return static_cast<double>(steps_.size()); }

private:
  const std::vector<StepTimes> &steps_;
  std::set<uint64_t> ids_;
  std::map<std::pair<uint32_t, uint32_t>, Seen> seen_;
};

// Kernels of a stream may overlap (a kernel may be resident before the one in front of it has ended). Each counts from when
// nothing before it on its rank ran any more, so that the sum is the time in which the rank's device was busy.
void sight_kernels(Sightings &sightings, const std::vector<exec::KernelSpan> &kernels) {
  std::map<uint32_t, int64_t> busy_until; // by rank
  std::map<std::string, std::string> names;
  for (const exec::KernelSpan &kernel : kernels) {
    SpanTag tag = SpanTag::unpack(kernel.tag);
    if (kernel.tag == 0)
      tag = {sightings.step_at(kernel.start_ns), kNobody, kNobody};
    int64_t &busy = busy_until[tag.rank];
    const int64_t start = std::max(kernel.start_ns, busy);
    busy = std::max(busy, kernel.end_ns);
    const auto [name, fresh] = names.try_emplace(kernel.name);
    if (fresh)
      name->second = short_kernel_name(kernel.name);
    sightings.add(tag.step, tag.rank, tag.op, static_cast<double>(std::max<int64_t>(0, kernel.end_ns - start)) * 1e-9, &name->second);
  }
}

void sight_spans(Sightings &sightings, const Recorder &recorder, uint32_t ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (const OpSpan &span : recorder.spans(rank))
      if (span.op != exec::kPhaseStep)
        sightings.add(span.step, rank, span.op, static_cast<double>(span.end_ns - span.start_ns) * 1e-9, nullptr);
}

// What part of all devices together a rank has: its device, shared with the ranks there that work at the same time, which are
// those of its stage.
std::vector<double> rank_shares(const plan::LoadedPlan &plan, std::vector<int> placement) {
  placement.resize(plan.num_ranks(), 0);
  const double devices = static_cast<double>(std::set<int>(placement.begin(), placement.end()).size());
  std::vector<double> shares;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank) {
    int together = 0;
    for (uint32_t other = 0; other < plan.num_ranks(); ++other)
      together += placement[other] == placement[rank] && plan.program(other).stage() == plan.program(rank).stage();
    shares.push_back(1 / devices / together);
  }
  return shares;
}

// Ranks of a stage work side by side. To receive is to wait, or the end of another's work.
double slowest_stage(const Profile &profile, const plan::LoadedPlan &plan) {
  std::vector<double> busy(profile.ranks);
  for (const OpResult &op : profile.ops)
    if (op.op < 0 || plan.program(op.rank).ops()->Get(static_cast<uint32_t>(op.op))->op_type() != plan::OpKind::Recv)
      busy[op.rank] += op.seconds;
  return *std::max_element(busy.begin(), busy.end());
}

void add_up(Profile &profile) {
  std::map<std::string, size_t> index;
  for (const OpResult &op : profile.ops) {
    const auto [at, fresh] = index.try_emplace(op.title, profile.titles.size());
    if (fresh)
      profile.titles.emplace_back().title = op.title;
    TitleResult &title = profile.titles[at->second];
    title.calls += 1;
    title.kernels += op.kernels;
    title.seconds += op.seconds / profile.ranks;
    title.floor_s += op.floor_s / profile.ranks;
    title.cost += op.cost;
    for (const std::string &name : op.kernel_names)
      add_name(title.kernel_names, name);
  }
  for (const TitleResult &title : profile.titles) {
    profile.sum_s += title.seconds;
    profile.floor_s += title.floor_s;
  }
}

} // namespace

std::vector<StepTimes> faster_half(std::vector<StepTimes> steps) {
  std::sort(steps.begin(), steps.end(), [](const StepTimes &a, const StepTimes &b) { return a.seconds() < b.seconds(); });
  steps.resize((steps.size() + 1) / 2);
  return steps;
}

double mean_seconds(const std::vector<StepTimes> &steps) {
  double sum = 0;
  for (const StepTimes &step : steps)
    sum += step.seconds();
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

std::string short_kernel_name(const std::string &mangled) {
  int status = 0;
  char *text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text ? text : mangled;
  std::free(text);
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  name.resize(std::min(name.size(), name.find_first_of("<(")));
  if (name.rfind("void ", 0) == 0)
    name.erase(0, 5);
  return name;
}

std::string title_of(const plan::Program &program, uint32_t op) {
  switch (op) {
  case exec::kPhaseStep:
    return "beside the ops";
  case exec::kPhaseInputs:
    return "inputs to device";
  case exec::kPhaseAngles:
    return "rope angles";
  case exec::kPhaseSampling:
    return "sampling";
  case exec::kPhaseResults:
    return "logits to host";
  case kNobody:
    return "kernels of no op";
  default:
    return op < plan::size_of(program.ops()) ? exec::op_title(program, op) : "op " + std::to_string(op);
  }
}

void attribute(Profile &profile, const plan::LoadedPlan &plan, const exec::StepBatch &step, const std::vector<StepTimes> &observed,
               const Recorder &recorder, bool traced, const std::vector<exec::KernelSpan> &kernels) {
  Sightings sightings(observed);
  if (traced)
    sight_kernels(sightings, kernels);
  else
    sight_spans(sightings, recorder, profile.ranks);

  const std::vector<double> shares = rank_shares(plan, profile.placement);
  const auto add = [&](uint32_t rank, uint32_t op, bool of_plan) {
    const plan::Program &program = plan.program(rank == kNobody ? 0 : rank);
    const Seen *seen = sightings.find(rank, op);
    if (!seen && !of_plan)
      return;
    OpResult &result = profile.ops.emplace_back();
    result.rank = rank == kNobody ? 0 : rank;
    result.title = title_of(program, op);
    if (seen) {
      result.seconds = seen->seconds / sightings.steps();
      result.kernels = seen->kernels / sightings.steps();
      result.kernel_names = seen->names;
    }
    if (!of_plan)
      return;
    result.op = op;
    result.layer = program.ops()->Get(op)->layer();
    result.cost = exec::cost_of(plan, rank, op, step);
    result.floor_s = exec::floor_seconds(result.cost, profile.ceilings, shares[rank]);
  };
  for (uint32_t rank = 0; rank < profile.ranks; ++rank) {
    add(rank, exec::kPhaseInputs, false);
    add(rank, exec::kPhaseAngles, false);
    for (uint32_t op = 0; op < plan::size_of(plan.program(rank).ops()); ++op)
      add(rank, op, true);
    for (const uint32_t phase : {exec::kPhaseSampling, exec::kPhaseResults, exec::kPhaseStep})
      add(rank, phase, false);
  }
  add(kNobody, kNobody, false);
  add_up(profile);
  if (profile.interval_s > 0)
    profile.slowest_stage_s = slowest_stage(profile, plan);
}

} // namespace llmrt::tool
