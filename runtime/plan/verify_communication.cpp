// Communication: every member of a group meets the same collectives in the same order with the same numbers, sends
// and receives pair up, and all ranks' programs, run against each other, come to their ends.
#include "runtime/plan/verify_internal.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

namespace llmrt::plan {

namespace {

constexpr const char *kCollectives = "collectives";
constexpr const char *kTransfers = "transfers";

std::pair<uint32_t, uint32_t> ordered(uint32_t a, uint32_t b) { return a < b ? std::pair(a, b) : std::pair(b, a); }

// One communication op of one rank.
struct Step {
  uint32_t op;
  OpKind kind;
  CommInfo comm;
};

class Communication {
public:
  Communication(const Plan &plan, Reporter &report) : plan_(plan), report_(report) {}

  void run() {
    collect();
    groups();
    collectives();
    transfers();
    if (!broken_)
      simulate();
  }

private:
  template <typename... Parts> void bad(const char *check, uint32_t rank, uint32_t op, const Parts &...parts) {
    broken_ = true;
    report_.add(check, rank, op, plan_.programs()->Get(rank)->ops()->Get(op), cat(parts...));
  }
  const Program &program(uint32_t rank) const { return *plan_.programs()->Get(rank); }
  const Buffer &buffer(uint32_t rank, const View &view) const {
    return *program(rank).buffers()->Get(view.buffer());
  }
  void collect();
  void groups();
  void collectives();
  void compare(uint32_t group, uint32_t first_rank, const Step &first, uint32_t rank, const Step &step);
  void transfers();
  void simulate();

