// Embedding lookup; see embedding.h.
#include "kernels/cpu/embedding.h"

#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/impl/rows.h"
#include "kernels/cpu/impl/table.h"
#include "kernels/cpu/linear.h"

namespace llmrt::cpu {

void embedding(Team &team, const Embedding &p) {
  const KernelTable &table = kernels();
  for_rows(team, p.T, p.packed ? p.H * 8 : p.H, [&](int64_t t) {
    float *out = p.out + t * p.out_stride;
    const int64_t id = p.ids[t];
    if (id < p.begin || id >= p.end) {
      std::memset(out, 0, static_cast<size_t>(p.H) * 4);
      return;
    }
    const int64_t row = id - p.begin;
    if (p.packed)
      unpack_weight_row(out, p.table, p.dtype, p.end - p.begin, p.H, row);
    else
      to_f32(out, static_cast<const char *>(p.table) + row * p.H * static_cast<int64_t>(dtype_bytes(p.dtype)),
             p.dtype, p.H);
    if (p.scale != 1.0f)
      table.scale_row(out, p.scale, p.H);
  });
}

} // namespace llmrt::cpu
