#include "runtime/exec/cuda/world.h"

#include "kernels/cuda/peers.h"
#include "kernels/cuda/rank_sum.h"
#include "kernels/cuda/token_round.h"
#include "runtime/exec/cuda/meeting.h"
#include "runtime/plan/access.h"

#include <algorithm>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

// Lets kernels of the current device reach the memory of another that it can access.
void enable_access(int to) {
  int from = 0;
  LLMRT_CHECK(cudaGetDevice(&from));
  if (from == to)
    return;
  if (const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0); status == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    LLMRT_CHECK(status);
}

RankLink::RankLink(const plan::LoadedPlan &plan, uint32_t rank, const RankLinkOptions &options, comm::HostWorld &world)
    : plan_(plan), rank_(rank), options_(options), world_(world), host_(world.rank(rank)), staged_(host_),
      max_logits_rows_(plan.root().limits()->max_logits_rows()), at_(sizeof(uint32_t)) {
  *reinterpret_cast<uint32_t *>(at_.data()) = ~0u;
  for (const plan::Group *group : plan::each(plan.root().groups()))
    groups_.emplace_back(plan::each(group->ranks()).begin(), plan::each(group->ranks()).end());
  for (size_t i = 0; i < kEvents; ++i) {
    ready_.push_back(std::make_unique<Event>());
    done_.push_back(std::make_unique<Event>());
  }
  for (uint32_t g = 0; g < groups_.size(); ++g)
    if (const auto at = std::find(groups_[g].begin(), groups_[g].end(), rank); at != groups_[g].end()) {
      group_ = g;
      position_ = static_cast<int>(at - groups_[g].begin());
      join_group(g);
      scratch(scratch_bytes());
    }
  join_stages(plan);
}

void RankLink::join_group(uint32_t group) {
  std::vector<int> used;
  bool reach = true;
  for (uint32_t a : members(group)) {
    used.push_back(options_.devices[a]);
    for (uint32_t b : members(group))
      reach = reach && reachable(a, b);
  }
  // Kernels of NCCL and of pushed sums wait for other GPUs while they run. Where another rank runs on the same GPU, of this
  // group or of another stage, they can keep its kernels from being loaded or started while those are what they wait for.
  const bool shared = std::any_of(used.begin(), used.end(), [&](int device) {
    return std::count(options_.devices.begin(), options_.devices.end(), device) > 1;
  });
  const Collectives wanted = options_.collectives;
  if (wanted == Collectives::Nccl && shared)
    throw Error("--collectives nccl needs a GPU for every rank, and ranks of group " +
                plan::quoted(plan_.root().groups()->Get(group)->name()) + " share theirs: use peer, host or auto");
  if (wanted == Collectives::Peer && !reach)
    throw Error("--collectives peer needs GPUs that reach each other's memory, and those of group " +
                plan::quoted(plan_.root().groups()->Get(group)->name()) + " do not (see nvidia-smi topo -p2p r): use nccl, host or auto");
  met_ = reach && wanted != Collectives::Host;
  if (met_)
    for (int device : used)
      enable_access(device);
  if (!shared && used.size() > 1 && (wanted == Collectives::Auto || wanted == Collectives::Nccl)) {
    Offer mine;
    if (position_ == 0)
      LLMRT_CHECK(ncclGetUniqueId(&mine.id));
    const ncclUniqueId id = exchange(group, 0, mine)[0].id;
    nccl_ = std::make_unique<NcclGroup>(id, position_, static_cast<int>(used.size()), gathers_to(group), options_.deadline_s, world_,
                                        "rank " + std::to_string(rank_));
  }
  if (met_ && !shared && wanted != Collectives::Nccl) {
    join_pushed();
    join_tokens();
  }
}

int RankLink::gathers_to(uint32_t group) const {
  int to = NcclGroup::kNoGather;
  for (const plan::Op *op : plan::each(plan_.program(rank_).ops()))
    if (const plan::Gather *gather = op->op_as_Gather(); gather && gather->group() == group)
      to = static_cast<int>(gather->root());
    else if (const plan::AllGather *all = op->op_as_AllGather(); all && all->group() == group)
      return NcclGroup::kToAll;
  return to;
}

