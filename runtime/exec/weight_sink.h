// Where loaded weights go: straight into host memory, or through staging buffers to a device. The loader asks a sink for
// memory piece by piece, fills it, and hands it back; it never holds a tensor as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/exec/weight_places.h"

namespace llmrt::exec {

// Pieces come from several threads at once; each thread has at most one open.
class WeightSink {
public:
  virtual ~WeightSink() = default;

  // Once, before the first piece: no piece is larger than `largest` bytes. Returns how many of `workers` threads may write
  // (at least 1); they are numbered from 0.
  virtual unsigned prepare(size_t largest, unsigned workers) = 0;

  // Memory for bytes [offset, offset + bytes) of a rank's weight region; may wait until some is free. What it holds is
  // undefined, and all of it will be written.
  virtual std::byte *open(unsigned worker, uint32_t rank, uint64_t offset, size_t bytes) = 0;

  // All of the piece that this worker opened last is written.
  virtual void close(unsigned worker) = 0;

  // Once, after the last piece, unless something failed: returns when every byte is where it belongs.
  virtual void finish() = 0;
};

// The memory of one rank's weights: places.bytes bytes, zero, aligned to 256.
struct WeightRegion {
  std::byte *data = nullptr;
  WeightPlaces places;
};

// Host memory, written in place.
class RegionSink final : public WeightSink {
public:
  explicit RegionSink(std::vector<std::byte *> regions) : regions_(std::move(regions)) {}
  unsigned prepare(size_t, unsigned workers) override { return workers; }
  std::byte *open(unsigned, uint32_t rank, uint64_t offset, size_t) override { return regions_.at(rank) + offset; }
  void close(unsigned) override {}
  void finish() override {}

private:
  std::vector<std::byte *> regions_; // by rank
};

} // namespace llmrt::exec