  const Plan &plan_;
  Reporter &report_;
  bool broken_ = false;
  std::vector<std::vector<Step>> steps_; // [rank]
};

void Communication::collect() {
  steps_.resize(size_of(plan_.programs()));
  for (uint32_t rank = 0; rank < steps_.size(); ++rank)
    for (uint32_t i = 0; i < size_of(program(rank).ops()); ++i) {
      const Op &op = *program(rank).ops()->Get(i);
      CommInfo comm = comm_of(op);
      if (comm.is_comm)
        steps_[rank].push_back({i, op.op_type(), comm});
    }
}

// A collective joins all ranks of a stage: a sum or a gather over fewer leaves a part of every weight out.
void Communication::groups() {
  std::vector<bool> used(size_of(plan_.groups()), false);
  for (uint32_t rank = 0; rank < steps_.size(); ++rank) {
    std::vector<bool> reported(used.size(), false);
    for (const Step &step : steps_[rank]) {
      if (step.comm.is_transfer || reported[step.comm.group])
        continue;
      used[step.comm.group] = true;
      // Whether this rank is in the group is found with the group's other members below; here: does it belong?
      const auto &ranks = *plan_.groups()->Get(step.comm.group)->ranks();
      if (program(ranks.Get(0)).stage() != program(rank).stage()) {
        reported[step.comm.group] = true;
        bad(kCollectives, rank, step.op, "It is of stage ", program(rank).stage(), ", and group ",
            quoted(plan_.groups()->Get(step.comm.group)->name()), " of stage ", program(ranks.Get(0)).stage(), ".");
      }
    }
  }
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      continue;
    const Group &group = *plan_.groups()->Get(i);
    uint32_t stage = program(group.ranks()->Get(0)).stage();
    bool one_stage = true;
    for (uint32_t rank : *group.ranks())
      one_stage &= program(rank).stage() == stage;
    if (!one_stage || group.ranks()->size() != plan_.tp()) {
      broken_ = true;
      report_.add(kCollectives, -1,
                  cat("Group ", quoted(group.name()), " has ", group.ranks()->size(), " ranks",
                      one_stage ? "" : " of several stages", "; a collective joins all ", plan_.tp(),
                      " ranks of one stage."));
    }
  }
}

void Communication::compare(uint32_t group, uint32_t first_rank, const Step &first, uint32_t rank, const Step &step) {
  auto differs = [&](const char *what, const auto &here, const auto &there) {
    bad(kCollectives, rank, step.op, "Its ", what, " is ", here, ", and on rank ", first_rank, " (op ", first.op,
        ") the same collective of group ", quoted(plan_.groups()->Get(group)->name()), " has ", there, ".");
  };
  if (step.kind != first.kind)
    return differs("kind", name_of(step.kind), name_of(first.kind));
  if (step.comm.seq != first.comm.seq)
    return differs("seq", step.comm.seq, first.comm.seq);
  if (step.comm.comm != first.comm.comm)
    return differs("communicator", name_of(step.comm.comm), name_of(first.comm.comm));
  if (step.comm.algorithm != first.comm.algorithm)
    return differs("algorithm", name_of(step.comm.algorithm), name_of(first.comm.algorithm));
  if (step.comm.one_shot_bytes != first.comm.one_shot_bytes)
    return differs("one_shot_bytes", step.comm.one_shot_bytes, first.comm.one_shot_bytes);
  if (step.comm.two_shot_bytes != first.comm.two_shot_bytes)
    return differs("two_shot_bytes", step.comm.two_shot_bytes, first.comm.two_shot_bytes);
  if (step.comm.root != first.comm.root)
    return differs("root", step.comm.root, first.comm.root);
  const Buffer &here = buffer(rank, *step.comm.payload), &there = buffer(first_rank, *first.comm.payload);
  if (here.dtype() != there.dtype())
    return differs("data type", name_of(here.dtype()), name_of(there.dtype()));
  if (here.rows() != there.rows())
    return differs("kind of rows", name_of(here.rows()), name_of(there.rows()));
  // Members choose the way that data goes by how their own rows lie (alignment, gaps): all have to find the same.
  if (step.kind == OpKind::AllReduce) {
    if (step.comm.payload->cols() != first.comm.payload->cols())
      return differs("column count", step.comm.payload->cols(), first.comm.payload->cols());
    if (here.cols() != there.cols())
      return differs("row stride", here.cols(), there.cols());
    if (step.comm.payload->col() != first.comm.payload->col())
      differs("first column", step.comm.payload->col(), first.comm.payload->col());
    return;
  }
  auto rows = [](const View &view, const Buffer &in) { return view.cols() == in.cols() ? "rows without gaps" : "rows with gaps"; };
  if (const char *own = rows(*step.comm.payload, here), *other = rows(*first.comm.payload, there); own != std::string_view(other))
    return differs("input's form", own, other);
  for (uint32_t i = 0; i < step.comm.counts->size(); ++i)
    if (step.comm.counts->Get(i) != first.comm.counts->Get(i))
      return differs(cat("count for member ", i).c_str(), step.comm.counts->Get(i), first.comm.counts->Get(i));
}

void Communication::collectives() {
  // [group] → the members' collectives, found by walking each rank once.
  std::vector<std::vector<std::vector<const Step *>>> by_group(size_of(plan_.groups()));
  std::vector<std::map<uint32_t, uint32_t>> place(by_group.size()); // rank → position
  for (uint32_t g = 0; g < by_group.size(); ++g) {
    const auto &ranks = *plan_.groups()->Get(g)->ranks();
    by_group[g].resize(ranks.size());
    for (uint32_t i = 0; i < ranks.size(); ++i)
      place[g][ranks.Get(i)] = i;
  }
  for (uint32_t rank = 0; rank < steps_.size(); ++rank)
    for (const Step &step : steps_[rank]) {
      if (step.comm.is_transfer)
        continue;
      uint32_t g = step.comm.group;
      auto at = place[g].find(rank);
      if (at == place[g].end()) {
        bad(kCollectives, rank, step.op, "This rank is not a member of group ", quoted(plan_.groups()->Get(g)->name()),
            ".");
        continue;
      }
      auto &own = by_group[g][at->second];
      if (!own.empty() && step.comm.seq <= own.back()->comm.seq)
        bad(kCollectives, rank, step.op, "Its seq is ", step.comm.seq, " after ", own.back()->comm.seq,
            " in the same group; numbers rise.");
      own.push_back(&step);
      if (step.kind == OpKind::Gather) {
        bool is_root = at->second == step.comm.root;
        bool has_out = plan_.programs()->Get(rank)->ops()->Get(step.op)->op_as_Gather()->out() != nullptr;
        if (is_root != has_out)
          bad(kCollectives, rank, step.op, "It is ", is_root ? "" : "not ", "the root and has ", has_out ? "an" : "no",
              " out; exactly the root receives.");
      }
    }
  for (uint32_t g = 0; g < by_group.size(); ++g) {
    const auto &ranks = *plan_.groups()->Get(g)->ranks();
    const auto &first = by_group[g].front();
    for (uint32_t i = 1; i < by_group[g].size(); ++i) {
      const auto &own = by_group[g][i];
      if (own.size() != first.size()) {
        broken_ = true;
        report_.add(kCollectives, ranks.Get(i),
                    cat("It meets ", own.size(), " collectives of group ", quoted(plan_.groups()->Get(g)->name()),
                        ", and rank ", ranks.Get(0), " meets ", first.size(), "; every member meets all of them."));
      }
      for (size_t k = 0; k < std::min(own.size(), first.size()); ++k)
        compare(g, ranks.Get(0), *first[k], ranks.Get(i), *own[k]);
    }
  }
}

void Communication::transfers() {
  struct Pair {
    std::vector<const Step *> sends, recvs;
  };
  std::map<std::pair<uint32_t, uint32_t>, Pair> pairs; // (from, to)
  for (uint32_t rank = 0; rank < steps_.size(); ++rank)
    for (const Step &step : steps_[rank]) {
      if (step.kind == OpKind::Send)
        pairs[{rank, step.comm.peer}].sends.push_back(&step);
      else if (step.kind == OpKind::Recv)
        pairs[{step.comm.peer, rank}].recvs.push_back(&step);
    }
  for (const auto &[ends, pair] : pairs) {
    auto [from, to] = ends;
    if (pair.sends.size() != pair.recvs.size()) {
      broken_ = true;
      report_.add(kTransfers, from,
                  cat("It sends ", pair.sends.size(), " times to rank ", to, ", which receives ", pair.recvs.size(),
                      " times from it; every send meets one recv."));
    }
    for (size_t i = 0; i < std::min(pair.sends.size(), pair.recvs.size()); ++i) {
      const Step &send = *pair.sends[i], &recv = *pair.recvs[i];
      const Buffer &sent = buffer(from, *send.comm.payload), &got = buffer(to, *recv.comm.payload);
      if (send.comm.seq != recv.comm.seq || (i > 0 && send.comm.seq <= pair.sends[i - 1]->comm.seq))
        bad(kTransfers, from, send.op, "Its seq is ", send.comm.seq, ", and the recv it meets (rank ", to, ", op ",
            recv.op, ") has ", recv.comm.seq, "; both count the transfers of the pair, rising.");
      if (send.comm.comm != recv.comm.comm)
        bad(kTransfers, from, send.op, "Its communicator is ", name_of(send.comm.comm), ", and that of the recv (rank ",
            to, ", op ", recv.op, ") is ", name_of(recv.comm.comm), ".");
      if (send.comm.payload->cols() != recv.comm.payload->cols() || sent.dtype() != got.dtype() ||
          sent.rows() != got.rows())
        bad(kTransfers, from, send.op, "It sends ", name_of(sent.dtype()), " [", name_of(sent.rows()), " × ",
            send.comm.payload->cols(), "], and rank ", to, " (op ", recv.op, ") receives ", name_of(got.dtype()), " [",
            name_of(got.rows()), " × ", recv.comm.payload->cols(), "].");
    }
  }
}

// Runs all ranks' communication ops against each other. Nothing is buffered: a send waits for its recv, a
// collective for all members. Each step is looked at once when its rank reaches it, so the work is linear.
void Communication::simulate() {
  uint32_t ranks = uint32_t(steps_.size());
  std::vector<size_t> next(ranks, 0), counted(ranks, 0); // counted: collectives' arrivals, as next + 1
  std::vector<uint32_t> arrived(size_of(plan_.groups()), 0);
  std::deque<uint32_t> ready;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    ready.push_back(rank);
  auto advance = [&](uint32_t rank) {
    ++next[rank];
    ready.push_back(rank);
  };
  auto waits = [&](uint32_t rank, OpKind kind, uint32_t peer) {
    if (next[rank] == steps_[rank].size())
      return false;
    const Step &step = steps_[rank][next[rank]];
    return step.kind == kind && step.comm.peer == peer;
  };
  while (!ready.empty()) {
    uint32_t rank = ready.front();
    ready.pop_front();
    if (next[rank] == steps_[rank].size())
      continue;
    const Step &step = steps_[rank][next[rank]];
    if (step.comm.is_transfer) {
      OpKind other = step.kind == OpKind::Send ? OpKind::Recv : OpKind::Send;
      uint32_t peer = step.comm.peer;
      if (waits(peer, other, rank)) {
        advance(rank);
        advance(peer);
      }
      continue;
    }
    if (counted[rank] == next[rank] + 1)
      continue; // it stood in the queue twice
    counted[rank] = next[rank] + 1;
    const auto &members = *plan_.groups()->Get(step.comm.group)->ranks();
    if (++arrived[step.comm.group] == members.size()) {
      arrived[step.comm.group] = 0;
      for (uint32_t member : members)
        advance(member);
    }
  }
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if (next[rank] < steps_[rank].size()) {
      const Step &step = steps_[rank][next[rank]];
      bad(step.comm.is_transfer ? kTransfers : kCollectives, rank, step.op, "It never completes: ",
          step.comm.is_transfer ? cat("rank ", step.comm.peer, " waits for something else")
                                : cat("not every member of group ",
                                      quoted(plan_.groups()->Get(step.comm.group)->name()), " comes to it"),
          "; the programs wait for each other in a circle.");
    }
}

} // namespace