void RankLink::join_pushed() {
  const PushedSums::Size size = PushedSums::size_of(plan_, rank_, *group_);
  const int count = static_cast<int>(members(*group_).size());
  if ((size.one_bytes == 0 && size.two_bytes == 0) || count < 2 || count > k::kMaxPeers)
    return;
  bool whole_lines = true;
  for (uint32_t a : members(*group_))
    for (uint32_t b : members(*group_))
      whole_lines = whole_lines && k::whole_lines_between(options_.devices[a], options_.devices[b]);
  pushed_ = std::make_unique<PushedSums>(size, position_, count, whole_lines, reinterpret_cast<uint32_t *>(at_.data()));
  pushed_->connect(exchange_memory(pushed_->inbox()));
}

// Where the group is the whole plan, whose ranks all need the tokens.
void RankLink::join_tokens() {
  const int count = static_cast<int>(members(*group_).size());
  if (count < 2 || count > k::kMaxPeers || members(*group_).size() != plan_.num_ranks())
    return;
  tokens_ = std::make_unique<TokenRounds>(max_logits_rows_, position_, count, kTokensSeq, reinterpret_cast<uint32_t *>(at_.data()));
  tokens_->connect(exchange_memory(tokens_->box()));
}

std::vector<std::byte *> RankLink::exchange_memory(std::byte *mine) {
  Offer offer;
  offer.data = mine;
  std::vector<std::byte *> result;
  for (const Offer &other : exchange(*group_, 0, offer))
    result.push_back(other.data);
  return result;
}

// Every member's offer, in group order. Doubles as a meeting point: nobody leaves before all have come.
std::vector<RankLink::Offer> RankLink::exchange(uint32_t group, uint32_t seq, const Offer &mine) {
  const size_t count = members(group).size();
  std::vector<Offer> offers(count);
  const std::vector<uint64_t> bytes(count, sizeof(Offer));
  host_.all_gather(group, seq, {offers.data(), 1, count * sizeof(Offer), count * sizeof(Offer)},
                   {&mine, 1, sizeof(Offer), sizeof(Offer)}, bytes);
  return offers;
}

// The host communicator ends the world where members bring different numbers.
void RankLink::check_sequence(uint32_t group, uint32_t seq) {
  if (options_.check_sequence)
    exchange(group, seq, {});
}

// What the device has come to, for collectives that do not tell themselves.
void RankLink::tell(uint32_t seq, cudaStream_t stream) { k::tell_host(reinterpret_cast<uint32_t *>(at_.data()), seq, stream); }

// What the host has come to, in collectives where ranks meet there.
void RankLink::note(uint32_t seq) { *reinterpret_cast<volatile uint32_t *>(at_.data()) = seq; }

// What the program's gathers and sums will want at most, so that it is there, and counted, from the start.
size_t RankLink::scratch_bytes() const {
  int64_t most = 0;
  const auto rows_of = [&](const plan::View &view) {
    const plan::Limits &limits = *plan_.root().limits();
    return plan_.buffer(rank_, view).rows() == plan::Rows::Tokens ? std::max<int64_t>(limits.max_batched_tokens(), max_logits_rows_)
                                                                  : max_logits_rows_;
  };
  for (const plan::Op *op : plan::each(plan_.program(rank_).ops())) {
    const plan::Gather *gather = op->op_as_Gather();
    const plan::AllGather *all = op->op_as_AllGather();
    const plan::View *out = gather ? gather->out() : all ? all->out() : nullptr;
    const plan::AllReduce *sum = op->op_as_AllReduce();
    const plan::View *view = nccl_ ? out : met_ && sum ? sum->data() : nullptr;
    if (!view)
      continue;
    const int64_t row = static_cast<int64_t>(view->cols() * plan::block_bytes(plan_.buffer(rank_, *view).dtype()));
    most = std::max(most, out ? row * rows_of(*view) : std::min(row * rows_of(*view), std::max(row, kMetScratch)));
  }
  return static_cast<size_t>(most);
}

std::byte *RankLink::scratch(size_t bytes) {
  if (scratch_.size() < bytes) {
    LLMRT_CHECK(cudaDeviceSynchronize());
    scratch_ = DeviceMemory(bytes, "the scratch of collectives");
  }
  return scratch_.data();
}

bool RankLink::pushes(const DevicePart &data, const PushLimits &limits) const { return pushed_ && pushed_->takes(data, limits); }

void RankLink::all_reduce_pushed(uint32_t seq, const DevicePart &data, const PushLimits &limits, const SumNorm &norm,
                                 cudaStream_t stream) {
  check_sequence(*group_, seq);
  pushed_->all_reduce(data, limits, seq, norm, stream);
}

