#include "runtime/exec/placement.h"

#include "runtime/plan/access.h"
#include "runtime/support/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace llmrt::exec {

namespace {

const plan::Device &device_of(const plan::LoadedPlan &plan, uint32_t rank) {
  return *plan.root().topology()->devices()->Get(plan.program(rank).device());
}

std::string capability_text(unsigned capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

std::string size_text(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

// "0000:1B:00.0" of CUDA is "00000000:1b:00.0" of nvidia-smi: without its leading zeros, in small letters.
std::string plain_pci(std::string_view id) {
  id.remove_prefix(std::min(id.find_first_not_of('0'), id.size()));
  std::string plain(id);
  for (char &c : plain)
    c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return plain;
}

// The CUDA device that the plan names; -1 where the machine shows none such.
int find_named(const LiveMachine &machine, const plan::Device &device) {
  const std::string_view uuid = plan::view_of(device.uuid()), pci = plan::view_of(device.pci_id());
  for (size_t i = 0; i < machine.devices.size(); ++i)
    if ((!uuid.empty() && machine.devices[i].uuid == uuid) || (!pci.empty() && plain_pci(machine.devices[i].pci_id) == plain_pci(pci)))
      return static_cast<int>(i);
  return -1;
}

int place(const plan::LoadedPlan &plan, const LiveMachine &machine, bool share, uint32_t rank) {
  const plan::Device &device = device_of(plan, rank);
  const size_t present = machine.devices.size(), index = plan.program(rank).device();
  if (plan::size_of(device.uuid()) || plan::size_of(device.pci_id())) {
    const int found = find_named(machine, device);
    if (found < 0)
      throw Error("rank " + std::to_string(rank) + " of the plan runs on device " + plan::quoted(device.id()) + " (" +
                  std::string(plan::size_of(device.uuid()) ? plan::view_of(device.uuid()) : plan::view_of(device.pci_id())) +
                  "), which is not among the " + std::to_string(present) + " CUDA devices of this machine" + machine.hidden_by +
                  ": compile for this machine's topology");
    return found;
  }
  if (index >= present && !(share && present))
    throw Error("rank " + std::to_string(rank) + " of the plan's " + std::to_string(plan.num_ranks()) + " runs on device " +
                plan::quoted(device.id()) + ", for which " + std::to_string(index + 1) + " CUDA devices are needed, but there are " +
                std::to_string(present) + machine.hidden_by + ": compile with fewer ranks, or let ranks share GPUs (--share-devices)");
  return static_cast<int>(index % present);
}

// What the runtime allocates itself; what can be made smaller comes last. The ledger's line "runtime" is the context's.
struct Part {
  const char *line, *unfit;
};
constexpr Part kParts[] = {{"weights", "the weights do"},
                           {"activations", "the activations do"},
                           {"workspace", "the workspace does"},
                           {"communication", "the communication buffers do"},
                           {"kv_cache", "the KV pages do"}};

std::pair<uint32_t, uint32_t> ordered(uint32_t a, uint32_t b) { return a < b ? std::pair(a, b) : std::pair(b, a); }

// The link with peer-to-peer access between the devices of two ranks, if the plan has one.
const plan::Link *peer_link(const plan::LoadedPlan &plan, uint32_t a, uint32_t b) {
  const auto ends = ordered(plan.program(a).device(), plan.program(b).device());
  for (const plan::Link *link : plan::each(plan.root().topology()->links()))
    if (link->p2p() && ordered(link->a(), link->b()) == ends)
      return link;
  return nullptr;
}

uint64_t line_of(const plan::Program &program, const char *name) {
  uint64_t bytes = 0;
  for (const plan::LedgerLine *line : plan::each(program.ledger()->lines()))
    if (plan::view_of(line->name()) == name)
      bytes += line->bytes();
  return bytes;
}

// The largest --memory-utilization, in hundredths, with which ranks that leave `pages` bytes to KV pages fit; 0: with none.
double fitting_utilization(const std::vector<uint32_t> &ranks, const plan::LoadedPlan &plan, const DeviceRoom &room, uint64_t needed) {
  uint64_t pages = 0, context = 0;
  for (uint32_t rank : ranks) {
    pages += line_of(plan.program(rank), "kv_cache");
    context += line_of(plan.program(rank), "runtime");
  }
  if (needed - pages >= room.free) // without any page
    return 0;
  const double budget = static_cast<double>(room.free + context) / static_cast<double>(ranks.size());
  return std::floor(budget / static_cast<double>(device_of(plan, ranks[0]).memory_bytes()) * 100) / 100;
}

} // namespace

std::vector<int> place_ranks(const plan::LoadedPlan &plan, const LiveMachine &machine, bool share) {
  std::vector<int> placement;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank) {
    const int found = place(plan, machine, share, rank);
    const LiveDevice &live = machine.devices[static_cast<size_t>(found)];
    if (const unsigned planned = device_of(plan, rank).capability(); live.capability < planned)
      throw Error("the plan was made for compute capability " + capability_text(planned) + ", and CUDA device " + std::to_string(found) +
                  " (" + live.name + "), where rank " + std::to_string(rank) + " runs, has " + capability_text(live.capability) +
                  ": compile for this machine's topology");
    placement.push_back(found);
  }
  return placement;
}

void check_room(const plan::LoadedPlan &plan, const LiveMachine &machine, const std::vector<int> &placement,
                const std::map<int, DeviceRoom> &room) {
  for (const auto &[device, has] : room) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < placement.size(); ++rank)
      if (placement[rank] == device)
        ranks.push_back(rank);
    if (ranks.empty())
      continue;
    uint64_t needed = 0;
    std::string first, list; // what does not fit any more; all that is wanted
    for (const Part &part : kParts) {
      // Ranks that share a device do without NCCL, for which most of this is.
      if (ranks.size() > 1 && std::string_view(part.line) == "communication")
        continue;
      uint64_t bytes = 0;
      for (uint32_t rank : ranks)
        bytes += line_of(plan.program(rank), part.line);
      needed += bytes;
      list += (list.empty() ? "" : ", ") + std::string(part.line) + " " + std::to_string(bytes);
      if (needed > has.free && first.empty())
        first = part.unfit;
    }
    if (first.empty())
      continue;
    std::string who = ranks.size() > 1 ? "ranks" : "rank";
    for (uint32_t rank : ranks)
      who += " " + std::to_string(rank);
    const double fits = fitting_utilization(ranks, plan, has, needed);
    char remedy[160];
    if (fits >= 0.01)
      std::snprintf(remedy, sizeof remedy, "compile the plan with --memory-utilization %.2f (it is %.2f)", fits,
                    static_cast<double>(plan.root().limits()->memory_utilization()));
    else
      std::snprintf(remedy, sizeof remedy, "compile the plan for more ranks, since it would not fit without any KV page either");
    throw Error("CUDA device " + std::to_string(device) + " (" + machine.devices[static_cast<size_t>(device)].name + ", " +
                plan::quoted(device_of(plan, ranks[0]).id()) + " in the plan) has " + std::to_string(has.free) + " of its " +
                std::to_string(has.total) + " bytes free (" + size_text(has.free) + "), and " + who + " of the plan " +
                (ranks.size() > 1 ? "need " : "needs ") + std::to_string(needed) + " (" + size_text(needed) + "; " + list + "): " +
                first + " not fit, " + std::to_string(needed - has.free) +
                " bytes are missing in all; end what else runs there (see nvidia-smi), or " + remedy);
  }
}

