// Worker threads take pieces in order, open them in the sink, fill them and close them, while the caller's thread reports
// progress.
#include "runtime/exec/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/exec/weight_files.h"
#include "runtime/exec/weight_packer.h"
#include "runtime/exec/weight_pieces.h"
#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

namespace {

class Loading {
public:
  Loading(const plan::LoadedPlan &plan, const WeightFiles &files, const WeightPieces &cut, WeightSink &sink)
      : plan_(plan), files_(files), cut_(cut), sink_(sink) {}
  ~Loading() { stop_and_join(); }

  void start(unsigned workers) {
    running_ = workers;
    threads_.reserve(workers);
    try {
      for (unsigned i = 0; i < workers; ++i)
        threads_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error &) { // no more threads to be had: go on with those there are
      if (threads_.empty())
        throw Error("cannot start a thread to load weights with: raise the limit on threads (ulimit -u)");
      std::lock_guard lock(mutex_);
      running_ -= workers - static_cast<unsigned>(threads_.size());
    }
  }

  void wait(const std::function<void(uint64_t, uint64_t)> &on_progress) {
    {
      std::unique_lock lock(mutex_);
      while (running_ != 0) {
        changed_.wait_for(lock, std::chrono::milliseconds(200));
        if (!on_progress || running_ == 0)
          continue;
        lock.unlock();
        on_progress(done_.load(std::memory_order_relaxed), cut_.total);
        lock.lock();
      }
    }
    stop_and_join();
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  void work(unsigned worker) {
    try {
      WeightPacker packer(plan_, files_);
      for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < cut_.pieces.size();) {
        const WeightPiece &piece = cut_.pieces[i];
        const WeightTarget &target = cut_.targets[piece.target];
        packer.pack(target, piece, sink_.open(worker, target.rank, piece.offset, piece.bytes));
        sink_.close(worker);
        done_.fetch_add(piece.bytes, std::memory_order_relaxed);
      }
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_)
        failure_ = std::current_exception();
      next_.store(cut_.pieces.size(), std::memory_order_relaxed); // the others stop at their next piece
    }
    std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_one();
  }

  void stop_and_join() {
    next_.store(cut_.pieces.size(), std::memory_order_relaxed);
    for (std::thread &thread : threads_)
      if (thread.joinable())
        thread.join();
  }

  const plan::LoadedPlan &plan_;
  const WeightFiles &files_;
  const WeightPieces &cut_;
  WeightSink &sink_;
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
  unsigned running_ = 0;
  std::vector<std::thread> threads_;
};

} // namespace

void load_weights(const plan::LoadedPlan &plan, const std::vector<WeightPlaces> &places, WeightSink &sink,
                  const WeightLoad &options) {
  const WeightFiles files(plan, options.folder);
  for (const plan::Tensor *tensor : plan::each(plan.root().tensors()))
    check_tensor(plan, *tensor);
  const WeightPieces cut = cut_weights(plan, places);
  const unsigned workers = std::max(1u, options.threads);
  {
    const unsigned allowed = sink.prepare(cut.largest, workers);
    Loading loading(plan, files, cut, sink);
    loading.start(std::clamp(allowed, 1u, workers));
    loading.wait(options.on_progress);
  }
  sink.finish();
  if (options.on_progress)
    options.on_progress(cut.total, cut.total);
}

void load_weights(const plan::LoadedPlan &plan, const std::vector<WeightRegion> &regions, const WeightLoad &options) {
  std::vector<WeightPlaces> places;
  std::vector<std::byte *> data;
  for (const WeightRegion &region : regions) {
    places.push_back(region.places);
    data.push_back(region.data);
  }
  RegionSink sink(std::move(data));
  load_weights(plan, places, sink, options);
}

} // namespace llmrt::exec
