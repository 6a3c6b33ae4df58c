// Ranks of one plan in this process, each with its end of the ways to talk (RankLink) and a GPU, which several have where there are too
// few. A team is made once for all tests that want it: starting NCCL takes seconds.
#pragma once

#include "runtime/exec/cuda/devices.h"
#include "runtime/exec/cuda/world.h"
#include "test/unit/cuda/ranks.h"
#include "test/unit/plan/plan_builder.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace llmrt::exec::cuda::testing {

class Team {
public:
  // Sums are pushed up to these sizes, whatever the compiler would choose: NCCL and ranks that meet get what is larger.
  static constexpr PushLimits kPush = {64 << 10, 1 << 20};
  static constexpr int64_t kMostRows = 128; // of tokens drawn, and of sums of 4,096 columns that are pushed

  Team(Collectives way, uint32_t ranks) : plan_(a_plan(ranks)), links_(ranks) {
    comm::HostWorldOptions options;
    options.ranks = ranks;
    options.groups.push_back({"all", {}});
    RankLinkOptions link{{}, 1, 20, way};
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      options.groups[0].ranks.push_back(rank);
      link.devices.push_back(llmrt::cuda::testing::device_of(static_cast<int>(rank)));
    }
    world_ = comm::HostWorld::create(options);
    on_all([&](uint32_t rank) { links_[rank] = std::make_unique<RankLink>(*plan_, rank, link, *world_); });
  }
  ~Team() {
    on_all([&](uint32_t rank) { links_[rank].reset(); });
  }

  // The one of this way and so many ranks. A team that has failed is of no use any more.
  static Team &of(Collectives way, uint32_t ranks) {
    std::unique_ptr<Team> &team = all()[{way, ranks}];
    if (!team || team->world_->aborted())
      team = std::make_unique<Team>(way, ranks);
    return *team;
  }
  static void dismiss_all() { all().clear(); }

  // Runs `work(rank, link, stream)` on every rank at once.
  template <typename Work> void run(Work &&work) {
    if (world_->aborted())
      return; // and has said so
    ++step_;
    std::once_flag stopped;
    const auto stop = [&] {
      std::call_once(stopped, [&] {
        for (const std::unique_ptr<RankLink> &link : links_)
          link->stop_waiting(), link->abort();
      });
    };
    const llmrt::cuda::testing::GivesUpLate late([&] {
      world_->abort("ranks waited for each other in vain");
      stop();
    });
    on_all([&](uint32_t rank) {
      try {
        Stream stream;
        links_[rank]->begin_step(step_);
        work(rank, *links_[rank], stream);
        LLMRT_CHECK(cudaStreamSynchronize(stream));
      } catch (const std::exception &e) {
        world_->abort(e.what());
        stop();
        throw;
      }
    });
  }

  const std::string &failure() const { return failure_; } // of the rank that failed first

private:
  // Only its groups, limits and sums count.
  static std::shared_ptr<const plan::LoadedPlan> a_plan(uint32_t ranks) {
    plan::testing::TinySpec spec;
    spec.tp = ranks, spec.pp = 1, spec.hidden = 4096, spec.layers = 1, spec.q_heads = spec.kv_heads = 24;
    spec.max_batched_tokens = spec.max_logits_rows = kMostRows;
    plan::PlanT plan = plan::testing::build_tiny_plan(spec);
    for (auto &link : plan.topology->links)
      link->p2p = true;
    for (auto &program : plan.programs)
      for (auto &op : program->ops)
        if (plan::AllReduceT *sum = op->op.AsAllReduce())
          sum->one_shot_bytes = kPush.one_shot_bytes, sum->two_shot_bytes = kPush.two_shot_bytes;
    return plan::testing::load(plan);
  }

  static std::map<std::pair<Collectives, uint32_t>, std::unique_ptr<Team>> &all() {
    static std::map<std::pair<Collectives, uint32_t>, std::unique_ptr<Team>> teams;
    return teams;
  }

  template <typename Work> void on_all(Work &&work) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < links_.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          LLMRT_CHECK(cudaSetDevice(llmrt::cuda::testing::device_of(static_cast<int>(rank))));
          work(rank);
        } catch (const std::exception &e) {
          world_->abort(e.what());
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    failure_ = world_->reason();
  }

  std::shared_ptr<const plan::LoadedPlan> plan_;
  std::unique_ptr<comm::HostWorld> world_;
  std::vector<std::unique_ptr<RankLink>> links_;
  std::string failure_;
  uint64_t step_ = 0;
};

} // namespace llmrt::exec::cuda::testing
