// One rank: its memory, its prepared program, its team of threads. Runs a step from the first op to the last on the
// thread that calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/comm/host_world.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/prepare.h"
#include "runtime/exec/weight_loader.h"

namespace llmrt::exec {

class Rank {
public:
  // Maps the rank's memory and prepares its program; weights are loaded afterwards, into weights().
  // `num_pages`: of the KV pool.
  Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, WeightPlaces places, uint32_t num_pages, int threads);

  uint32_t index() const { return rank_; }
  WeightRegion weights() const { return {weights_.data(), places_}; }

  // Once the weights are loaded and the world of ranks stands.
  void ready(comm::Communicator &comm);

  // Runs all ops. Throws llmrt::Error naming rank, step and op; comm::Aborted as it is.
  void run(const Step &step);

  // Of the step that ran last; empty but on the output rank.
  LogitsView logits(const Step &step) const;

  RankMemory memory() const;

private:
  std::shared_ptr<const plan::LoadedPlan> plan_;
  uint32_t rank_;
  WeightPlaces places_;
  Region weights_, arena_, kv_;
  cpu::Team team_;
  PreparedProgram program_;
  comm::Communicator *comm_ = nullptr;
};

// Bytes of a KV page over all layers of a rank.
uint64_t kv_page_bytes(const plan::LoadedPlan &plan, uint32_t rank);

// Groups and channels of a plan, as the host communicator wants them.
comm::HostWorldOptions world_of(const plan::LoadedPlan &plan);

} // namespace llmrt::exec
