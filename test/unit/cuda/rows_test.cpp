// Row kernels, rope and KV append against double-precision references.
#include "test/unit/cuda/device_data.h"

namespace llmrt::cuda::testing {
namespace {

TEST(Rows, Norms) {
  for (DType t : kTypes)
    for (int64_t H : {8, 100, 576, 3584, 8192, 16384}) {
      const int64_t T = 3, ld = H + 8;
      Tensor x(T * ld, t, 1), r(T * ld, t, 2), w(H, DType::f32, 3);
      DeviceBytes out(T * ld * dtype_bytes(t)), plain(T * ld * dtype_bytes(t));
      rms_norm({plain.get(), ld, x.device.get(), ld, w.device.get(), T, H, 1e-5f, 1.0f, t}, nullptr);
      add_rms_norm({out.get(), ld, r.device.get(), ld, x.device.get(), ld, w.device.get(), T, H, 1e-5f, 0.0f, t}, nullptr);
      ASSERT_CUDA(cudaDeviceSynchronize());
      std::vector<float> got = decode(out.read<unsigned char>(), t), gotPlain = decode(plain.read<unsigned char>(), t);
      std::vector<float> sums = r.read(), a, b, c;
      std::vector<double> wantA, wantB, wantC;
      for (int64_t i = 0; i < T; ++i) {
        double square = 0, squareSum = 0;
        for (int64_t h = 0; h < H; ++h) {
          double v = x.host[i * ld + h], s = v + r.host[i * ld + h];
          square += v * v, squareSum += s * s;
        }
        for (int64_t h = 0; h < H; ++h) {
          double v = x.host[i * ld + h], s = v + r.host[i * ld + h];
          a.push_back(got[i * ld + h]), wantA.push_back(s / std::sqrt(squareSum / H + 1e-5) * w.host[h]);
          b.push_back(gotPlain[i * ld + h]), wantB.push_back(v / std::sqrt(square / H + 1e-5) * (w.host[h] + 1.0));
          c.push_back(sums[i * ld + h]), wantC.push_back(s);
        }
      }
      EXPECT_LT(relative_error(a, wantA), tolerance(t)) << "H " << H;
      EXPECT_LT(relative_error(b, wantB), tolerance(t)) << "H " << H;
      EXPECT_LT(relative_error(c, wantC), tolerance(t)) << "H " << H;
    }
}

TEST(Rows, EmbeddingOutsideTheTableIsZero) {
  for (DType t : kTypes) {
    const int64_t H = 100, count = 7, begin = 5;
    Tensor table(count * H, t, 1);
    const std::vector<int32_t> ids = {5, 11, 12, 4, 0, 8};
    DeviceBytes device_ids(ids.data(), ids.size() * 4), out(ids.size() * H * dtype_bytes(t));
    embedding({out.get(), H, table.device.get(), device_ids.as<int32_t>(), int64_t(ids.size()), H, begin, count, 2.0f, t, t},
              nullptr);
    std::vector<float> got = decode(out.read<unsigned char>(), t);
    for (size_t i = 0; i < ids.size(); ++i)
      for (int64_t h = 0; h < H; ++h) {
        const bool here = ids[i] >= begin && ids[i] < begin + count;
        ASSERT_EQ(got[i * H + h], here ? round_to(table.host[(ids[i] - begin) * H + h] * 2.0f, t) : 0.0f);
      }
  }
}

TEST(Rows, GatedAct) {
  for (DType t : kTypes)
    for (Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu})
      for (int64_t F : {24, 50, 2000}) {
        const int64_t T = 3;
        Tensor g(T * F, t, 1, 2.0f), u(T * F, t, 2);
        DeviceBytes out(T * F * dtype_bytes(t));
        gated_act({out.get(), F, g.device.get(), u.device.get(), F, F, T, F, kind, t}, nullptr);
        std::vector<double> want;
        for (int64_t i = 0; i < T * F; ++i) {
          const double x = g.host[i];
          const double a = kind == Activation::silu        ? x / (1 + std::exp(-x))
                           : kind == Activation::gelu_tanh ? 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
                                                           : 0.5 * x * (1 + std::erf(x * 0.7071067811865476));
          want.push_back(a * u.host[i]);
        }
        EXPECT_LT(relative_error(decode(out.read<unsigned char>(), t), want), tolerance(t)) << "F " << F;
      }
}

TEST(Rows, SelectAddBiasAndPeerSum) {
  for (DType t : kTypes) {
    const int64_t T = 5, H = 72;
    Tensor x(T * H, t, 1), y(T * H, t, 2), bias(H, DType::f32, 3);
    const std::vector<int32_t> rows = {4, 0, 4};
    DeviceBytes device_rows(rows.data(), 12), selected(3 * H * dtype_bytes(t)), sum(T * H * dtype_bytes(t));
    select_rows({selected.get(), H, x.device.get(), H, device_rows.as<int32_t>(), 3, H, t}, nullptr);
    PeerSum p = {sum.get(), H, {x.device.get(), y.device.get(), x.device.get()}, {H, H, H}, 3, T, H, t};
    peer_sum(p, nullptr);
    ASSERT_CUDA(cudaDeviceSynchronize());
    std::vector<float> got = decode(selected.read<unsigned char>(), t), gotSum = decode(sum.read<unsigned char>(), t);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t h = 0; h < H; ++h)
        ASSERT_EQ(got[i * H + h], x.host[rows[i] * H + h]);
    for (int64_t i = 0; i < T * H; ++i)
      ASSERT_EQ(gotSum[i], round_to(x.host[i] + y.host[i] + x.host[i], t));
    add({x.device.get(), H, y.device.get(), H, T, H, t}, nullptr);
    add_bias(y.device.get(), H, bias.device.as<float>(), T, H, t, nullptr);
    std::vector<float> added = x.read(), biased = y.read();
    for (int64_t i = 0; i < T * H; ++i) {
      ASSERT_EQ(added[i], round_to(x.host[i] + y.host[i], t));
      ASSERT_EQ(biased[i], round_to(y.host[i] + bias.host[i % H], t));
    }
  }
}

