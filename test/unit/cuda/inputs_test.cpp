// A step's inputs on the device: those of steps that follow others are, to the byte, what uploading the same steps whole leaves there,
// whatever comes in between.
#include "runtime/exec/cuda/inputs.h"
#include "test/unit/cuda/device_data.h"
#include "test/unit/exec/following.h"

#include <algorithm>

namespace llmrt::exec::cuda {
namespace {

using namespace llmrt::cuda::testing;

StepLimits limits() {
  StepLimits l;
  l.max_model_len = 100, l.max_num_seqs = 40, l.max_batched_tokens = 200, l.max_logits_rows = 40;
  l.page_size = 4, l.num_pages = 5000, l.vocab = 1000;
  return l;
}

// Sequences that come and go; steps of them as a scheduler composes them.
class Load {
public:
  explicit Load(unsigned seed) : random_(seed) {}

  // Some end, some come, all go on by a token or, where they are new, by several.
  StepBatch whole(uint64_t id, bool from_before) {
    StepBatch b;
    b.id = id;
    b.seq_starts = b.page_starts = {0};
    std::erase_if(seqs_, [&](const Seq &s) { return s.length > 80 || random_() % 8 == 0; });
    const bool chunks = random_() % 2; // prompts, or single tokens only
    const size_t most = 1 + random_() % (chunks ? 10 : limits().max_num_seqs);
    while (seqs_.size() < most)
      seqs_.push_back({static_cast<int32_t>(random_() % 40), {}, random_()});
    for (Seq &s : seqs_) {
      const int count = chunks ? 1 + static_cast<int>(random_() % 12) : 1;
      for (int i = 0; i < count; ++i)
        add_token(s, b, from_before);
      b.logits_rows.push_back(static_cast<int32_t>(b.ids.size()) - 1);
      b.sampling.push_back({true, 1.0f, 0.9f, 0, 40, s.seed, random_() % 50});
      b.seq_starts.push_back(static_cast<int32_t>(b.ids.size()));
      b.context_lens.push_back(s.length);
      b.pages.insert(b.pages.end(), s.pages.begin(), s.pages.end());
      b.page_starts.push_back(static_cast<int32_t>(b.pages.size()));
    }
    return b;
  }
  // The same again.
  StepBatch following(uint64_t id) {
    StepBatch b;
    b.id = id, b.follows = id - 1;
    for (size_t s = 0; s < seqs_.size(); ++s)
      if (seqs_[s].length++ % limits().page_size == 0)
        b.new_pages.push_back({static_cast<int32_t>(s), seqs_[s].pages.emplace_back(a_page())});
    return b;
  }

private:
  struct Seq {
    int32_t length;
    std::vector<int32_t> pages;
    uint64_t seed;
  };
  int32_t a_page() { return static_cast<int32_t>(random_() % limits().num_pages); }
  void add_token(Seq &s, StepBatch &b, bool from_before) {
    const auto page_size = static_cast<int32_t>(limits().page_size);
    while (static_cast<int32_t>(s.pages.size()) * page_size <= s.length)
      s.pages.push_back(a_page());
    b.ids.push_back(static_cast<int32_t>(random_() % limits().vocab));
    if (from_before)
      b.from_rows.push_back(random_() % 2 ? static_cast<int32_t>(random_() % limits().max_logits_rows) : -1);
    b.positions.push_back(s.length);
    b.slot_mapping.push_back(int64_t{s.pages[static_cast<size_t>(s.length / page_size)]} * page_size + s.length % page_size);
    ++s.length;
  }