void verify_communication(const Plan &plan, Reporter &report) { Communication(plan, report).run(); }

void verify_topology(const Plan &plan, Reporter &report) {
  constexpr const char *kTopology = "topology";
  const Topology &topology = *plan.topology();
  std::map<std::pair<uint32_t, uint32_t>, bool> links; // (lower, higher device) → p2p
  for (const Link *link : each(topology.links()))
    links[ordered(link->a(), link->b())] |= link->p2p();

  auto check = [&](uint32_t a, uint32_t b, Comm comm, const std::string &who) {
    uint32_t from = plan.programs()->Get(a)->device(), to = plan.programs()->Get(b)->device();
    if (from == to)
      return;
    const Device &da = *topology.devices()->Get(from), &db = *topology.devices()->Get(to);
    // CPU devices of one host share its memory; no link needs to say so.
    if (comm == Comm::Host && da.kind() == DeviceKind::Cpu && db.kind() == DeviceKind::Cpu && da.host() == db.host())
      return;
    auto link = links.find(ordered(from, to));
    if (link == links.end())
      report.add(kTopology, a,
                 cat("It communicates with rank ", b, " (", who, "), and the topology has no link between their devices ",
                     quoted(da.id()), " and ", quoted(db.id()), "."));
    else if (comm == Comm::Peer && !link->second)
      report.add(kTopology, a,
                 cat("It communicates with rank ", b, " (", who, ") by peer access, and the link between devices ",
                     quoted(da.id()), " and ", quoted(db.id()), " has none; use nccl or host there."));
  };
  // Every pair of ranks once per communicator, whatever the number of ops and groups between them: a group that is
  // not a whole stage has been refused above.
  std::map<std::tuple<uint32_t, uint32_t, Comm>, bool> done;
  std::map<std::pair<uint32_t, Comm>, bool> stages_done;
  auto check_group = [&](const Program &program, uint32_t index, Comm comm) {
    const Group &group = *plan.groups()->Get(index);
    if (group.ranks()->size() != plan.tp() || std::exchange(stages_done[{program.stage(), comm}], true))
      return;
    for (uint32_t i = 0; i < group.ranks()->size(); ++i)
      for (uint32_t j = i + 1; j < group.ranks()->size(); ++j) {
        auto [low, high] = ordered(group.ranks()->Get(i), group.ranks()->Get(j));
        if (!std::exchange(done[{low, high, comm}], true))
          check(low, high, comm, cat("group ", view_of(group.name()).substr(0, 80)));
      }
  };
  for (const Program *program : *plan.programs())
    for (const Op *op : *program->ops()) {
      CommInfo comm = comm_of(*op);
      if (!comm.is_comm)
        continue;
      if (comm.is_transfer) {
        auto [low, high] = ordered(program->rank(), comm.peer);
        if (!std::exchange(done[{low, high, comm.comm}], true))
          check(low, high, comm.comm, name_of(op->op_type()));
        continue;
      }
      check_group(*program, comm.group, comm.comm);
      if (comm.one_shot_bytes != 0 || comm.two_shot_bytes != 0)
        check_group(*program, comm.group, Comm::Peer); // kernels write to all members
    }
}

} // namespace llmrt::plan
