// Builds the shared state of a process's ranks and ends it when one of them fails.
#include "runtime/comm/host_world.h"

#include <algorithm>
#include <set>

#include "runtime/comm/host_communicator.h"

namespace llmrt::comm {

const char *kind_name(Kind kind) {
  switch (kind) {
  case Kind::None:
    return "nothing";
  case Kind::AllReduce:
    return "all_reduce";
  case Kind::AllGather:
    return "all_gather";
  case Kind::Gather:
    return "gather";
  case Kind::Send:
    return "send";
  case Kind::Recv:
    return "recv";
  }
  return "?";
}

std::string describe(const Call &call) {
  return std::string(kind_name(call.kind)) + " " + std::to_string(call.seq) + " of step " +
         std::to_string(call.step) + " (" + std::to_string(call.rows) + " rows of " +
         std::to_string(call.row_bytes) + " bytes)";
}

uint64_t HostState::life_signs() const {
  uint64_t sum = 0;
  for (const RankState &rank : ranks)
    sum += rank.beats.load(std::memory_order_relaxed);
  return sum;
}

void HostState::throw_aborted() const {
  std::lock_guard lock(reason_mutex);
  throw Aborted(reason);
}

void HostState::abort(const std::string &why) {
  {
    std::lock_guard lock(reason_mutex);
    if (!reason.empty())
      return;
    reason = why;
    if (trace) {
      reason += " [latest operations:";
      for (size_t r = 0; r < ranks.size(); ++r) {
        reason += (r ? "; rank " : " rank ") + std::to_string(r) + ":";
        std::lock_guard ring(ranks[r].trace_mutex);
        const uint64_t kept = std::min<uint64_t>(ranks[r].traced, ranks[r].trace.size());
        for (uint64_t i = ranks[r].traced - kept; i < ranks[r].traced; ++i) {
          const TraceEntry &entry = ranks[r].trace[i % ranks[r].trace.size()];
          reason += std::string(" ") + kind_name(entry.kind) + " " + std::to_string(entry.seq) + " step " +
                    std::to_string(entry.step) + " with " + std::to_string(entry.with) + ",";
        }
        if (reason.back() == ',')
          reason.pop_back();
      }
      reason += "]";
    }
  }
  dead.store(true, std::memory_order_release);
  for (const auto &group : groups)
    group->phase.close();
  for (const auto &channel : channels)
    channel->close();
}

namespace {

class World final : public HostWorld {
public:
  explicit World(const HostWorldOptions &options) : state_(options.ranks) {
    using namespace std::chrono_literals;
    state_.timeout = std::clamp<std::chrono::nanoseconds>(options.timeout, 1ms, 24h);
    // A waiting rank that spins takes the core from the rank it waits for, unless there are cores to spare.
    state_.patience = options.cores_to_spare ? WaitWord::Patience{30us, false} : WaitWord::Patience{100us, true};
    state_.small_bytes = options.cores_to_spare ? 64 << 10 : 256 << 10;
    state_.trace = options.trace;
    for (const GroupSpec &spec : options.groups)
      add_group(spec, options.ranks);
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    for (const ChannelSpec &spec : options.channels) {
      if (spec.from >= options.ranks || spec.to >= options.ranks || spec.from == spec.to || spec.slots == 0 ||
          !pairs.insert({spec.from, spec.to}).second)
        throw Error("channel from rank " + std::to_string(spec.from) + " to rank " + std::to_string(spec.to) +
                    " with " + std::to_string(spec.slots) + " slots is not possible, or is there twice, among " +
                    std::to_string(options.ranks) + " ranks");
      state_.channels.push_back(std::make_unique<HostChannel>(spec.from, spec.to, spec.slots, spec.slot_bytes));
    }
    for (uint32_t r = 0; r < options.ranks; ++r)
      ranks_.push_back(std::make_unique<HostCommunicator>(state_, r));
  }

  Communicator &rank(uint32_t rank) override { return *ranks_.at(rank); }
  void abort(const std::string &why) override { state_.abort(why); }
  bool aborted() const override { return state_.dead.load(std::memory_order_acquire); }
  std::string reason() const override {
    std::lock_guard lock(state_.reason_mutex);
    return state_.reason;
  }
  uint64_t life_signs() const override { return state_.life_signs(); }
  uint64_t channel_bytes(uint32_t rank) const override {
    uint64_t bytes = 0;
    for (const auto &channel : state_.channels)
      bytes += channel->from() == rank ? channel->bytes() : 0;
    return bytes;
  }

private:
  void add_group(const GroupSpec &spec, uint32_t ranks) {
    std::set<uint32_t> distinct(spec.ranks.begin(), spec.ranks.end());
    if (spec.ranks.empty() || distinct.size() != spec.ranks.size() || *distinct.rbegin() >= ranks)
      throw Error("group '" + spec.name + "' of " + std::to_string(spec.ranks.size()) +
                  " members is empty, names a rank twice, or one beyond the " + std::to_string(ranks) + " ranks");
    auto group = std::make_unique<Group>();
    group->name = spec.name;
    group->ranks = spec.ranks;
    group->members = std::vector<Member>(spec.ranks.size());
    state_.groups.push_back(std::move(group));
  }

  HostState state_;
  std::vector<std::unique_ptr<HostCommunicator>> ranks_;
};

} // namespace

std::unique_ptr<HostWorld> HostWorld::create(const HostWorldOptions &options) {
  if (options.ranks == 0)
    throw Error("a world needs at least one rank, and none was given");
  return std::make_unique<World>(options);
}

} // namespace llmrt::comm
