// The loader against a sink that behaves like a device behind staging buffers: every byte arrives once, pieces stay small
// and alternate between ranks, and a sink that fails ends the load.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <atomic>
#include <mutex>

#include "runtime/exec/weight_loader.h"
#include "runtime/support/error.h"
#include "test/unit/exec/loader_plan.h"

using namespace llmrt;
using namespace llmrt::exec;
using namespace llmrt::exec::testing;
using plan::DType;
using plan::Layout;

namespace {

class FakeDevice final : public WeightSink {
public:
  explicit FakeDevice(const std::vector<WeightPlaces> &places, unsigned most_workers = 100) : most_workers_(most_workers) {
    for (const WeightPlaces &place : places) {
      memory.emplace_back(place.bytes);
      written.emplace_back(place.bytes);
    }
  }

  unsigned prepare(size_t largest_piece, unsigned workers) override {
    fail_at("prepare");
    largest = largest_piece;
    slots_.resize(std::min(workers, most_workers_));
    return static_cast<unsigned>(slots_.size());
  }

  std::byte *open(unsigned worker, uint32_t rank, uint64_t offset, size_t bytes) override {
    fail_at("open");
    Slot &slot = slots_.at(worker);
    EXPECT_FALSE(slot.open);
    EXPECT_LE(bytes, largest);
    slot.open = true;
    slot.rank = rank;
    slot.offset = offset;
    slot.bytes.assign(bytes, std::byte(0xCD)); // what the last piece left
    std::lock_guard lock(mutex_);
    opened.push_back(rank);
    return slot.bytes.data();
  }

  void close(unsigned worker) override {
    fail_at("close");
    Slot &slot = slots_.at(worker);
    EXPECT_TRUE(slot.open);
    slot.open = false;
    std::lock_guard lock(mutex_);
    std::copy(slot.bytes.begin(), slot.bytes.end(), memory.at(slot.rank).begin() + static_cast<int64_t>(slot.offset));
    for (size_t i = 0; i < slot.bytes.size(); ++i)
      ++written[slot.rank].at(slot.offset + i);
  }

  void finish() override {
    fail_at("finish");
    for (const Slot &slot : slots_)
      EXPECT_FALSE(slot.open);
    finished = true;
  }

  std::vector<std::vector<std::byte>> memory; // by rank
  std::vector<std::vector<int>> written;      // how often each byte was
  std::vector<uint32_t> opened;               // the ranks of the pieces, in order
  size_t largest = 0;
  bool finished = false;
  std::string fails_at;
  std::atomic<int> before_failure{3};

private:
  void fail_at(const std::string &where) {
    if (where == fails_at && (where == "prepare" || where == "finish" || before_failure-- <= 0))
      throw Error("the device is gone in " + where);
  }

  struct Slot {
    std::vector<std::byte> bytes;
    bool open = false;
    uint32_t rank = 0;
    uint64_t offset = 0;
  };
  unsigned most_workers_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
};

std::vector<WeightPlaces> places_of(const plan::LoadedPlan &plan) {
  std::vector<WeightPlaces> places;
  for (uint32_t rank = 0; rank < plan.num_ranks(); ++rank)
    places.push_back(planned_places(plan.program(rank)));
  return places;
}

// Three ranks with weights of every route: copied, packed, quantised blocks, converted, filled.
void build(LoaderPlan &plan) {
  const uint32_t bf16 = plan.add_tensor("bf16", DType::BF16, 300, 1000), f32 = plan.add_tensor("f32", DType::F32, 90, 1001),
                 q4 = plan.add_tensor("q4", DType::Q4_1, 77, 320), q8 = plan.add_tensor("q8", DType::Q8_0, 77, 320),
                 norm = plan.add_tensor("norm", DType::F32, 1, 1001),
                 dummy = plan.add_filled("dummy", plan::Fill::Normal, 1, 100, 50);
  for (uint32_t rank = 0; rank < 3; ++rank)
    for (const Layout layout : {Layout::RowMajor, Layout::Packed16}) {
      plan.add_weight(rank, "bf16", DType::BF16, layout, 93, 1000).parts.push_back(LoaderPlan::part(bf16, 93 * rank, 93, 0, 1000));
      plan.add_weight(rank, "odd", DType::F16, layout, 77, 321).parts.push_back(LoaderPlan::part(f32, 0, 77, 321 * rank, 321));
      plan.add_weight(rank, "f32", DType::F32, layout, 90, 1001).parts.push_back(LoaderPlan::part(f32, 0, 90, 0, 1001));
      plan.add_weight(rank, "wide", DType::BF16, layout, 77, 320).parts.push_back(LoaderPlan::part(q4, 0, 77, 0, 320));
      plan.add_weight(rank, "dummy", DType::BF16, layout, 100, 50).parts.push_back(LoaderPlan::part(dummy, 0, 100, 0, 50));
      plan.add_weight(rank, "norm", DType::F32, Layout::RowMajor, 1, 1001).parts.push_back(LoaderPlan::part(norm, 0, 1, 0, 1001));
      if (layout == Layout::Packed16) {
        plan.add_weight(rank, "q4", DType::Q4_1, layout, 77, 320).parts.push_back(LoaderPlan::part(q4, 0, 77, 0, 320));
        plan.add_weight(rank, "q8", DType::Q8_0, layout, 77, 320).parts.push_back(LoaderPlan::part(q8, 0, 77, 0, 320));
      }
    }
}

TEST(LoaderSink, EveryByteArrivesOnceAndIsThatOfHostMemory) {
  LoaderPlan plan;
  build(plan);
  const auto loaded = plan.pack();
  const std::vector<WeightPlaces> places = places_of(*loaded);
  std::vector<Region> regions;
  std::vector<WeightRegion> host;
  for (const WeightPlaces &place : places) {
    regions.emplace_back(place.bytes, "a test");
    host.push_back({regions.back().data(), place});
  }
  load_weights(*loaded, host, {});
  for (const unsigned threads : {1u, 4u}) {
    FakeDevice device(places);
    WeightLoad options;
    options.threads = threads;
    load_weights(*loaded, places, device, options);
    EXPECT_TRUE(device.finished);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(std::memcmp(device.memory[rank].data(), regions[rank].data(), places[rank].bytes), 0) << "rank " << rank;
      std::vector<int> expected(places[rank].bytes); // nothing between the weights
      for (const WeightPlace &place : places[rank].weights)
        std::fill_n(expected.begin() + static_cast<int64_t>(place.offset), place.bytes, 1);
      EXPECT_EQ(device.written[rank], expected) << "rank " << rank;
    }
  }
}

