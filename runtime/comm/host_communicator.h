// The host communicator of one rank. Private to runtime/comm.
#pragma once

#include "runtime/comm/host_state.h"

namespace llmrt::comm {

class HostCommunicator final : public Communicator {
public:
  HostCommunicator(HostState &state, uint32_t rank);

  uint32_t rank() const override { return rank_; }
  void begin_step(uint64_t step) override { step_ = step; }
  void all_reduce(uint32_t group, uint32_t seq, float *data, size_t rows, size_t cols, size_t stride) override;
  void all_gather(uint32_t group, uint32_t seq, const Block &out, const ConstBlock &in,
                  std::span<const uint64_t> part_bytes) override;
  void gather(uint32_t group, uint32_t seq, uint32_t root, const Block &out, const ConstBlock &in,
              std::span<const uint64_t> part_bytes) override;
  void send(uint32_t peer, uint32_t seq, const ConstBlock &in) override;
  void recv(uint32_t peer, uint32_t seq, const Block &out) override;
  void beat() override;
  void abort(const std::string &why) override { state_.abort(why); }

private:
  struct Seat {
    Group *group = nullptr;
    uint32_t position = 0;
  };

  const Seat &seat(uint32_t group, Kind kind);
  HostChannel &channel(uint32_t from, uint32_t to, Kind kind);
  // What this rank is about to do in the current step, without its buffers.
  Call call_of(Kind kind, uint32_t seq, uint64_t rows, uint64_t row_bytes) const;
  Call gather_call(Kind kind, uint32_t seq, uint32_t root, const Seat &seat, const Block &out, const ConstBlock &in,
                   std::span<const uint64_t> part_bytes);
  // Brings the group together over `call`; the last member to come checks that all agree and runs `at_last`
  // before it lets the others go.
  template <typename Work> void meet(const Seat &seat, const Call &call, Work &&at_last);
  void part(const Seat &seat);
  void run_gather(const Seat &seat, const Call &call);
  void check_agreement(const Group &group);
  [[noreturn]] void fail(const std::string &why);
  std::string standstill(const Seat &seat) const;
  void trace(const Call &call, uint32_t with);

  HostState &state_;
  uint32_t rank_;
  uint64_t step_ = 0;
  std::vector<Seat> seats_;                // by group; group null where this rank is no member
  std::vector<HostChannel *> outgoing_;    // by peer
  std::vector<HostChannel *> incoming_;    // by peer
};

} // namespace llmrt::comm
