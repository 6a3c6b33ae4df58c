// Drives an executor in tests: sequences with pages scattered over the pool, steps made of any mix of chunks, and
// the logits of each step kept.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/exec/executor.h"
#include "test/unit/exec/loader_plan.h"
#include "test/unit/exec/reference.h"

namespace llmrt::exec::testing {

// A tiny model on disk: its plan and the reference that its weights come from.
class TinyModel {
public:
  explicit TinyModel(plan::testing::TinySpec spec, unsigned seed = 1) {
    spec.weight_file = "weights.bin";
    spec.linear_layout = plan::Layout::Packed16;
    this->spec = spec;
    plan = plan::testing::build_tiny_plan(spec);
    reference = std::make_unique<Reference>(spec, plan, seed);
    const std::vector<float> &values = reference->file();
    std::ofstream(folder.path("weights.bin"), std::ios::binary)
        .write(reinterpret_cast<const char *>(values.data()), static_cast<std::streamsize>(values.size() * 4));
    plan.files[0]->header_bytes = 128;
    plan.files[0]->header_hash = plan::hash_bytes(values.data(), 128);
  }

  std::unique_ptr<Executor> start(Executor::StepDone on_done, ExecutorOptions options = {}) const {
    options.plan_folder = folder.path();
    return Executor::create(plan::testing::load(plan), options, std::move(on_done));
  }

  TempFolder folder;
  plan::testing::TinySpec spec;
  plan::PlanT plan;
  std::unique_ptr<Reference> reference;
};

// A sequence and its pages.
struct Sequence {
  std::vector<int32_t> pages;
  int32_t length = 0;
};

// A piece of a step: the next tokens of a sequence, and which of their rows want logits.
struct Chunk {
  Sequence *sequence = nullptr;
  std::vector<int32_t> ids;
  enum Wanted { None, Last, All } wanted = Last;
};

class Driver {
public:
  explicit Driver(const TinyModel &model, ExecutorOptions options = {})
      : page_size_(static_cast<int32_t>(model.spec.page_size)) {
    for (uint32_t page = 0; page < model.spec.num_pages; ++page)
      free_.push_back(static_cast<int32_t>((page * 29 + 7) % model.spec.num_pages)); // 29: coprime to the pool sizes
    executor = model.start([this](const StepBatch &batch, const LogitsView &logits, const std::string &error) {
      std::lock_guard lock(mutex_);
      Result &result = results_[batch.id];
      result.error = error;
      if (logits.rows)
        result.logits.assign(logits.data, logits.data + logits.rows * logits.vocab);
      order_.push_back(batch.id);
      changed_.notify_all();
    }, options);
  }

  struct Result {
    std::vector<float> logits; // [rows, vocab]
    std::string error;
  };

  std::shared_ptr<StepBatch> batch(const std::vector<Chunk> &chunks) {
    auto step = std::make_shared<StepBatch>();
    step->id = ++last_id_;
    step->seq_starts.push_back(0);
    step->page_starts.push_back(0);
    for (const Chunk &chunk : chunks) {
      Sequence &sequence = *chunk.sequence;
      for (size_t i = 0; i < chunk.ids.size(); ++i) {
        const int32_t position = sequence.length++;
        if (position / page_size_ >= static_cast<int32_t>(sequence.pages.size())) {
          sequence.pages.push_back(free_.back());
          free_.pop_back();
        }
        if (chunk.wanted == Chunk::All || (chunk.wanted == Chunk::Last && i + 1 == chunk.ids.size()))
          step->logits_rows.push_back(static_cast<int32_t>(step->ids.size()));
        step->ids.push_back(chunk.ids[i]);
        step->positions.push_back(position);
        step->slot_mapping.push_back(int64_t{sequence.pages[static_cast<size_t>(position / page_size_)]} * page_size_ +
                                     position % page_size_);
      }
      step->seq_starts.push_back(static_cast<int32_t>(step->ids.size()));
      step->context_lens.push_back(sequence.length);
      step->pages.insert(step->pages.end(), sequence.pages.begin(), sequence.pages.end());
      step->page_starts.push_back(static_cast<int32_t>(step->pages.size()));
    }
    return step;
  }

  Result wait(uint64_t id) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return results_.count(id) != 0; }))
      return {{}, "step " + std::to_string(id) + " did not finish within 60 s"};
    return results_[id];
  }

  Result step(const std::vector<Chunk> &chunks) {
    const auto made = batch(chunks);
    executor->submit(made);
    return wait(made->id);
  }

  std::vector<uint64_t> order() {
    std::lock_guard lock(mutex_);
    return order_;
  }

private:
  int32_t page_size_;
  std::vector<int32_t> free_;
  uint64_t last_id_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Result> results_;
  std::vector<uint64_t> order_;

public:
  std::unique_ptr<Executor> executor; // last, so that it ends first
};

// Fixed pseudo-random token ids.
inline std::vector<int32_t> some_ids(size_t n, uint64_t vocab, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(n);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(random() % vocab);
  return ids;
}

} // namespace llmrt::exec::testing
