// A range of anonymous memory from the kernel: page-aligned, zero, committed page by page as it is touched.
// Weights, arenas and KV pools live in such regions, so that their size is known to the byte and freed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace llmrt {

class Region {
public:
  Region() = default;
  // Throws llmrt::Error, naming `purpose` and the bytes asked for, when the kernel refuses.
  Region(size_t bytes, const std::string &purpose);
  ~Region();
  Region(Region &&other) noexcept { swap(other); }
  Region &operator=(Region &&other) noexcept {
    Region(std::move(other)).swap(*this);
    return *this;
  }
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;

  std::byte *data() const { return data_; }
  size_t size() const { return size_; }     // bytes asked for
  size_t mapped() const { return mapped_; } // bytes held: size() rounded up to pages

private:
  void swap(Region &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
  }

  std::byte *data_ = nullptr;
  size_t size_ = 0, mapped_ = 0;
};

} // namespace llmrt