TEST(Rope, BothStylesNormsAndFarPositions) {
  for (DType t : kTypes)
    for (bool interleaved : {false, true})
      for (bool norms : {false, true})
        for (int dim : {64, 100, 224}) {
          const int q_heads = 5, kv_heads = 2, rotary = dim == 100 ? 50 : dim;
          const int64_t T = 3, ld = (q_heads + kv_heads) * dim + 4;
          Tensor qkv(T * ld, t, 1), qn(dim, DType::f32, 2), kn(dim, DType::f32, 3);
          std::vector<float> inv(rotary / 2);
          for (int i = 0; i < rotary / 2; ++i)
            inv[i] = float(std::pow(500000.0, -2.0 * i / rotary));
          const std::vector<int32_t> positions = {0, 17, 999983};
          DeviceBytes inv_device(inv.data(), inv.size() * 4), positions_device(positions.data(), 12);
          char *base = qkv.device.as<char>();
          rope({base, base + q_heads * dim * dtype_bytes(t), ld, ld, positions_device.as<int32_t>(),
                inv_device.as<float>(), norms ? qn.device.as<float>() : nullptr, norms ? kn.device.as<float>() : nullptr,
                1.5f, 1e-6f, T, q_heads, kv_heads, dim, rotary, interleaved, t},
               nullptr);
          std::vector<float> got = qkv.read(), a;
          std::vector<double> want;
          for (int64_t i = 0; i < T; ++i)
            for (int h = 0; h < q_heads + kv_heads; ++h) {
              std::vector<double> x(dim);
              double square = 0;
              for (int d = 0; d < dim; ++d)
                x[d] = qkv.host[i * ld + h * dim + d], square += x[d] * x[d];
              const std::vector<float> &norm = h < q_heads ? qn.host : kn.host;
              if (norms)
                for (int d = 0; d < dim; ++d)
                  x[d] *= norm[d] / std::sqrt(square / dim + 1e-6);
              std::vector<double> y = x;
              for (int d = 0; d < rotary / 2; ++d) {
                const int p = interleaved ? 2 * d : d, q = interleaved ? 2 * d + 1 : d + rotary / 2;
                const double angle = double(positions[i]) * double(inv[d]), c = std::cos(angle) * 1.5, s = std::sin(angle) * 1.5;
                y[p] = x[p] * c - x[q] * s;
                y[q] = x[q] * c + x[p] * s;
              }
              for (int d = 0; d < dim; ++d)
                a.push_back(got[i * ld + h * dim + d]), want.push_back(y[d]);
            }
          EXPECT_LT(relative_error(a, want), tolerance(t) * 2) << "dim " << dim << " interleaved " << interleaved;
        }
}