TEST(LoaderSink, PiecesStaySmallAndRanksTakeTurns) {
  LoaderPlan plan;
  const uint32_t tensor = plan.add_tensor("t", DType::BF16, 6000, 1000);
  for (uint32_t rank = 0; rank < 3; ++rank)
    plan.add_weight(rank, "w", DType::BF16, Layout::RowMajor, 6000, 1000).parts.push_back(LoaderPlan::part(tensor, 0, 6000, 0, 1000));
  const auto loaded = plan.pack();
  FakeDevice device(places_of(*loaded), 1);
  WeightLoad options;
  options.threads = 3; // of which the sink allows one
  load_weights(*loaded, places_of(*loaded), device, options);
  EXPECT_LE(device.largest, size_t{4} << 20);
  EXPECT_GE(device.opened.size(), 9u);
  for (size_t i = 0; i < device.opened.size(); ++i)
    EXPECT_EQ(device.opened[i], i % 3);
}

TEST(LoaderSink, ARowLongerThanAPieceIsOnePiece) {
  LoaderPlan plan;
  const uint32_t tensor = plan.add_tensor("t", DType::BF16, 2, 3000000);
  plan.add_weight(0, "w", DType::BF16, Layout::RowMajor, 2, 3000000).parts.push_back(LoaderPlan::part(tensor, 0, 2, 0, 3000000));
  const auto loaded = plan.pack();
  FakeDevice device(places_of(*loaded));
  load_weights(*loaded, places_of(*loaded), device, {});
  EXPECT_EQ(device.largest, 6000000u);
  EXPECT_EQ(std::memcmp(device.memory[0].data(), plan.data(tensor), 12000000), 0);
}

TEST(LoaderSink, AFailureOfTheSinkEndsTheLoad) {
  LoaderPlan plan;
  build(plan);
  const auto loaded = plan.pack();
  for (const std::string where : {"prepare", "open", "close", "finish"})
    for (const unsigned threads : {1u, 4u}) {
      FakeDevice device(places_of(*loaded));
      device.fails_at = where;
      WeightLoad options;
      options.threads = threads;
      try {
        load_weights(*loaded, places_of(*loaded), device, options);
        ADD_FAILURE() << where;
      } catch (const Error &e) {
        EXPECT_EQ(std::string(e.what()), "the device is gone in " + where);
      }
      EXPECT_FALSE(device.finished);
      EXPECT_LE(device.opened.size(), where == "finish" ? 100u : 3 + threads);
    }
}

TEST(LoaderSink, NothingIsFinishedAfterABadRead) {
  LoaderPlan plan;
  build(plan);
  plan.plan.programs[1]->weights[0]->parts[0]->rows -= 1;
  const auto loaded = plan.pack();
  FakeDevice device(places_of(*loaded));
  EXPECT_THROW(load_weights(*loaded, places_of(*loaded), device, {}), Error);
  EXPECT_FALSE(device.finished);
}

} // namespace
