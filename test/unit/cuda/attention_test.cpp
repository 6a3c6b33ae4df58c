// Paged attention and KV append against double precision: ragged mixes of prefill and decode, uneven groups, windows,
// softcap, every head_dim class, long contexts that split.
#include "test/unit/cuda/device_data.h"

#include <algorithm>
#include <numeric>

namespace llmrt::cuda::testing {
namespace {

struct Case {
  DType type;
  int head_dim;
  std::vector<uint16_t> kv_head_of_q;
  std::vector<int> queries, contexts; // per sequence: new tokens, tokens in all
  int window = 0;
  float softcap = 0;
  int page_size = 16;
  int page_gap = 0; // bytes between pages
  int64_t pair_rows = kPairRows;
};

void check(const Case &c) {
  SCOPED_TRACE(::testing::Message() << "type " << int(c.type) << " head_dim " << c.head_dim << " seqs " << c.queries.size()
                                    << " window " << c.window);
  const int q_heads = int(c.kv_head_of_q.size()), kv_heads = c.kv_head_of_q.back() + 1, S = int(c.queries.size());
  const int64_t T = std::accumulate(c.queries.begin(), c.queries.end(), 0), D = c.head_dim;
  const int stride = *std::max_element(c.contexts.begin(), c.contexts.end()) / c.page_size + 2;
  std::vector<int32_t> starts = {0}, table(S * stride, -1);
  std::vector<int> free_pages;
  for (int s = 0; s < S; ++s)
    starts.push_back(starts.back() + c.queries[s]);
  int pages = 0;
  for (int s = 0; s < S; ++s)
    for (int p = 0; p * c.page_size < c.contexts[s]; ++p)
      table[s * stride + p] = pages++;
  std::mt19937 engine(7);
  std::vector<int> shuffled(pages);
  std::iota(shuffled.begin(), shuffled.end(), 0);
  std::shuffle(shuffled.begin(), shuffled.end(), engine);
  for (int32_t &p : table)
    if (p >= 0)
      p = shuffled[p];

  // Keys and values of every position, appended through kv_append in one go per sequence.
  const int64_t page_bytes = int64_t(2) * kv_heads * c.page_size * D * dtype_bytes(c.type) + c.page_gap;
  DeviceBytes pool(pages * page_bytes);
  ASSERT_CUDA(cudaMemset(pool.get(), 0xff, pages * page_bytes)); // not a number, where nothing is written
  std::vector<Tensor *> keys, values;
  for (int s = 0; s < S; ++s) {
    keys.push_back(new Tensor(size_t(c.contexts[s]) * kv_heads * D, c.type, 100 + s));
    values.push_back(new Tensor(size_t(c.contexts[s]) * kv_heads * D, c.type, 200 + s));
    std::vector<int64_t> slots(c.contexts[s]);
    for (int i = 0; i < c.contexts[s]; ++i)
      slots[i] = int64_t(table[s * stride + i / c.page_size]) * c.page_size + i % c.page_size;
    DeviceBytes device_slots(slots.data(), slots.size() * 8);
    kv_append({{pool.get(), page_bytes, c.type, kv_heads, c.page_size, int(D)}, keys[s]->device.get(), values[s]->device.get(),
               kv_heads * D, kv_heads * D, device_slots.as<int64_t>(), c.contexts[s], c.type},
              nullptr);
    ASSERT_CUDA(cudaDeviceSynchronize());
  }

  const int64_t ld = q_heads * D + 8;
  Tensor q(T * ld, c.type, 1);
  DeviceBytes out(T * ld * dtype_bytes(c.type));
  DeviceBytes d_starts(starts.data(), starts.size() * 4), d_contexts(c.contexts.data(), S * 4), d_table(table.data(), table.size() * 4),
      d_map(c.kv_head_of_q.data(), q_heads * 2), workspace(attention_workspace_bytes(T, S, q_heads, int(D)));
  ASSERT_CUDA(cudaMemset(workspace.get(), 0, attention_workspace_bytes(T, S, q_heads, int(D))));
  Attention a = {};
  a.out = out.get(), a.ld_out = ld, a.q = q.device.get(), a.ld_q = ld;
  a.pool = {pool.get(), page_bytes, c.type, kv_heads, c.page_size, int(D)};
  a.kv_head_of_q = d_map.as<uint16_t>(), a.seq_starts = d_starts.as<int32_t>(), a.context_lens = d_contexts.as<int32_t>();
  a.page_table = d_table.as<int32_t>(), a.page_table_stride = stride;
  a.T = T, a.S = S, a.q_heads = q_heads, a.scale = 1.0f / std::sqrt(float(D)), a.window = c.window, a.softcap = c.softcap;
  for (int h = 0; h < kv_heads; ++h)
    a.max_group = std::max<int>(a.max_group, std::count(c.kv_head_of_q.begin(), c.kv_head_of_q.end(), h));
  a.max_query = *std::max_element(c.queries.begin(), c.queries.end());
  a.max_context = *std::max_element(c.contexts.begin(), c.contexts.end());
  a.act = c.type, a.workspace = workspace.get(), a.pair_rows = c.pair_rows;
  attention(a, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUDA(cudaGetLastError());

  // The workspace is as it was, and the same call gives the same bits.
  const std::vector<unsigned char> once = out.read<unsigned char>();
  attention(a, nullptr);
  EXPECT_EQ(out.read<unsigned char>(), once);
  std::vector<float> raw = decode(once, c.type), got;
  std::vector<double> want;
  for (int s = 0; s < S; ++s)
    for (int i = 0; i < c.queries[s] && c.contexts[s] > 0; ++i) { // padded sequences have no result
      const int64_t t = starts[s] + i;
      const int position = c.contexts[s] - c.queries[s] + i;
      for (int h = 0; h < q_heads; ++h) {
        const int kv = c.kv_head_of_q[h];
        std::vector<double> o(D, 0.0), scores;
        const int first = c.window ? std::max(0, position - c.window + 1) : 0;
        double top = -1e300, total = 0;
        for (int j = first; j <= position; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < D; ++d)
            dot += double(q.host[t * ld + h * D + d]) * keys[s]->host[(int64_t(j) * kv_heads + kv) * D + d];
          dot *= a.scale;
          if (c.softcap > 0)
            dot = c.softcap * std::tanh(dot / c.softcap);
          scores.push_back(dot);
          top = std::max(top, dot);
        }
        for (int j = first; j <= position; ++j) {
          const double p = std::exp(scores[j - first] - top);
          total += p;
          for (int64_t d = 0; d < D; ++d)
            o[d] += p * values[s]->host[(int64_t(j) * kv_heads + kv) * D + d];
        }
        for (int64_t d = 0; d < D; ++d)
          got.push_back(raw[t * ld + h * D + d]), want.push_back(o[d] / total);
      }
    }
  EXPECT_LT(relative_error(got, want), c.type == DType::f32 ? 1e-5 : c.type == DType::f16 ? 2e-3 : 1e-2);
  for (int s = 0; s < S; ++s)
    delete keys[s], delete values[s];
}

std::vector<uint16_t> even(int q_heads, int kv_heads) {
  std::vector<uint16_t> map;
  for (int h = 0; h < q_heads; ++h)
    map.push_back(uint16_t(h / (q_heads / kv_heads)));
  return map;
}

TEST(Attention, HeadDims) {
  for (DType t : kTypes)
    for (int dim : {10, 36, 64, 80, 96, 100, 128, 224, 256}) // rows of the first are of other than 8 bytes
      check({t, dim, even(6, 2), {1, 33, 5}, {40, 33, 90}});
}

TEST(Attention, DecodeOfManyAndLongContexts) {
  check({DType::bf16, 128, even(28, 4), {1, 1, 1, 1, 1}, {1, 16, 17, 700, 333}});
  check({DType::bf16, 128, even(28, 4), {1}, {5000}});
  check({DType::f16, 64, even(9, 3), {1, 1}, {3000, 2}});
  check({DType::bf16, 64, even(16, 16), {1, 1, 1}, {64, 65, 1000}});
}

// Splits within a cluster and over a second kernel; windows that begin inside a page; many sequences.
TEST(Attention, DecodeSplits) {
  check({DType::bf16, 128, even(7, 1), {1}, {9000}});
  check({DType::bf16, 128, even(7, 1), {2}, {300}});
  check({DType::f16, 128, even(8, 8), {1}, {6000}});
  check({DType::bf16, 128, even(8, 2), {1, 1, 3}, {500, 1500, 900}, 333});
  check({DType::bf16, 64, even(8, 2), {1, 4}, {500, 1500}, 100, 30.0f});
  check({DType::bf16, 256, even(4, 2), {1, 1}, {1000, 31}});
  check({DType::bf16, 100, even(4, 2), {1, 1}, {700, 31}, 0, 0, 4});
  check({DType::bf16, 128, even(8, 2), {1, 1}, {700, 31}, 0, 0, 32});
  std::vector<int> ones(150, 1), contexts;
  for (int i = 0; i < 150; ++i)
    contexts.push_back(1 + i * 37 % 300);
  check({DType::bf16, 128, even(14, 2), ones, contexts});
}

// Batches large enough that their keys are dealt out evenly: sequences that one warp, one block or many blocks work on, padded
// ones in between, groups of one tile and of two, windows that begin inside a step, prompts that other kernels take.
TEST(Attention, DecodeOfRaggedBatches) {
  std::mt19937 engine(3);
  auto lengths = [&](int n, int most) {
    std::vector<int> v(n);
    for (int &x : v)
      x = int(engine() % uint32_t(most + 1));
    return v;
  };
  auto repeat = [](int n, const std::vector<int> &of) {
    std::vector<int> v;
    for (int i = 0; i < n; ++i)
      v.insert(v.end(), of.begin(), of.end());
    return v;
  };
  auto ones = [](int n) { return std::vector<int>(n, 1); };
  check({DType::bf16, 128, even(28, 4), ones(64), lengths(64, 400)});
  check({DType::bf16, 128, even(7, 1), ones(300), lengths(300, 100)});
  check({DType::f16, 128, even(8, 8), ones(40), lengths(40, 300)});
  check({DType::bf16, 64, even(9, 3), ones(90), lengths(90, 200)});
  check({DType::bf16, 128, even(16, 1), ones(150), lengths(150, 200)});
  check({DType::bf16, 128, even(16, 4), repeat(6, {1, 2, 3, 1, 4, 1, 2}), repeat(6, {100, 2, 333, 17, 64, 1, 400})});
  check({DType::bf16, 128, even(28, 4), ones(43), lengths(43, 500), 129, 20.0f});
  check({DType::f16, 64, even(8, 2), ones(77), lengths(77, 400), 40, 0, 32});
  check({DType::bf16, 128, even(14, 2), repeat(10, {40, 1, 1, 2, 60, 1, 1}), repeat(10, {40, 200, 0, 133, 90, 1, 77})});
  check({DType::bf16, 128, even(4, 1), ones(200), repeat(200, {0})});
  // Lengths so different that blocks share sequences.
  check({DType::bf16, 128, even(7, 1), ones(200), lengths(200, 3000)});
  check({DType::f16, 64, even(6, 3), ones(100), lengths(100, 3000), 0, 15.0f});
  std::vector<int> several = lengths(150, 2000);
  for (int &x : several)
    x += 3;
  check({DType::bf16, 128, even(4, 1), repeat(50, {3, 1, 2}), several});
  std::vector<int> one_long(40, 3);
  one_long[7] = 20000;
  check({DType::bf16, 128, even(28, 4), ones(40), one_long});
  std::vector<int> many = lengths(1024, 30);
  check({DType::bf16, 64, even(3, 1), ones(1024), many});
  many.push_back(5); // more than are dealt out
  check({DType::bf16, 64, even(3, 1), ones(1025), many});
}

TEST(Attention, PrefillChunksAndWindows) {
  check({DType::bf16, 128, even(8, 2), {200, 64, 3}, {200, 164, 500}});
  check({DType::bf16, 128, even(8, 2), {150, 1, 20}, {150, 400, 120}, 33});
  check({DType::f16, 96, even(4, 4), {130, 1}, {300, 77}, 16, 20.0f});
  check({DType::f32, 64, even(4, 2), {30, 1}, {100, 77}, 16, 20.0f});
}

// Many tiles of keys, pages of every kind (24 is no power of two), rows that fill no block.
TEST(Attention, LongPrefill) {
  check({DType::bf16, 128, even(4, 2), {600, 30}, {900, 500}});
  check({DType::f16, 128, even(3, 1), {257}, {700}, 200});
  check({DType::bf16, 64, even(4, 2), {300, 1, 129}, {1000, 40, 129}, 0, 0, 4});
  check({DType::f16, 64, even(2, 1), {300}, {555}, 130, 25.0f, 32});
  for (int page_size : {2, 8, 24, 64, 128, 256}) {
    check({DType::bf16, 128, even(4, 2), {100, 190}, {333, 900}, 0, 0, page_size});
    check({DType::bf16, 64, even(7, 1), {100, 20}, {512, 260}, 70, 0, page_size});
  }
  for (int page_size : {8, 16, 64, 256}) // pages apart; contexts that end within a page, at its end and at a tile's
    check({DType::bf16, 128, even(6, 2), {129, 90, 128}, {257, 400, 512}, 0, 0, page_size, 48});
}

// More row blocks than multiprocessors, which are dealt out; prompts among many sequences that decode; rows of less than a tile
// of keys, of so many keys that KV heads take turns, and of KV heads without any.
TEST(Attention, DealtPrefill) {
  std::mt19937 engine(5);
  std::vector<int> queries, contexts;
  for (int i = 0; i < 60; ++i) {
    queries.push_back(1 + int(engine() % 150));
    contexts.push_back(queries.back() + int(engine() % 90));
  }
  check({DType::bf16, 64, even(8, 1), queries, contexts});
  check({DType::f16, 128, even(6, 2), queries, contexts, 50, 0, 8});
  check({DType::bf16, 64, {0, 1, 1, 1, 1, 1, 1}, queries, contexts, 0, 20.0f, 64});
  check({DType::bf16, 128, even(8, 2), std::vector<int>(150, 20), std::vector<int>(150, 20)});
  queries.assign(300, 1), contexts.assign(300, 20);
  queries[5] = 130, contexts[5] = 140;
  queries[190] = 70, contexts[190] = 300;
  queries[299] = 33, contexts[299] = 33;
  contexts[7] = 0;
  check({DType::bf16, 128, even(14, 2), queries, contexts});
  check({DType::bf16, 128, even(4, 4), {40, 33}, {13000, 200}});
  check({DType::bf16, 128, even(28, 4), {500}, {500}});
}

// Pairs of blocks that share what they fetch, also for shorter sequences than they are meant for: rows that fill no pair or only half
// of one, tiles that one of the two does not see, pages of less and of more than a block's share, more pairs than are at work at once.
TEST(Attention, PairedPrefill) {
  const auto paired = [](Case c) {
    c.pair_rows = 1;
    check(c);
  };
  paired({DType::bf16, 128, even(28, 4), {500, 1, 40, 18}, {500, 77, 40, 300}});
  paired({DType::f16, 128, even(8, 2), {700}, {900}, 333});
  paired({DType::bf16, 64, even(8, 1), {300, 3, 17, 1}, {1000, 30, 17, 0}, 0, 20.0f, 8});
  paired({DType::f16, 64, even(2, 2), {2100, 130}, {2100, 200}});
  for (int page_size : {32, 64, 128, 256})
    paired({DType::bf16, 128, even(8, 1), {270, 2}, {page_size == 64 ? 384 : 401, 50}, 100, 0, page_size, 48});
  paired({DType::bf16, 64, {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2}, {260, 90}, {777, 90}});
  std::mt19937 engine(6);
  std::vector<int> queries = {290}, contexts = {300};
  for (int i = 0; i < 24; ++i) {
    queries.push_back(1 + int(engine() % 250));
    contexts.push_back(queries.back() + int(engine() % 60));
  }
  paired({DType::bf16, 64, even(16, 2), queries, contexts});
  paired({DType::f16, 64, even(16, 2), queries, contexts, 70});
}

TEST(Attention, UnevenGroupsAndWideGroups) {
  check({DType::bf16, 64, {0, 0, 1, 1, 1}, {1, 40, 7}, {100, 40, 30}});
  check({DType::bf16, 128, even(40, 2), {1, 5}, {50, 80}}); // 20 heads on one KV head: more rows than a decode block
  check({DType::bf16, 80, {0}, {17, 1}, {17, 9}, 0, 0, 4});
}

} // namespace
} // namespace llmrt::cuda::testing
