// One rank on its GPU: memory, program, stream; runs a step eagerly or by replaying a captured graph.
#pragma once

#include "runtime/exec/cuda/program.h"
#include "runtime/exec/executor.h"
#include "runtime/support/region.h"

#include <map>
#include <memory>

namespace llmrt::exec::cuda {

class Rank {
public:
  // Allocates the rank's memory on CUDA device `device`, which the calling thread must not have changed.
  Rank(std::shared_ptr<const plan::LoadedPlan> plan, uint32_t rank, int device);
  ~Rank();

  std::byte *weights() const { return weights_.data(); } // on the device
  // Once the weights are loaded: prepares the program.
  void ready();
  // On the rank's own thread: makes its device current and joins the other ranks.
  void join(const std::vector<int> &devices, comm::Communicator &host, unsigned in_flight, double deadline_s, bool eager);

  // Runs all ops and waits for the device. On the output rank, logits are in pinned host memory then.
  LogitsView run(const Step &step);

  RankMemory memory() const;
  Ceilings measure_ceilings() const; // of its device

private:
  StepShape shape_of(const Step &step) const;
  void upload(const Step &step, const StepShape &shape);
  bool replay(const Step &step, StepShape &shape);
  bool draw(const Step &step);
  void wait(const Step &step);

  std::shared_ptr<const plan::LoadedPlan> plan_;
  StepLimits limits_;
  uint32_t rank_;
  int device_;
  double deadline_s_ = 60;
  bool graphs_ = false;
  DeviceMemory weights_, arena_, kv_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<StepInputs> inputs_;
  std::unique_ptr<Products> products_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<RankLink> link_;
  std::unique_ptr<Event> finished_;
  // On the output rank: results for the host, and what drawing tokens needs.
  PinnedMemory logits_, draws_, tokens_;
  DeviceMemory device_draws_, device_tokens_;
  std::map<std::pair<int, int>, std::unique_ptr<Graph>> graph_by_bucket_; // (sequences, context)
};

} // namespace llmrt::exec::cuda
