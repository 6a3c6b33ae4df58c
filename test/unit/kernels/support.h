// What the kernel tests share: buffers that end at an unmapped page, random data, a parametrised fixture
// that runs every instruction set of this machine.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/isa.h"

namespace llmrt::cpu::test {

// n elements whose end touches a page that faults: reading or writing past it kills the test.
template <class T> class Guarded {
public:
  explicit Guarded(size_t n) : n_(n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (n * sizeof(T) + page - 1) / page * page + page;
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED)
      throw std::bad_alloc();
    char *end = static_cast<char *>(base_) + mapped_ - page;
    mprotect(end, page, PROT_NONE);
    data_ = reinterpret_cast<T *>(end - n * sizeof(T));
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;

  T *data() { return data_; }
  const T *data() const { return data_; }
  size_t size() const { return n_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  void fill(T v) {
    for (size_t i = 0; i < n_; i++)
      data_[i] = v;
  }
  void poison() { std::memset(static_cast<void *>(data_), 0xff, n_ * sizeof(T)); } // NaN as f32, bf16 and f16

private:
  size_t n_, mapped_;
  void *base_;
  T *data_;
};

inline void randomize(Guarded<float> &b, uint32_t seed, float scale = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> d(0, scale);
  for (size_t i = 0; i < b.size(); i++)
    b[i] = d(rng);
}

inline bool same_bits(const float *a, const float *b, size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

class EachIsa : public ::testing::TestWithParam<Isa> {
protected:
  void SetUp() override { force_isa(GetParam()); }
  void TearDown() override { force_isa(available_isas().back()); }
};

inline std::string isa_test_name(const ::testing::TestParamInfo<Isa> &info) {
  return isa_name(info.param);
}

#define INSTANTIATE_EACH_ISA(fixture)                                                                        \
  INSTANTIATE_TEST_SUITE_P(Isa, fixture, ::testing::ValuesIn(llmrt::cpu::available_isas()),                  \
                           llmrt::cpu::test::isa_test_name)

} // namespace llmrt::cpu::test
