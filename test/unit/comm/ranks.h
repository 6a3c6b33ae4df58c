// Runs one function per rank on a thread of its own and collects what each of them threw.
#pragma once

#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/host_world.h"

namespace llmrt::comm::testing {

inline std::vector<std::string> run_ranks(HostWorld &world, uint32_t ranks,
                                          const std::function<void(Communicator &, uint32_t)> &body) {
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        body(world.rank(r), r);
      } catch (const std::exception &e) {
        errors[r] = e.what();
        world.abort("rank " + std::to_string(r) + " failed: " + e.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

// One group "all" over every rank.
inline HostWorldOptions one_group(uint32_t ranks) {
  HostWorldOptions options;
  options.ranks = ranks;
  GroupSpec group{"all", std::vector<uint32_t>(ranks)};
  std::iota(group.ranks.begin(), group.ranks.end(), 0u);
  options.groups = {group};
  return options;
}

} // namespace llmrt::comm::testing
