// KV page writes, and the split of attention into items for the team: (sequence, KV head, block of query
// rows), and for few long sequences also parts of the keys.
#include "kernels/cpu/attention.h"

#include <algorithm>

#include "kernels/cpu/impl/table.h"

namespace llmrt::cpu {
namespace {

constexpr int64_t kMaxSplitRows = 16; // items with more rows are not split over keys

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Fewer items than this for the team: split them over keys too.
int64_t few_items(int team_size) {
  return 4 * team_size;
}

int64_t max_items(int q_heads, int kv_heads, int64_t tokens) {
  return tokens * kv_heads + ceil_div(tokens * q_heads, kMaxAttentionRows);
}

size_t partial_bytes(int64_t rows, int64_t splits, int64_t head_dim) {
  return aligned(static_cast<size_t>(rows * splits * partial_stride(head_dim)) * 4);
}

struct Span { // parts of the keys that an item's rows can see
  int64_t split0, split1;
};

Span key_span(const PagedAttention &p, int seq, int64_t token0, int64_t token1) {
  const int64_t past = p.context_lens[seq] - (p.seq_starts[seq + 1] - p.seq_starts[seq]);
  const int64_t lo = p.window > 0 ? std::max<int64_t>(0, past + token0 - p.window + 1) : 0;
  return {lo / kSplitKeys, ceil_div(past + token1, kSplitKeys)};
}

} // namespace

void kv_append(Team &team, const KvPool &pool, const float *k, int64_t k_stride, const float *v,
               int64_t v_stride, const int64_t *slot_mapping, int64_t T) {
  const KernelTable &table = kernels();
  const int64_t row_bytes = pool.head_dim * static_cast<int64_t>(dtype_bytes(pool.dtype));
  const int64_t head_bytes = row_bytes * pool.page_size;
  auto rows = [&](int64_t t0, int64_t t1) {
    for (int64_t t = t0; t < t1; t++) {
      const int64_t slot = slot_mapping[t];
      if (slot < 0)
        continue;
      char *at = static_cast<char *>(pool.base) + slot / pool.page_size * pool.page_stride_bytes +
                 slot % pool.page_size * row_bytes;
      for (int64_t h = 0; h < pool.kv_heads; h++, at += head_bytes) {
        table.from_f32(at, pool.dtype, k + t * k_stride + h * pool.head_dim, pool.head_dim);
        table.from_f32(at + pool.kv_heads * head_bytes, pool.dtype, v + t * v_stride + h * pool.head_dim,
                       pool.head_dim);
      }
    }
  };
  if (T * pool.kv_heads * pool.head_dim < 16384)
    return rows(0, T);
  team.parallel([&](int part, int parts) { rows(T * part / parts, T * (part + 1) / parts); });
}

size_t attention_scratch_bytes(int team_size, int q_heads, int kv_heads, int head_dim, int64_t max_tokens,
                               int64_t max_context) {
  const KernelTable &table = kernels();
  size_t bytes = aligned(static_cast<size_t>(q_heads + kv_heads + 1) * sizeof(int32_t));
  const int64_t items = max_items(q_heads, kv_heads, max_tokens), few = few_items(team_size);
  const int64_t splits = ceil_div(max_context, kSplitKeys);
  bytes += aligned(static_cast<size_t>(items + few * splits) * sizeof(AttentionItem));
  bytes += static_cast<size_t>(team_size) * aligned(table.attention_item_scratch(head_dim));
  if (team_size > 1)
    bytes += static_cast<size_t>(few) * partial_bytes(kMaxSplitRows, splits, head_dim);
  return bytes;
}

void paged_attention(Team &team, const PagedAttention &p) {
  const KernelTable &table = kernels();
  const int kv_heads = p.kv.kv_heads;
  int64_t tokens = 0, max_context = 1;
  for (int s = 0; s < p.num_seqs; s++) {
    tokens += p.seq_starts[s + 1] - p.seq_starts[s];
    max_context = std::max<int64_t>(max_context, p.context_lens[s]);
  }
  if (tokens == 0)
    return;
  char *scratch = static_cast<char *>(team.scratch(
      attention_scratch_bytes(team.size(), p.q_heads, kv_heads, p.kv.head_dim, tokens, max_context)));

  // Query heads sorted by KV head.
  int32_t *group_start = reinterpret_cast<int32_t *>(scratch), *group_heads = group_start + kv_heads + 1;
  scratch += aligned(static_cast<size_t>(p.q_heads + kv_heads + 1) * sizeof(int32_t));
  int32_t count = 0;
  for (int h = 0; h < kv_heads; h++) {
    group_start[h] = count;
    for (int q = 0; q < p.q_heads; q++)
      if (p.kv_head_of_q[q] == h)
        group_heads[count++] = q;
  }
  group_start[kv_heads] = count;
  const AttentionCall call{&p, group_heads, group_start};

  // Items, the longest rows of a sequence first.
  AttentionItem *items = reinterpret_cast<AttentionItem *>(scratch);
  const int64_t few = few_items(team.size());
  scratch += aligned(
      static_cast<size_t>(max_items(p.q_heads, kv_heads, tokens) + few * ceil_div(max_context, kSplitKeys)) *
      sizeof(AttentionItem));
  int64_t n = 0;
  for (int s = 0; s < p.num_seqs; s++) {
    const int64_t seq_tokens = p.seq_starts[s + 1] - p.seq_starts[s];
    for (int h = 0; h < kv_heads; h++) {
      const int64_t group = group_start[h + 1] - group_start[h], rows = seq_tokens * group;
      if (rows == 0)
        continue;
      const int64_t blocks = ceil_div(rows, kMaxAttentionRows), block_rows = ceil_div(rows, blocks);
      for (int64_t row0 = (blocks - 1) * block_rows; row0 >= 0; row0 -= block_rows) {
        const int64_t row1 = std::min(rows, row0 + block_rows);
        if (row0 >= row1)
          continue;
        const Span span = key_span(p, s, row0 / group, (row1 - 1) / group + 1);
        items[n++] = {s, h, row0, row1 - row0, span.split0, span.split1, nullptr};
      }
    }
  }
  char *item_scratch = scratch;
  const size_t item_bytes = aligned(table.attention_item_scratch(p.kv.head_dim));
  scratch += static_cast<size_t>(team.size()) * item_bytes;

  // Few items: parts of the keys become items of their own, and their results are merged afterwards.
  int64_t whole = n;
  AttentionItem *parts = items + n;
  if (team.size() > 1 && n < few) {
    whole = 0;
    int64_t num_parts = 0;
    for (int64_t i = 0; i < n; i++) {
      AttentionItem it = items[i];
      const int64_t splits = it.split1 - it.split0;
      if (it.rows > kMaxSplitRows || splits < 2) {
        parts[num_parts++] = it;
        continue;
      }
      it.partial = reinterpret_cast<float *>(scratch);
      scratch += partial_bytes(it.rows, splits, p.kv.head_dim);
      items[whole++] = it; // to be merged
      for (int64_t sp = 0; sp < splits; sp++)
        parts[num_parts++] = {it.seq,
                              it.kv_head,
                              it.row0,
                              it.rows,
                              it.split0 + sp,
                              it.split0 + sp + 1,
                              it.partial + sp * it.rows * partial_stride(p.kv.head_dim)};
    }
    team.for_each_chunk(num_parts, 1, [&](int64_t b, int64_t e, int part) {
      for (; b < e; b++)
        table.attention_item(call, parts[b], item_scratch + static_cast<size_t>(part) * item_bytes);
    });
    for (int64_t i = 0; i < whole; i++)
      table.attention_merge(call, items[i], items[i].split1 - items[i].split0);
    return;
  }
  team.for_each_chunk(n, 1, [&](int64_t b, int64_t e, int part) {
    for (; b < e; b++)
      table.attention_item(call, items[b], item_scratch + static_cast<size_t>(part) * item_bytes);
  });
}

} // namespace llmrt::cpu