// One launch for both does what rope() and kv_append() do: heads of any size, and those of whole 16-byte lanes.
TEST(Rope, AppendInOneLaunch) {
  for (DType t : kTypes)
    for (bool norms : {false, true})
      for (int dim : {64, 96, 128, 256})
        for (int64_t T : {3, 200}) {
          const int q_heads = 5, kv_heads = 2, rotary = dim == 96 ? 64 : dim, page = 4;
          const int64_t ld = (q_heads + 2 * kv_heads) * dim, size = int64_t(dtype_bytes(t)), pages = T / page + 3;
          Tensor a(T * ld, t, 1), b(T * ld, t, 1), qn(dim, DType::f32, 2), kn(dim, DType::f32, 3);
          std::vector<float> inv(rotary / 2);
          for (int i = 0; i < rotary / 2; ++i)
            inv[i] = float(std::pow(10000.0, -2.0 * i / rotary));
          std::vector<int32_t> positions(T);
          std::vector<int64_t> slots(T);
          for (int64_t i = 0; i < T; ++i)
            positions[i] = int32_t(i * 31), slots[i] = i == 1 ? -1 : (T - 1 - i) + page;
          const int64_t page_bytes = 2 * kv_heads * page * dim * size;
          DeviceBytes inv_device(inv.data(), inv.size() * 4), positions_device(positions.data(), T * 4),
              slots_device(slots.data(), T * 8), pool_a(pages * page_bytes), pool_b(pages * page_bytes);
          auto rope_of = [&](Tensor &x) {
            char *base = x.device.as<char>();
            return Rope{base, base + q_heads * dim * size, ld, ld, positions_device.as<int32_t>(), inv_device.as<float>(),
                        norms ? qn.device.as<float>() : nullptr, norms ? kn.device.as<float>() : nullptr, 1.25f, 1e-6f, T,
                        q_heads, kv_heads, dim, rotary, false, t};
          };
          auto append_of = [&](Tensor &x, DeviceBytes &pool) {
            char *base = x.device.as<char>();
            return KvAppend{{pool.get(), page_bytes, t, kv_heads, page, dim}, base + q_heads * dim * size,
                            base + (q_heads + kv_heads) * dim * size, ld, ld, slots_device.as<int64_t>(), T, t};
          };
          rope(rope_of(a), nullptr);
          kv_append(append_of(a, pool_a), nullptr);
          rope_append(rope_of(b), append_of(b, pool_b), nullptr);
          ASSERT_CUDA(cudaGetLastError());
          const std::vector<float> qa = a.read(), qb = b.read();
          EXPECT_LT(relative_error(qb, std::vector<double>(qa.begin(), qa.end())), tolerance(t)) << "dim " << dim;
          // Both leave in the pages what is in the rows, and the rest of the pages as it was.
          std::vector<unsigned char> pa = pool_a.read<unsigned char>(), pb = pool_b.read<unsigned char>();
          const std::vector<unsigned char> rows_a = a.device.read<unsigned char>(), rows_b = b.device.read<unsigned char>();
          for (int64_t i = 0; i < T; ++i)
            for (int h = 0; h < 2 * kv_heads && slots[i] >= 0; ++h) {
              const int64_t in_page = slots[i] / page * page_bytes + (h * page + slots[i] % page) * dim * size;
              const int64_t in_row = (i * ld + (q_heads + h) * dim) * size;
              ASSERT_EQ(0, std::memcmp(&pa[in_page], &rows_a[in_row], dim * size));
              ASSERT_EQ(0, std::memcmp(&pb[in_page], &rows_b[in_row], dim * size));
              std::memset(&pa[in_page], 0, dim * size), std::memset(&pb[in_page], 0, dim * size);
            }
          EXPECT_EQ(pa, pb);
        }
}

} // namespace
} // namespace llmrt::cuda::testing