void RankLink::all_reduce(uint32_t group, uint32_t seq, const DevicePart &data, cudaStream_t stream) {
  if (data.rows == 0)
    return;
  check_sequence(group, seq);
  if (nccl_ && data.dense()) {
    tell(seq, stream);
    nccl_->all_reduce(data, stream);
    return;
  }
  note(seq);
  if (met_)
    sum_met(group, seq, data, stream);
  else
    staged_.all_reduce(group, seq, data, stream);
}

void RankLink::gather(uint32_t group, uint32_t seq, int root, const DevicePart &out, const DevicePart &in,
                      cudaStream_t stream) {
  if (in.rows == 0)
    return;
  check_sequence(group, seq);
  const bool receives = root < 0 || root == position_;
  if (nccl_ && in.dense()) {
    int64_t total = 0;
    const std::vector<int64_t> &columns = widths(group, in);
    for (int64_t width : columns)
      total += width;
    // As large as it will ever be: captured graphs keep the address.
    std::byte *parts =
        receives ? scratch(static_cast<size_t>(std::max(in.rows, max_logits_rows_) * total * in.size())) : nullptr;
    tell(seq, stream);
    nccl_->gather(root, out, in, columns, parts, stream);
    return;
  }
  note(seq);
  if (met_)
    gather_met(group, seq, root, out, in, stream);
  else
    staged_.gather(group, seq, root, receives, out, in, widths(group, in), stream);
}

// Widths differ by rank and are the plan's, so each member tells its own once, at the first gather.
const std::vector<int64_t> &RankLink::widths(uint32_t group, const DevicePart &in) {
  std::vector<int64_t> &columns = widths_[in.cols];
  if (columns.empty()) {
    Offer mine;
    mine.cols = in.cols;
    for (const Offer &offer : exchange(group, 0, mine))
      columns.push_back(offer.cols);
  }
  return columns;
}

bool RankLink::has_everyone(const plan::LoadedPlan &plan) {
  for (const plan::Group *group : plan::each(plan.root().groups()))
    if (plan::size_of(group->ranks()) == plan.num_ranks())
      return true;
  return false;
}

void RankLink::hand_round_tokens(int32_t *tokens, size_t count, uint32_t root, cudaStream_t stream) {
  if (count == 0)
    return;
  const std::vector<uint32_t> &ranks = members(*group_);
  const int position = static_cast<int>(std::find(ranks.begin(), ranks.end(), root) - ranks.begin());
  if (tokens_ || nccl_)
    check_sequence(*group_, kTokensSeq);
  if (tokens_)
    return tokens_->hand_round(tokens, count, position, stream);
  if (nccl_) {
    tell(kTokensSeq, stream);
    return nccl_->broadcast(tokens, count, position, stream);
  }
  if (!met_)
    return staged_.broadcast(*group_, kTokensSeq, ranks.size(), position, root == rank_, tokens, count, stream);
  tokens_met(tokens, count, position, stream);
}

void RankLink::sample_greedy(int32_t *tokens, size_t count, const OwnLogits &logits, cudaStream_t stream) {
  check_sequence(*group_, kTokensSeq);
  tokens_->sample_greedy(tokens, count, logits, stream);
}

void RankLink::stop_waiting() {
  if (pushed_)
    pushed_->give_up();
  if (tokens_)
    tokens_->give_up();
}

void RankLink::abort() {
  if (nccl_)
    nccl_->abort();
}

std::string RankLink::where() const {
  const uint32_t seq = *reinterpret_cast<volatile uint32_t *>(at_.data());
  if (seq == kTokensSeq)
    return "handing round the tokens drawn in group " + plan::quoted(plan_.root().groups()->Get(*group_)->name());
  for (const plan::Op *op : plan::each(plan_.program(rank_).ops()))
    if (const plan::CommInfo info = plan::comm_of(*op); info.is_comm && !info.is_transfer && info.seq == seq)
      return std::string("in ") + plan::name_of(op->op_type()) + " " + std::to_string(seq) + " of group " +
             plan::quoted(plan_.root().groups()->Get(info.group)->name());
  return {};
}

size_t RankLink::bytes() const {
  size_t bytes = scratch_.size() + (nccl_ ? nccl_->bytes() : 0) + (pushed_ ? pushed_->bytes() : 0) + (tokens_ ? tokens_->bytes() : 0);
  for (const auto &[peer, channel] : channels_)
    for (const DeviceMemory &slot : channel.slots)
      bytes += slot.size();
  return bytes;
}

} // namespace llmrt::exec::cuda
