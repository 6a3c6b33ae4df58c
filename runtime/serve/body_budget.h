// The memory that the bodies of all requests take together, from their first byte until the API has read them: each is
// bounded, and so is their sum, or some hundred clients could take all memory there is before a key is asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace llmrt::serve {

class BodyBudget {
public:
  explicit BodyBudget(size_t most) : most_(most) {}
  size_t most() const { return most_; }

  /// The part of one request, given back when it ends.
  class Lease {
  public:
    explicit Lease(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
    ~Lease() { budget_->used_ -= bytes_; }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;

    /// False where there is not that much left; it then stays what it was.
    bool grow_to(size_t bytes) {
      if (bytes <= bytes_)
        return true;
      const size_t more = bytes - bytes_;
      if (budget_->used_.fetch_add(more) + more > budget_->most_) {
        budget_->used_ -= more;
        return false;
      }
      bytes_ = bytes;
      return true;
    }

  private:
    const std::shared_ptr<BodyBudget> budget_;
    size_t bytes_ = 0;
  };

private:
  const size_t most_;
  std::atomic<size_t> used_{0};
};

} // namespace llmrt::serve
