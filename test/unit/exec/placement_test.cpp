// Which GPUs a plan's ranks take, and how a machine that is not the plan's is refused: too few devices, hidden, named and missing, too
// old, full, and without peer-to-peer access. No GPU is asked.
#include "runtime/exec/placement.h"

#include "runtime/support/error.h"
#include "test/unit/plan/plan_builder.h"

#include <gtest/gtest.h>

namespace llmrt::exec {
namespace {

using plan::testing::TinySpec;

plan::PlanT on_gpus(uint32_t tp, uint32_t pp) {
  TinySpec spec;
  spec.tp = tp, spec.pp = pp;
  plan::PlanT plan = plan::testing::build_tiny_plan(spec);
  for (size_t i = 0; i < plan.topology->devices.size(); ++i) {
    plan::DeviceT &device = *plan.topology->devices[i];
    device.kind = plan::DeviceKind::Cuda;
    device.id = "gpu" + std::to_string(i);
    device.capability = 90;
  }
  for (auto &link : plan.topology->links)
    link->p2p = true, link->kind = "NV18";
  return plan;
}

LiveMachine machine(int devices, unsigned capability = 90) {
  LiveMachine result;
  for (int i = 0; i < devices; ++i)
    result.devices.push_back({"GPU of tests", "GPU-" + std::to_string(i), "00000000:" + std::to_string(i + 1) + "A:00.0", capability});
  return result;
}

template <typename F> std::string refusal(F &&f) {
  try {
    f();
  } catch (const Error &e) {
    return e.what();
  }
  return "";
}

#define EXPECT_SAYS(call, ...)                                                                                         \
  do {                                                                                                                 \
    const std::string said = refusal([&] { call; });                                                                   \
    for (const char *part : {__VA_ARGS__})                                                                             \
      EXPECT_NE(said.find(part), std::string::npos) << "no '" << part << "' in: " << said;                             \
  } while (false)

TEST(Placement, ByPlaceInTheTopology) {
  const auto plan = plan::testing::load(on_gpus(2, 2));
  EXPECT_EQ(place_ranks(*plan, machine(4), false), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(place_ranks(*plan, machine(8, 100), false), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(place_ranks(*plan, machine(3), true), (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(place_ranks(*plan, machine(1), true), (std::vector<int>{0, 0, 0, 0}));
}

TEST(Placement, ByName) {
  plan::PlanT named = on_gpus(2, 1);
  named.topology->devices[0]->uuid = "GPU-2";
  named.topology->devices[1]->pci_id = "0000:1a:00.0"; // CUDA's way to write it; nvidia-smi has more zeros
  const auto plan = plan::testing::load(named);
  EXPECT_EQ(place_ranks(*plan, machine(3), false), (std::vector<int>{2, 0}));
  named.topology->devices[0]->uuid = "GPU-7";
  EXPECT_SAYS(place_ranks(*plan::testing::load(named), machine(3), true), "rank 0", "'gpu0' (GPU-7)", "not among the 3 CUDA devices", "compile for");
}

TEST(Placement, TooFewDevices) {
  const auto plan = plan::testing::load(on_gpus(2, 2));
  LiveMachine few = machine(2);
  EXPECT_SAYS(place_ranks(*plan, few, false), "rank 2 of the plan's 4", "'gpu2'", "3 CUDA devices are needed, but there are 2: compile",
              "--share-devices");
  few.hidden_by = " (CUDA_VISIBLE_DEVICES shows '0,1')";
  EXPECT_SAYS(place_ranks(*plan, few, false), "there are 2 (CUDA_VISIBLE_DEVICES shows '0,1'): compile");
  EXPECT_SAYS(place_ranks(*plan, machine(0), true), "1 CUDA devices are needed, but there are 0");
}

TEST(Placement, TooOld) {
  LiveMachine mixed = machine(2);
  mixed.devices[1].capability = 89;
  EXPECT_SAYS(place_ranks(*plan::testing::load(on_gpus(2, 1)), mixed, false), "capability 9.0", "CUDA device 1 (GPU of tests)", "rank 1",
              "has 8.9", "compile for");
}

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Ranks with ledgers of round numbers on devices of 100 GiB: 40 + 5 + 3 + 2, 1 for the context, and pages up to 90.
plan::PlanT with_ledgers(uint32_t tp) {
  plan::PlanT plan = on_gpus(tp, 1);
  plan.limits->memory_utilization = 0.9f;
  for (auto &device : plan.topology->devices)
    device->memory_bytes = 100 * kGiB;
  const std::pair<const char *, uint64_t> lines[] = {{"weights", 40 * kGiB}, {"activations", 5 * kGiB}, {"workspace", 3 * kGiB},
                                                     {"communication", 2 * kGiB}, {"runtime", kGiB}, {"kv_cache", 39 * kGiB}};
  for (auto &program : plan.programs) {
    program->ledger->lines.clear();
    for (const auto &[name, bytes] : lines) {
      auto line = std::make_unique<plan::LedgerLineT>();
      line->name = name, line->bytes = bytes;
      program->ledger->lines.push_back(std::move(line));
    }
  }
  return plan;
}

TEST(Room, FitsToTheByte) {
  const auto plan = plan::testing::load(with_ledgers(2));
  const uint64_t needed = 89 * kGiB; // the context is there already
  EXPECT_EQ(refusal([&] { check_room(*plan, machine(2), {0, 1}, {{0, {needed, 100 * kGiB}}, {1, {needed, 100 * kGiB}}}); }), "");
  EXPECT_SAYS(check_room(*plan, machine(2), {0, 1}, {{0, {needed, 100 * kGiB}}, {1, {needed - 1, 100 * kGiB}}}), "CUDA device 1 (GPU of tests, 'gpu1'",
              "95563022335 of its 107374182400 bytes free", "rank 1 of the plan needs 95563022336 (89.00 GiB; weights 42949672960, activations",
              "the KV pages do not fit, 1 bytes are missing in all", "--memory-utilization 0.89 (it is 0.90)");
}

TEST(Room, NamesWhatDoesNotFit) {
  const auto plan = plan::testing::load(with_ledgers(1));
  const auto with = [&](uint64_t free) { check_room(*plan, machine(1), {0}, {{0, {free, 100 * kGiB}}}); };
  EXPECT_SAYS(with(60 * kGiB), "the KV pages do not fit, 31138512896 bytes are missing", "--memory-utilization 0.61", "end what else runs there");
  EXPECT_SAYS(with(49 * kGiB), "the communication buffers do not fit, 42949672960 bytes", "for more ranks");
  EXPECT_SAYS(with(46 * kGiB), "the workspace does not fit", "for more ranks");
  EXPECT_SAYS(with(44 * kGiB), "the activations do not fit", "for more ranks");
  EXPECT_SAYS(with(1 * kGiB), "the weights do not fit", "for more ranks");
}

TEST(Room, RanksThatShare) {
  const auto plan = plan::testing::load(with_ledgers(2));
  const auto with = [&](uint64_t free) { check_room(*plan, machine(1), {0, 0}, {{0, {free, 200 * kGiB}}}); };
  EXPECT_EQ(refusal([&] { with(174 * kGiB); }), ""); // they do without NCCL
  EXPECT_SAYS(with(174 * kGiB - 1), "ranks 0 1 of the plan need 186831077376");
}

TEST(Peers, NeededWhereThePlanSaysSo) {
  const auto plan = plan::testing::load(on_gpus(2, 2));
  const std::vector<int> placement = {0, 1, 2, 3};
  const auto all_but = [](int x, int y) { return [x, y](int a, int b) { return !(a == x && b == y); }; };
  const auto none = [](int, int) { return false; };
  EXPECT_EQ(refusal([&] { check_peers(*plan, placement, Collectives::Auto, all_but(-1, -1)); }), "");
  EXPECT_SAYS(check_peers(*plan, placement, Collectives::Auto, all_but(1, 0)), "'gpu0' and 'gpu1'", "(NV18)", "CUDA devices 0 and 1",
              "ranks 0 and 1", "topo -p2p", "\"p2p\": false", "--collectives host");
  EXPECT_SAYS(check_peers(*plan, placement, Collectives::Peer, all_but(2, 3)), "CUDA devices 2 and 3");
  EXPECT_SAYS(check_peers(*plan, placement, Collectives::Nccl, all_but(1, 3)), "CUDA devices 1 and 3", "ranks 1 and 3"); // stages
  EXPECT_EQ(refusal([&] { check_peers(*plan, placement, Collectives::Nccl, all_but(0, 1)); }), "");
  EXPECT_EQ(refusal([&] { check_peers(*plan, placement, Collectives::Auto, all_but(0, 3)); }), ""); // who never talk
  EXPECT_EQ(refusal([&] { check_peers(*plan, placement, Collectives::Host, none); }), "");
  EXPECT_EQ(refusal([&] { check_peers(*plan, {0, 0, 0, 0}, Collectives::Auto, none); }), ""); // on one device
  plan::PlanT apart = on_gpus(2, 2);
  for (auto &link : apart.topology->links)
    link->p2p = false;
  const auto unjoined = plan::testing::load(apart);
  EXPECT_EQ(refusal([&] { check_peers(*unjoined, placement, Collectives::Auto, none); }), "");
  EXPECT_TRUE(joined_by_peers(*plan, 1, 0) && joined_by_peers(*plan, 0, 2) && joined_by_peers(*unjoined, 3, 3));
  EXPECT_FALSE(joined_by_peers(*unjoined, 1, 0) || joined_by_peers(*unjoined, 0, 2));
}

} // namespace
} // namespace llmrt::exec
