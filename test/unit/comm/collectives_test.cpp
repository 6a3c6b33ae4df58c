// The host communicator's results: sums in group order to the bit, gathers of uneven parts, messages in order,
// over 1 to 8 ranks, sizes on both sides of the small/large boundary, strided views, and many rounds.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "test/unit/comm/ranks.h"

using namespace llmrt::comm;
using namespace llmrt::comm::testing;

namespace {

float value(uint32_t rank, size_t row, size_t col, uint32_t round = 0) {
  uint64_t x = (rank * 1000003ull + row) * 8191 + col + round * 77777ull;
  x ^= x >> 13;
  x *= 0x9E3779B97F4A7C15ull;
  x ^= x >> 31;
  return static_cast<float>(static_cast<int64_t>(x >> 40) - (1 << 23)) * 1.17e-4f;
}

float ordered(const std::vector<uint32_t> &group, size_t row, size_t col, uint32_t round = 0) {
  volatile float sum = value(group[0], row, col, round);
  for (size_t i = 1; i < group.size(); ++i)
    sum = sum + value(group[i], row, col, round);
  return sum;
}

struct Shape {
  size_t rows, cols, stride;
};

class AllReduce : public ::testing::TestWithParam<uint32_t> {};

TEST_P(AllReduce, GivesTheOrderedSumToEveryRankBitwise) {
  const uint32_t ranks = GetParam();
  for (const bool spare : {false, true})
    for (const Shape shape : {Shape{1, 1, 1}, Shape{1, 576, 576}, Shape{3, 100, 128}, Shape{5, 4096, 4100},
                              Shape{64, 577, 577}, Shape{2, 20000, 20000}, Shape{200, 576, 1152}}) {
      HostWorldOptions options = one_group(ranks);
      options.cores_to_spare = spare;
      const auto world = HostWorld::create(options);
      std::vector<std::vector<float>> data(ranks);
      const auto errors = run_ranks(*world, ranks, [&](Communicator &comm, uint32_t r) {
        std::vector<float> &mine = data[r];
        mine.assign(shape.rows * shape.stride, -7.0f);
        for (size_t i = 0; i < shape.rows; ++i)
          for (size_t j = 0; j < shape.cols; ++j)
            mine[i * shape.stride + j] = value(r, i, j);
        comm.begin_step(1);
        comm.all_reduce(0, 3, mine.data(), shape.rows, shape.cols, shape.stride);
      });
      for (uint32_t r = 0; r < ranks; ++r) {
        ASSERT_EQ(errors[r], "");
        for (size_t i = 0; i < shape.rows; ++i)
          for (size_t j = 0; j < shape.stride; ++j) {
            const float expected = j < shape.cols ? ordered(options.groups[0].ranks, i, j) : -7.0f;
            ASSERT_EQ(data[r][i * shape.stride + j], expected) << "rank " << r << " row " << i << " col " << j;
          }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllReduce, ::testing::Range(1u, 9u));

TEST(AllReduceOrder, FollowsTheGroupNotTheRankNumbers) {
  HostWorldOptions options;
  options.ranks = 3;
  options.groups = {{"turned", {2, 0, 1}}};
  const auto world = HostWorld::create(options);
  // 1e8 + 1 is 1e8 in float: only (1e8 - 1e8) + 1 keeps the one.
  const float inputs[3] = {-1e8f, 1.0f, 1e8f};
  float results[3];
  run_ranks(*world, 3, [&](Communicator &comm, uint32_t r) {
    results[r] = inputs[r];
    comm.all_reduce(0, 0, &results[r], 1, 1, 1);
  });
  for (float result : results)
    EXPECT_EQ(result, 1.0f);
}

TEST(AllReduceRows, EachRowsBitsAreIndependentOfTheOthers) {
  const uint32_t ranks = 6;
  const size_t cols = 576;
  std::vector<float> alone(cols), among(300 * cols);
  for (const size_t rows : {size_t{1}, size_t{300}}) {
    const auto world = HostWorld::create(one_group(ranks));
    std::vector<std::vector<float>> data(ranks, std::vector<float>(rows * cols));
    run_ranks(*world, ranks, [&](Communicator &comm, uint32_t r) {
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < cols; ++j)
          data[r][i * cols + j] = value(r, rows == 1 ? 123 : i, j);
      comm.all_reduce(0, 0, data[r].data(), rows, cols, cols);
    });
    (rows == 1 ? alone : among) = data[4];
  }
  EXPECT_EQ(std::memcmp(alone.data(), among.data() + 123 * cols, cols * sizeof(float)), 0);
}

class Gathers : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Gathers, PutUnevenColumnsInGroupOrder) {
  const uint32_t ranks = GetParam();
  for (const size_t rows : {size_t{1}, size_t{7}, size_t{90}})
    for (const uint32_t root : {0u, ranks - 1}) {
      std::vector<uint64_t> counts, bytes;
      size_t total = 0;
      for (uint32_t r = 0; r < ranks; ++r) {
        counts.push_back(r == 1 ? 0 : 129 + 1000 * r); // a member with nothing to give, too
        bytes.push_back(counts.back() * sizeof(float));
        total += counts.back();
      }
      const auto world = HostWorld::create(one_group(ranks));
      std::vector<std::vector<float>> all(ranks), rooted(ranks);
      const auto errors = run_ranks(*world, ranks, [&](Communicator &comm, uint32_t r) {
        std::vector<float> part(rows * (counts[r] + 3));
        for (size_t i = 0; i < rows; ++i)
          for (size_t j = 0; j < counts[r]; ++j)
            part[i * (counts[r] + 3) + j] = value(r, i, j);
        const ConstBlock in{part.data(), rows, bytes[r], (counts[r] + 3) * sizeof(float)};
        all[r].assign(rows * (total + 5), -7);
        rooted[r].assign(r == root ? rows * total : 0, -7);
        comm.all_gather(0, 1, {all[r].data(), rows, total * 4, (total + 5) * 4}, in, bytes);
        comm.gather(0, 2, root, r == root ? Block{rooted[r].data(), rows, total * 4, total * 4} : Block{}, in, bytes);
      });
      for (uint32_t r = 0; r < ranks; ++r) {
        ASSERT_EQ(errors[r], "");
        for (size_t i = 0; i < rows; ++i) {
          size_t at = 0;
          for (uint32_t from = 0; from < ranks; ++from)
            for (size_t j = 0; j < counts[from]; ++j, ++at) {
              ASSERT_EQ(all[r][i * (total + 5) + at], value(from, i, j));
              if (r == root) {
                ASSERT_EQ(rooted[r][i * total + at], value(from, i, j));
              }
            }
          for (size_t pad = total; pad < total + 5; ++pad)
            ASSERT_EQ(all[r][i * (total + 5) + pad], -7.0f);
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Gathers, ::testing::Values(1u, 2u, 3u, 5u, 8u));

TEST(Gathers, TakeAPartThatAlreadyLiesInItsPlace) {
  const auto world = HostWorld::create(one_group(2));
  std::vector<std::vector<float>> out(2, std::vector<float>(2 * 5, 0));
  const std::vector<uint64_t> bytes{8, 12};
  const auto errors = run_ranks(*world, 2, [&](Communicator &comm, uint32_t r) {
    float *mine = out[r].data() + (r == 0 ? 0 : 2);
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < (r == 0 ? 2 : 3); ++j)
        mine[i * 5 + j] = value(r, i, j);
    comm.all_gather(0, 0, {out[r].data(), 2, 20, 20}, {mine, 2, bytes[r], 20}, bytes);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(out[0], out[1]);
  EXPECT_EQ(out[0][5 + 4], value(1, 1, 2));
}

TEST(Messages, ArriveInOrderWhileTheSenderRunsAhead) {
  HostWorldOptions options;
  options.ranks = 3;
  const size_t cols = 96;
  options.channels = {{0, 1, 2, 50 * cols * 4}, {1, 2, 2, 50 * cols * 4}};
  const auto world = HostWorld::create(options);
  constexpr uint32_t kSteps = 400;
  const auto errors = run_ranks(*world, 3, [&](Communicator &comm, uint32_t r) {
    std::vector<float> rows(50 * 100);
    for (uint32_t step = 1; step <= kSteps; ++step) {
      const size_t n = 1 + step % 50;
      comm.begin_step(step);
      if (r == 0)
        for (size_t i = 0; i < n; ++i)
          for (size_t j = 0; j < cols; ++j)
            rows[i * 100 + j] = value(0, i, j, step);
      else
        comm.recv(r - 1, 9, {rows.data(), n, cols * 4, 400});
      if (r < 2)
        comm.send(r + 1, 9, {rows.data(), n, cols * 4, 400});
      else
        for (size_t i = 0; i < n; ++i)
          for (size_t j = 0; j < cols; ++j)
            if (rows[i * 100 + j] != value(0, i, j, step))
              throw llmrt::Error("step " + std::to_string(step) + ": a wrong value arrived");
    }
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
}

TEST(Stress, SixRanksInTwoStagesOverManySteps) {
  // The shape of a 3 × 2 plan: all-reduces inside the stages, messages between them, a gather at the end; timing
  // is shaken by random pauses. Every sum is checked.
  HostWorldOptions options;
  options.ranks = 6;
  options.groups = {{"stage0", {0, 1, 2}}, {"stage1", {3, 4, 5}}};
  for (uint32_t r = 0; r < 3; ++r)
    options.channels.push_back({r, r + 3, 2, 40 * 64 * 4});
  const auto world = HostWorld::create(options);
  constexpr uint32_t kSteps = 300, kLayers = 4;
  const auto errors = run_ranks(*world, 6, [&](Communicator &comm, uint32_t r) {
    std::mt19937 random(r);
    const uint32_t stage = r / 3;
    std::vector<float> rows(40 * 64), logits(40 * 192);
    const std::vector<uint64_t> parts(3, 256);
    for (uint32_t step = 1; step <= kSteps; ++step) {
      const size_t n = step % 7 == 0 ? 40 : 1 + step % 3;
      comm.begin_step(step);
      if (stage == 1)
        comm.recv(r - 3, 0, {rows.data(), n, 256, 256});
      for (uint32_t layer = 0; layer < kLayers; ++layer) {
        for (size_t i = 0; i < n * 64; ++i)
          rows[i] = value(r, i / 64, i % 64, step * 10 + layer);
        if (random() % 16 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        comm.all_reduce(stage, layer, rows.data(), n, 64, 64);
        for (size_t i = 0; i < n * 64; ++i)
          if (rows[i] != ordered(options.groups[stage].ranks, i / 64, i % 64, step * 10 + layer))
            throw llmrt::Error("a wrong sum at step " + std::to_string(step));
      }
      if (stage == 0)
        comm.send(r + 3, 0, {rows.data(), n, 256, 256});
      else
        comm.gather(1, 100, 0, r == 3 ? Block{logits.data(), n, 768, 768} : Block{}, {rows.data(), n, 256, 256},
                    parts);
    }
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
}

} // namespace