bool joined_by_peers(const plan::LoadedPlan &plan, uint32_t a, uint32_t b) {
  return plan.program(a).device() == plan.program(b).device() || peer_link(plan, a, b);
}

void check_peers(const plan::LoadedPlan &plan, const std::vector<int> &placement, Collectives collectives,
                 const std::function<bool(int, int)> &reaches) {
  if (collectives == Collectives::Host)
    return;
  std::set<std::pair<uint32_t, uint32_t>> talk;
  for (const plan::Group *group : plan::each(plan.root().groups()))
    for (uint32_t a : plan::each(group->ranks()))
      for (uint32_t b : plan::each(group->ranks()))
        if (a < b && collectives != Collectives::Nccl)
          talk.insert({a, b});
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    for (const plan::Op *op : plan::each(plan.program(rank).ops()))
      if (const plan::Send *send = op->op_as_Send())
        talk.insert(ordered(rank, send->peer()));
  for (const auto &[a, b] : talk) {
    const plan::Link *joined = peer_link(plan, a, b);
    const int here = placement[a], there = placement[b];
    if (!joined || here == there || (reaches(here, there) && reaches(there, here)))
      continue;
    throw Error("the plan's topology joins " + plan::quoted(device_of(plan, a).id()) + " and " + plan::quoted(device_of(plan, b).id()) +
                " by a link with peer-to-peer access (" + std::string(plan::view_of(joined->kind())) + "), but CUDA devices " +
                std::to_string(here) + " and " + std::to_string(there) +
                ", where ranks " + std::to_string(a) + " and " + std::to_string(b) +
                " run, cannot reach each other's memory (see nvidia-smi topo -p2p r): compile for this machine's topology with "
                "\"p2p\": false, or go through host memory with --collectives host");
  }
}

} // namespace llmrt::exec
