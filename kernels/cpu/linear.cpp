// Packing of weights, and the split of a product into blocks of rows and panels for the team.
#include "kernels/cpu/linear.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/impl/pack_quant.h"
#include "kernels/cpu/impl/table.h"

namespace llmrt::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
int block_rows(DType t) {
  return is_quantized(t) ? kernels().quant_block_rows : kernels().block_rows;
}
int64_t padded_k(DType t, int64_t K) {
  return t == DType::f32 ? K : ceil_div(K, 2) * 2;
}

// Element index of (n, k) in a packed weight.
int64_t packed_index(DType t, int64_t K, int64_t n, int64_t k) {
  const int64_t panel = n / kPanelRows * kPanelRows * padded_k(t, K), lane = n % kPanelRows;
  return t == DType::bf16 ? panel + k / 2 * 2 * kPanelRows + lane * 2 + k % 2 : panel + k * kPanelRows + lane;
}

template <class T> void scatter(T *dst, DType t, int64_t K, int64_t n, int64_t k0, int64_t k1, const T *row) {
  if (t == DType::bf16) {
    T *d = dst + packed_index(t, K, n, k0);
    for (int64_t k = k0; k < k1; k += 2, d += 2 * kPanelRows) { // k0 is even
      d[0] = row[k - k0];
      d[1] = k + 1 < K ? row[k + 1 - k0] : T(0);
    }
    return;
  }
  T *d = dst + packed_index(t, K, n, k0);
  for (int64_t k = k0; k < k1; k++, d += kPanelRows)
    *d = row[k - k0];
  if (k1 == K && padded_k(t, K) > K)
    *d = T(0);
}

// Up to this many rows the weights' bytes bound the product, and the team splits the panels; with more rows
// each thread takes its own rows, as packed rows and results then stay in its own cache.
int64_t most_streaming_rows(DType t) {
  return int64_t{block_rows(t)} * 4;
}

// Rows that one thread takes at a time: enough to be bound by arithmetic, few enough to share out evenly.
int64_t item_rows(DType t, int64_t M, int team_size) {
  const int64_t most = ceil_div(64, block_rows(t)) * block_rows(t);
  const int64_t items = ceil_div(ceil_div(M, most), team_size) * team_size;
  return ceil_div(M, items);
}

int64_t tile_floats(int64_t rows) {
  return std::max<int64_t>(rows * 2, 32) * kPanelRows;
}

// Rows as f32 padded to 32 elements, and a sum of each 32.
size_t packed_rows_bytes(int64_t rows, int64_t K) {
  return static_cast<size_t>(ceil_div(rows * ceil_div(K, 32) * 33 * 4, 64) * 64);
}

LinearTask task_for_rows(const Linear &p, int64_t m0, int64_t rows, void *packed_rows) {
  LinearTask t;
  t.x.data = packed_rows;
  t.x.sums = static_cast<float *>(packed_rows) + rows * ceil_div(p.K, 32) * 32;
  t.x.rows = rows;
  t.x.K = p.K;
  t.x.block_rows = ceil_div(rows, ceil_div(rows, block_rows(p.dtype)));
  t.w = p.w;
  t.dtype = p.dtype;
  t.N = p.N;
  t.y = p.y + m0 * p.ldy;
  t.ldy = p.ldy;
  t.bias = p.bias;
  t.add = p.add ? p.add + m0 * p.ld_add : nullptr;
  t.ld_add = p.ld_add;
  return t;
}

void split_panels(Team &team, const Linear &p, int64_t m0, int64_t rows) {
  const KernelTable &table = kernels();
  char *scratch = static_cast<char *>(team.scratch(linear_scratch_bytes(team.size(), rows, p.K)));
  float *tiles = reinterpret_cast<float *>(scratch + packed_rows_bytes(rows, p.K));
  const LinearTask t = task_for_rows(p, m0, rows, scratch);
  const float *x = p.x + m0 * p.ldx;
  if (rows * p.K <= 16384) // a few microseconds: less than it takes to share it
    table.pack_rows(t.x, p.dtype, x, p.ldx, 0, rows);
  else
    team.parallel([&](int part, int parts) {
      table.pack_rows(t.x, p.dtype, x, p.ldx, rows * part / parts, rows * (part + 1) / parts);
    });
  const int64_t panels = ceil_div(p.N, kPanelRows), tile = tile_floats(rows);
  team.parallel([&](int part, int parts) {
    table.linear_panels(t, panels * part / parts, panels * (part + 1) / parts, tiles + part * tile);
  });
}

void split_rows(Team &team, const Linear &p) {
  const KernelTable &table = kernels();
  const int64_t rows = item_rows(p.dtype, p.M, team.size()), panels = ceil_div(p.N, kPanelRows);
  const size_t packed = packed_rows_bytes(rows, p.K),
               each = packed + static_cast<size_t>(tile_floats(rows)) * 4;
  char *scratch = static_cast<char *>(team.scratch(each * static_cast<size_t>(team.size())));
  team.for_each_chunk(p.M, rows, [&](int64_t m0, int64_t m1, int part) {
    char *own = scratch + static_cast<size_t>(part) * each;
    const LinearTask t = task_for_rows(p, m0, m1 - m0, own);
    table.pack_rows(t.x, p.dtype, p.x + m0 * p.ldx, p.ldx, 0, m1 - m0);
    table.linear_panels(t, 0, panels, reinterpret_cast<float *>(own + packed));
  });
}

} // namespace

