// Splits independent rows over a team, or keeps them on the caller where sharing would cost more.
#pragma once

#include "kernels/cpu/team.h"

namespace llmrt::cpu {

// row(t) for t in [0, T); `cost` is about the number of elements that a row touches.
template <class F> void for_rows(Team &team, int64_t T, int64_t cost, F &&row) {
  if (T <= 1 || T * cost < 32768) {
    for (int64_t t = 0; t < T; t++)
      row(t);
    return;
  }
  team.parallel([&](int part, int parts) {
    for (int64_t t = T * part / parts, end = T * (part + 1) / parts; t < end; t++)
      row(t);
  });
}

} // namespace llmrt::cpu
