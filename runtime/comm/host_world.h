// All ranks of a plan as threads of this process: their groups, their channels, and the one switch that ends them
// together. Each rank thread takes its Communicator from here.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace llmrt::comm {

struct GroupSpec {
  std::string name;
  std::vector<uint32_t> ranks; // in group order: the order of addition and of columns
};

struct ChannelSpec {
  uint32_t from = 0, to = 0;
  uint32_t slots = 2;       // messages under way before the sender waits
  uint64_t slot_bytes = 0;  // the largest message
};

struct HostWorldOptions {
  uint32_t ranks = 1;
  std::vector<GroupSpec> groups = {};
  std::vector<ChannelSpec> channels = {};
  // An operation fails once it has waited this long without a sign of life from any rank.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  // True when every rank's threads have a core of their own: waiting ranks then spin for longer.
  bool cores_to_spare = false;
  // Keeps the last operations of every rank and adds them to the sentence that ends the world.
  bool trace = false;
};

class HostWorld {
public:
  // Throws llmrt::Error for a group or channel that names a rank twice or one out of range.
  static std::unique_ptr<HostWorld> create(const HostWorldOptions &options);
  virtual ~HostWorld() = default; // every rank must have left its operations

  virtual Communicator &rank(uint32_t rank) = 0;

  // Ends every wait of every rank, now and later, with Aborted(why); the first sentence stands.
  virtual void abort(const std::string &why) = 0;
  virtual bool aborted() const = 0;
  virtual std::string reason() const = 0; // empty while it lives
  // Rises whenever some rank has finished a piece of work.
  virtual uint64_t life_signs() const = 0;

  // Bytes of the channels' slots of one rank, counted at the sender.
  virtual uint64_t channel_bytes(uint32_t rank) const = 0;
};

} // namespace llmrt::comm
