// Collectives and messages of one rank over the shared state.
#include "runtime/comm/host_communicator.h"

#include <algorithm>
#include <cstring>

#include "runtime/comm/ordered_sum.h"

namespace llmrt::comm {

namespace {

constexpr size_t kMaxMembersOnStack = 64;

// Copies `rows` rows of one member's columns to their place in a result.
void copy_part(const Call &source, void *out, size_t out_stride, size_t row_begin, size_t row_end) {
  auto *to = static_cast<std::byte *>(out) + source.part_offset;
  const auto *from = static_cast<const std::byte *>(source.in);
  if (to == from || source.part_bytes == 0)
    return;
  for (size_t row = row_begin; row < row_end; ++row)
    std::memcpy(to + row * out_stride, from + row * source.in_stride, source.part_bytes);
}

// [begin, end) of n things for member i of `members`, in whole units of `grain`.
std::pair<size_t, size_t> share(size_t n, size_t i, size_t members, size_t grain) {
  const size_t units = (n + grain - 1) / grain;
  return {std::min(n, units * i / members * grain), std::min(n, units * (i + 1) / members * grain)};
}

void sum_rows(const Group &group, size_t row_begin, size_t row_end, size_t col_begin, size_t col_end) {
  SumOperand on_stack[kMaxMembersOnStack];
  std::vector<SumOperand> on_heap;
  SumOperand *operands = on_stack;
  if (group.members.size() > kMaxMembersOnStack) {
    on_heap.resize(group.members.size());
    operands = on_heap.data();
  }
  for (size_t m = 0; m < group.members.size(); ++m) {
    const Call &theirs = group.members[m].call;
    operands[m] = {static_cast<float *>(theirs.out), theirs.out_stride / sizeof(float)};
  }
  ordered_sum({operands, group.members.size()}, row_begin, row_end, col_begin, col_end);
}

} // namespace

HostCommunicator::HostCommunicator(HostState &state, uint32_t rank)
    : state_(state), rank_(rank), seats_(state.groups.size()), outgoing_(state.ranks.size()),
      incoming_(state.ranks.size()) {
  for (size_t g = 0; g < state.groups.size(); ++g) {
    Group &group = *state.groups[g];
    const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
    if (found != group.ranks.end())
      seats_[g] = {&group, static_cast<uint32_t>(found - group.ranks.begin())};
  }
  for (const auto &channel : state.channels) {
    if (channel->from() == rank)
      outgoing_[channel->to()] = channel.get();
    if (channel->to() == rank)
      incoming_[channel->from()] = channel.get();
  }
}

void HostCommunicator::fail(const std::string &why) {
  state_.abort(why);
  state_.throw_aborted();
}

void HostCommunicator::beat() {
  std::atomic<uint64_t> &beats = state_.ranks[rank_].beats;
  beats.store(beats.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (state_.dead.load(std::memory_order_acquire))
    state_.throw_aborted();
}

const HostCommunicator::Seat &HostCommunicator::seat(uint32_t group, Kind kind) {
  if (group >= seats_.size() || !seats_[group].group)
    fail("rank " + std::to_string(rank_) + " was asked for " + kind_name(kind) + " in group " +
         std::to_string(group) + ", of which it is no member: compile the plan again");
  return seats_[group];
}

HostChannel &HostCommunicator::channel(uint32_t from, uint32_t to, Kind kind) {
  const uint32_t peer = kind == Kind::Send ? to : from;
  HostChannel *found =
      peer < outgoing_.size() ? (kind == Kind::Send ? outgoing_ : incoming_)[peer] : nullptr;
  if (!found)
    fail("rank " + std::to_string(rank_) + " was asked to " + kind_name(kind) + " with rank " +
         std::to_string(peer) + ", but no channel joins them: compile the plan again");
  return *found;
}

Call HostCommunicator::call_of(Kind kind, uint32_t seq, uint64_t rows, uint64_t row_bytes) const {
  Call call;
  call.kind = kind;
  call.seq = seq;
  call.step = step_;
  call.rows = rows;
  call.row_bytes = row_bytes;
  return call;
}

void HostCommunicator::trace(const Call &call, uint32_t with) {
  if (!state_.trace)
    return;
  RankState &mine = state_.ranks[rank_];
  std::lock_guard lock(mine.trace_mutex);
  mine.trace[mine.traced++ % mine.trace.size()] = {call.kind, call.seq, with, call.step, call.rows, call.row_bytes};
}

std::string HostCommunicator::standstill(const Seat &seat) const {
  const Group &group = *seat.group;
  const uint32_t mine = group.members[seat.position].arrivals.load(std::memory_order_relaxed);
  std::string missing;
  for (size_t m = 0; m < group.members.size(); ++m)
    if (static_cast<int32_t>(group.members[m].arrivals.load(std::memory_order_acquire) - mine) < 0)
      missing += (missing.empty() ? "" : ", ") + std::to_string(group.ranks[m]);
  return "rank " + std::to_string(rank_) + " waited " +
         std::to_string(std::chrono::duration<double>(state_.timeout).count()) + " s in " +
         describe(group.members[seat.position].call) + " of group '" + group.name + "' for " +
         (missing.empty() ? "members that came but did not finish" : "rank " + missing) +
         "; no rank has made progress since, so the group ends (raise the collective timeout if the machine is only "
         "slow)";
}

void HostCommunicator::check_agreement(const Group &group) {
  const Call &first = group.members[0].call;
  for (size_t m = 1; m < group.members.size(); ++m)
    if (!first.agrees(group.members[m].call))
      fail("ranks of group '" + group.name + "' disagree: rank " + std::to_string(group.ranks[0]) + " is at " +
           describe(first) + ", rank " + std::to_string(group.ranks[m]) + " at " +
           describe(group.members[m].call) + ": compile the plan again");
  if (first.kind != Kind::AllGather && first.kind != Kind::Gather)
    return;
  uint64_t offset = 0;
  for (size_t m = 0; m < group.members.size(); ++m) {
    const Call &call = group.members[m].call;
    if (call.part_offset != offset)
      fail("ranks of group '" + group.name + "' disagree about the counts of " + describe(call) + ": rank " +
           std::to_string(group.ranks[m]) + " puts its part at byte " + std::to_string(call.part_offset) +
           " of a row, the others at " + std::to_string(offset) + ": compile the plan again");
    offset += call.part_bytes;
  }
}

template <typename Work> void HostCommunicator::meet(const Seat &seat, const Call &call, Work &&at_last) {
  Group &group = *seat.group;
  Member &me = group.members[seat.position];
  const uint32_t seen = group.phase.load();
  if (WaitWord::is_closed(seen))
    state_.throw_aborted();
  me.call = call;
  me.arrivals.store(me.arrivals.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (group.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == group.members.size()) {
    check_agreement(group);
    group.arrived.store(0, std::memory_order_relaxed);
    at_last();
    group.phase.advance();
    return;
  }
  state_.wait(group.phase, seen, [&] { return standstill(seat); });
}

// The second meeting of a large collective: nobody goes on before all have done their share.
void HostCommunicator::part(const Seat &seat) {
  Group &group = *seat.group;
  const uint32_t seen = group.phase.load();
  if (group.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == group.members.size()) {
    group.arrived.store(0, std::memory_order_relaxed);
    group.phase.advance();
    return;
  }
  state_.wait(group.phase, seen, [&] { return standstill(seat); });
}

void HostCommunicator::all_reduce(uint32_t group_index, uint32_t seq, float *data, size_t rows, size_t cols,
                                  size_t stride) {
  const Seat &my = seat(group_index, Kind::AllReduce);
  Group &group = *my.group;
  if (rows == 0 || cols == 0 || group.members.size() == 1)
    return beat();
  Call call = call_of(Kind::AllReduce, seq, rows, cols * sizeof(float));
  call.out = data;
  call.out_stride = stride * sizeof(float);
  trace(call, group_index);

  const size_t members = group.members.size();
  if (rows * call.row_bytes * members <= state_.small_bytes) {
    meet(my, call, [&] { sum_rows(group, 0, rows, 0, cols); });
  } else {
    meet(my, call, [] {});
    if (rows >= 4 * members) {
      const auto [begin, end] = share(rows, my.position, members, 1);
      sum_rows(group, begin, end, 0, cols);
    } else {
      const auto [begin, end] = share(cols, my.position, members, 16);
      sum_rows(group, 0, rows, begin, end);
    }
    part(my);
  }
  beat();
}

Call HostCommunicator::gather_call(Kind kind, uint32_t seq, uint32_t root, const Seat &my, const Block &out,
                                   const ConstBlock &in, std::span<const uint64_t> part_bytes) {
  const Group &group = *my.group;
  Call call = call_of(kind, seq, in.rows, 0); // the parts add up to its row
  call.root = root;
  call.in = in.data;
  call.in_stride = in.stride;
  const bool receives = kind == Kind::AllGather || my.position == root;
  if (receives) {
    call.out = out.data;
    call.out_stride = out.stride;
  }
  if (part_bytes.size() == group.members.size()) {
    for (size_t m = 0; m < part_bytes.size(); ++m) {
      if (m == my.position)
        call.part_offset = call.row_bytes;
      call.row_bytes += part_bytes[m];
    }
    call.part_bytes = part_bytes[my.position];
  }
  if (part_bytes.size() != group.members.size() || call.part_bytes != in.row_bytes || root >= group.members.size() ||
      (receives && (out.rows != in.rows || out.row_bytes != call.row_bytes)))
    fail("rank " + std::to_string(rank_) + " gives " + std::to_string(in.row_bytes) + " of " +
         std::to_string(out.row_bytes) + " bytes a row to " + describe(call) + " of group '" + group.name +
         "', which does not fit its " + std::to_string(part_bytes.size()) + " counts: compile the plan again");
  return call;
}

void HostCommunicator::run_gather(const Seat &my, const Call &call) {
  Group &group = *my.group;
  const size_t members = group.members.size();
  // Member `from` writes its columns into every result there is.
  const auto deal = [&](size_t from, size_t row_begin, size_t row_end) {
    for (size_t to = 0; to < members; ++to)
      if (const Call &theirs = group.members[to].call; theirs.out)
        copy_part(group.members[from].call, theirs.out, theirs.out_stride, row_begin, row_end);
  };
  const size_t receivers = call.kind == Kind::AllGather ? members : 1;
  if (call.rows * call.row_bytes * receivers <= state_.small_bytes) {
    meet(my, call, [&] {
      for (size_t from = 0; from < members; ++from)
        deal(from, 0, call.rows);
    });
  } else {
    meet(my, call, [] {});
    deal(my.position, 0, call.rows);
    part(my);
  }
}

void HostCommunicator::all_gather(uint32_t group, uint32_t seq, const Block &out, const ConstBlock &in,
                                  std::span<const uint64_t> part_bytes) {
  const Seat &my = seat(group, Kind::AllGather);
  const Call call = gather_call(Kind::AllGather, seq, 0, my, out, in, part_bytes);
  if (call.rows != 0) {
    trace(call, group);
    run_gather(my, call);
  }
  beat();
}

void HostCommunicator::gather(uint32_t group, uint32_t seq, uint32_t root, const Block &out, const ConstBlock &in,
                              std::span<const uint64_t> part_bytes) {
  const Seat &my = seat(group, Kind::Gather);
  const Call call = gather_call(Kind::Gather, seq, root, my, out, in, part_bytes);
  if (call.rows != 0) {
    trace(call, group);
    run_gather(my, call);
  }
  beat();
}

void HostCommunicator::send(uint32_t peer, uint32_t seq, const ConstBlock &in) {
  HostChannel &to = channel(rank_, peer, Kind::Send);
  const Call call = call_of(Kind::Send, seq, in.rows, in.row_bytes);
  if (in.rows != 0) {
    trace(call, peer);
    if (in.rows * in.row_bytes > to.slot_bytes())
      fail("rank " + std::to_string(rank_) + " has " + std::to_string(in.rows * in.row_bytes) + " bytes for " +
           describe(call) + " to rank " + std::to_string(peer) + ", more than the channel's " +
           std::to_string(to.slot_bytes()) + ": compile the plan again");
    to.put({step_, seq, in.rows, in.row_bytes}, in, [&](WaitWord &word, uint32_t seen) {
      state_.wait(word, seen, [&] {
        return "rank " + std::to_string(rank_) + " waited " +
               std::to_string(std::chrono::duration<double>(state_.timeout).count()) + " s in " + describe(call) +
               " for rank " + std::to_string(peer) +
               " to receive what was sent before; no rank has made progress since, so the group ends";
      });
    });
  }
  beat();
}

void HostCommunicator::recv(uint32_t peer, uint32_t seq, const Block &out) {
  HostChannel &from = channel(peer, rank_, Kind::Recv);
  const Call call = call_of(Kind::Recv, seq, out.rows, out.row_bytes);
  if (out.rows != 0) {
    trace(call, peer);
    const MessageTag tag = from.front([&](WaitWord &word, uint32_t seen) {
      state_.wait(word, seen, [&] {
        return "rank " + std::to_string(rank_) + " waited " +
               std::to_string(std::chrono::duration<double>(state_.timeout).count()) + " s in " + describe(call) +
               " for rank " + std::to_string(peer) +
               " to send; no rank has made progress since, so the group ends (raise the collective timeout if the "
               "machine is only slow)";
      });
    });
    if (tag != MessageTag{step_, seq, out.rows, out.row_bytes}) {
      Call theirs = call;
      theirs.kind = Kind::Send;
      theirs.seq = tag.seq;
      theirs.step = tag.step;
      theirs.rows = tag.rows;
      theirs.row_bytes = tag.row_bytes;
      fail("rank " + std::to_string(rank_) + " is at " + describe(call) + ", but rank " + std::to_string(peer) +
           " sent it " + describe(theirs) + ": compile the plan again");
    }
    from.empty(out);
  }
  beat();
}

} // namespace llmrt::comm