  std::mt19937 random_;
  std::vector<Seq> seqs_;
};

template <typename T> std::vector<T> read(const T *data, size_t count) {
  std::vector<T> host(count);
  EXPECT_EQ(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
  return host;
}

// `step`: whole.
void expect_equal(const StepInputs &a, const StepInputs &b, const StepBatch &step, const StepShape &shape) {
  const auto tokens = static_cast<size_t>(shape.tokens), rows = static_cast<size_t>(shape.rows), seqs = static_cast<size_t>(shape.seqs);
  EXPECT_EQ(read(a.ids(), tokens), read(b.ids(), tokens));
  EXPECT_EQ(read(a.positions(), tokens), read(b.positions(), tokens));
  EXPECT_EQ(read(a.slot_mapping(), tokens), read(b.slot_mapping(), tokens));
  EXPECT_EQ(read(a.seq_starts(), seqs + 1), read(b.seq_starts(), seqs + 1));
  EXPECT_EQ(read(a.context_lens(), seqs), read(b.context_lens(), seqs));
  EXPECT_EQ(read(a.logits_rows(), rows), read(b.logits_rows(), rows));
  for (size_t s = 0; s < step.context_lens.size(); ++s) {
    const auto pages = static_cast<size_t>(step.page_starts[s + 1] - step.page_starts[s]);
    const size_t at = s * static_cast<size_t>(a.page_table_stride());
    EXPECT_EQ(read(a.page_table() + at, pages), read(b.page_table() + at, pages)) << "sequence " << s;
  }
  const auto draws = [&](const StepInputs &of) {
    return read(reinterpret_cast<const std::byte *>(of.draws()), step.sampling.size() * sizeof(llmrt::cuda::SampleRow));
  };
  ASSERT_EQ(a.draws() == nullptr, b.draws() == nullptr);
  if (a.draws()) {
    EXPECT_EQ(draws(a), draws(b));
  }
}

TEST(StepInputs, OfStepsThatFollowAreThoseOfWholeOnes) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    StepInputs followed(limits()), uploaded(limits());
    Stream stream;
    Load load(seed);
    std::mt19937 random(seed);
    StepBatch last; // whole
    bool draws = false;
    int padding = 0, following = 0;
    for (uint64_t id = 1; id < 120; ++id) {
      std::vector<int32_t> tokens(limits().max_logits_rows);
      for (int32_t &token : tokens)
        token = static_cast<int32_t>(random() % limits().vocab);
      const DeviceBytes drawn(tokens.data(), tokens.size() * sizeof(int32_t));
      const auto longest = std::max_element(last.context_lens.begin(), last.context_lens.end());
      const bool follows = longest != last.context_lens.end() && *longest < static_cast<int32_t>(limits().max_model_len) &&
                           last.ids.size() == last.context_lens.size() && random() % 8 != 0;
      Step next, same;
      if (follows) {
        next.batch = std::make_shared<StepBatch>(load.following(id));
        same.batch = std::make_shared<StepBatch>(test::written_out(last, *next.batch, limits().page_size));
        ++following;
      } else {
        next.batch = same.batch = std::make_shared<StepBatch>(load.whole(id, random() % 2));
        draws = random() % 2;
        padding = static_cast<int>(random() % 20);
      }
      last = *same.batch;
      StepShape shape;
      shape.tokens = std::min<int64_t>(same.tokens() + padding, limits().max_batched_tokens);
      shape.rows = std::min<int64_t>(same.logits_rows() + padding, limits().max_logits_rows);
      shape.seqs = static_cast<int>(std::min<int64_t>(same.seqs() + padding, limits().max_num_seqs));
      if (follows)
        followed.follow(next, drawn.as<int32_t>(), stream);
      else
        followed.upload(next, shape, drawn.as<int32_t>(), draws, stream);
      uploaded.upload(same, shape, drawn.as<int32_t>(), draws, stream);
      LLMRT_CHECK(cudaStreamSynchronize(stream));
      expect_equal(followed, uploaded, last, shape);
      ASSERT_FALSE(::testing::Test::HasFailure()) << "step " << id << ", seed " << seed << (follows ? ", which follows" : "");
    }
    EXPECT_GT(following, 10);
  }
}

} // namespace
} // namespace llmrt::exec::cuda
