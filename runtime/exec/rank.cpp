// A rank's memory and its step loop; and the communication structure that a plan's ops imply.
#include "runtime/exec/rank.h"

#include <algorithm>
#include <map>

#include "runtime/exec/step_observer.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {
std::string purpose(const char *what, uint32_t rank) { return std::string(what) + " of rank " + std::to_string(rank); }
} // namespace

Rank::Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, WeightPlaces places, uint32_t num_pages, int threads)
    : plan_(std::move(plan)), rank_(rank), places_(std::move(places)), weights_(places_.bytes, purpose("the weights", rank)),
      arena_(plan_->program(rank).arena_bytes(), purpose("the activations", rank)),
      kv_(kv_page_bytes(*plan_, rank) * num_pages, purpose("the KV pages", rank)), team_(threads),
      program_(prepare(*plan_, rank, RankBases{weights_.data(), arena_.data(), kv_.data(), &places_, num_pages}, threads)) {
  team_.scratch(program_.team_scratch);
}

void Rank::ready(comm::Communicator &comm) {
  comm_ = &comm;
  program_.widen_vectors();
}

void Rank::run(const Step &step) {
  const RankContext context{team_, *comm_};
  StepObserver *const observer = step.batch->observer;
  const uint64_t id = step.batch->id;
  const ObservedSpan whole(observer, id, rank_, kPhaseStep);
  size_t at = 0;
  try {
    comm_->begin_step(id);
    for (const RopeAngles &angles : program_.angles) {
      const ObservedSpan span(observer, id, rank_, kPhaseAngles);
      exec::run(angles, step, context);
    }
    for (; at < program_.ops.size(); ++at) {
      const ObservedSpan span(observer, id, rank_, program_.plan_op[at]);
      exec::run(program_.ops[at], step, context);
      comm_->beat();
    }
  } catch (const comm::Aborted &) {
    throw;
  } catch (const std::exception &e) {
    throw Error("rank " + std::to_string(rank_) + " failed in step " + std::to_string(step.batch->id) + " at " +
                (at < program_.ops.size() ? op_label(plan_->program(rank_), program_.plan_op[at]) : "its end") + ": " +
                e.what());
  }
}

LogitsView Rank::logits(const Step &step) const {
  if (!program_.logits.data || step.logits_rows() == 0)
    return {nullptr, 0, static_cast<size_t>(program_.logits.cols)};
  return {program_.logits.data, static_cast<size_t>(step.logits_rows()), static_cast<size_t>(program_.logits.cols)};
}

RankMemory Rank::memory() const {
  RankMemory memory;
  memory.rank = rank_;
  memory.weights = weights_.mapped();
  memory.arena = arena_.mapped();
  memory.workspace = team_.scratch_bytes() + program_.extra_bytes();
  memory.kv = kv_.mapped();
  return memory;
}

uint64_t kv_page_bytes(const plan::LoadedPlan &plan, uint32_t rank) {
  const plan::KvCache *kv = plan.program(rank).kv();
  return kv ? kv->page_bytes() : 0;
}

comm::HostWorldOptions world_of(const plan::LoadedPlan &plan) {
  comm::HostWorldOptions options;
  options.ranks = plan.num_ranks();
  for (const plan::Group *group : plan::each(plan.root().groups())) {
    comm::GroupSpec spec;
    spec.name = std::string(plan::view_of(group->name()));
    spec.ranks.assign(plan::each(group->ranks()).begin(), plan::each(group->ranks()).end());
    options.groups.push_back(std::move(spec));
  }
  // A channel for every pair that sends, with room for two steps' messages: the sender can finish a step while the
  // receiver still works on the one before.
  std::map<std::pair<uint32_t, uint32_t>, comm::ChannelSpec> channels;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    for (const plan::Op *op : plan::each(plan.program(rank).ops()))
      if (const plan::Send *send = op->op_as_Send()) {
        const plan::Buffer &buffer = plan.buffer(rank, *send->input());
        comm::ChannelSpec &channel = channels[{rank, send->peer()}];
        if (channel.slot_bytes == 0)
          channel = {rank, send->peer(), 0, 0};
        channel.slots += 2;
        channel.slot_bytes =
            std::max<uint64_t>(channel.slot_bytes, uint64_t{plan.max_rows(buffer.rows())} * send->input()->cols() *
                                                       plan::block_bytes(buffer.dtype()));
      }
  for (const auto &[pair, channel] : channels)
    options.channels.push_back(channel);
  return options;
}

} // namespace llmrt::exec