size_t packed_weight_bytes(DType dtype, int64_t N, int64_t K) {
  if (is_quantized(dtype))
    return static_cast<size_t>(ceil_div(N, kPanelRows) * (K / 32) * quant_block_bytes(dtype));
  return static_cast<size_t>(ceil_div(N, kPanelRows) * kPanelRows * padded_k(dtype, K)) * dtype_bytes(dtype);
}

void pack_weight_padding(void *packed, DType dtype, int64_t N, int64_t K) {
  if (is_quantized(dtype))
    return pack_quantized_padding(packed, dtype, N, K);
  const int64_t k2 = padded_k(dtype, K), es = static_cast<int64_t>(dtype_bytes(dtype));
  char *panel = static_cast<char *>(packed) + N / kPanelRows * kPanelRows * k2 * es;
  const int64_t used = N % kPanelRows;
  if (used == 0)
    return;
  const int64_t unit = dtype == DType::bf16 ? 4 : es; // bytes of one row in one step
  const int64_t steps = k2 * es / unit;
  for (int64_t s = 0; s < steps; s++, panel += kPanelRows * unit)
    std::memset(panel + used * unit, 0, static_cast<size_t>((kPanelRows - used) * unit));
}

void pack_weight_rows(void *packed, DType dtype, int64_t, int64_t K, int64_t n0, int64_t rows,
                      const void *src, DType src_dtype, int64_t src_ld) {
  constexpr int64_t kTile =
      256; // columns at a time, so that the panel's lines stay in cache over its 16 rows
  float wide[kTile];
  uint16_t half[kTile];
  const int64_t src_es = static_cast<int64_t>(dtype_bytes(src_dtype));
  for (int64_t p0 = n0; p0 < n0 + rows;) {
    const int64_t p1 = std::min(n0 + rows, (p0 / kPanelRows + 1) * kPanelRows);
    for (int64_t k0 = 0; k0 < K; k0 += kTile) {
      const int64_t k1 = std::min(K, k0 + kTile);
      for (int64_t n = p0; n < p1; n++) {
        const char *s = static_cast<const char *>(src) + ((n - n0) * src_ld + k0) * src_es;
        if (dtype == DType::f32) {
          to_f32(wide, s, src_dtype, k1 - k0);
          scatter(static_cast<float *>(packed), dtype, K, n, k0, k1, wide);
        } else {
          if (src_dtype == dtype) {
            std::memcpy(half, s, static_cast<size_t>((k1 - k0) * 2));
          } else {
            to_f32(wide, s, src_dtype, k1 - k0);
            from_f32(half, dtype, wide, k1 - k0);
          }
          scatter(static_cast<uint16_t *>(packed), dtype, K, n, k0, k1, half);
        }
      }
    }
    p0 = p1;
  }
}

void unpack_weight_row(float *out, const void *packed, DType dtype, int64_t, int64_t K, int64_t n) {
  if (is_quantized(dtype))
    return unpack_quantized_row(out, packed, dtype, K, n);
  if (dtype == DType::f32) {
    const float *p = static_cast<const float *>(packed) + packed_index(dtype, K, n, 0);
    for (int64_t k = 0; k < K; k++)
      out[k] = p[k * kPanelRows];
    return;
  }
  const uint16_t *p = static_cast<const uint16_t *>(packed) + packed_index(dtype, K, n, 0);
  constexpr int64_t kTile = 256;
  uint16_t half[kTile];
  for (int64_t k0 = 0; k0 < K; k0 += kTile) {
    const int64_t kn = std::min(kTile, K - k0);
    if (dtype == DType::bf16) {
      for (int64_t k = 0; k < kn; k++)
        half[k] = p[(k0 + k) / 2 * 2 * kPanelRows + (k0 + k) % 2];
    } else {
      for (int64_t k = 0; k < kn; k++)
        half[k] = p[(k0 + k) * kPanelRows];
    }
    to_f32(out + k0, half, dtype, kn);
  }
}

size_t linear_scratch_bytes(int team_size, int64_t max_M, int64_t K) {
  const int64_t shared = std::min(max_M, std::max(most_streaming_rows(DType::f32), int64_t{64} * team_size));
  const int64_t own = std::min<int64_t>(max_M, 64 + kernels().block_rows);
  const size_t team = static_cast<size_t>(team_size);
  return std::max(packed_rows_bytes(shared, K) + team * static_cast<size_t>(tile_floats(shared)) * 4,
                  team * (packed_rows_bytes(own, K) + static_cast<size_t>(tile_floats(own)) * 4));
}

void linear(Team &team, const Linear &p) {
  if (p.M <= 0)
    return;
  if (p.M > most_streaming_rows(p.dtype) && p.M > int64_t{32} * team.size())
    return split_rows(team, p);
  split_panels(team, p, 0, p.M);
}

} // namespace llmrt::cpu
