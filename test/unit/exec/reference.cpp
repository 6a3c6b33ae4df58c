// Llama in double precision, loop by loop.
#include "test/unit/exec/reference.h"

#include <cmath>
#include <random>

#include "kernels/cpu/convert.h"

namespace llmrt::exec::testing {

namespace {

using Vector = std::vector<double>;

Vector rms_norm(const Vector &x, const Vector &weight, double eps) {
  double squares = 0;
  for (double v : x)
    squares += v * v;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  Vector out(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    out[i] = x[i] * scale * weight[i];
  return out;
}

// y = W x (+ b), W [rows, x.size()]
Vector product(const Vector &weight, const Vector &x, const Vector *bias = nullptr) {
  const size_t rows = weight.size() / x.size();
  Vector out(rows);
  for (size_t r = 0; r < rows; ++r) {
    double sum = bias ? (*bias)[r] : 0;
    for (size_t c = 0; c < x.size(); ++c)
      sum += weight[r * x.size() + c] * x[c];
    out[r] = sum;
  }
  return out;
}

void rotate(double *head, size_t dim, size_t position) {
  for (size_t i = 0; i < dim / 2; ++i) {
    const double inv_freq = static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
    const double angle = static_cast<double>(position) * inv_freq;
    const double a = head[i], b = head[i + dim / 2];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
}

} // namespace

Reference::Reference(const plan::testing::TinySpec &spec, const plan::PlanT &plan, unsigned seed) : spec_(spec) {
  std::mt19937 random(seed);
  for (const auto &tensor : plan.tensors) {
    const bool matrix = tensor->rows > 1;
    const bool norm = tensor->name.find("norm") != std::string::npos;
    std::normal_distribution<float> values(norm ? 1.0f : 0.0f,
                                           matrix ? 1.0f / std::sqrt(static_cast<float>(tensor->cols)) : 0.3f);
    std::vector<double> &kept = tensors_[tensor->name];
    for (uint64_t i = 0; i < tensor->rows * tensor->cols; ++i) {
      const float value = values(random);
      file_.push_back(value);
      float stored = value;
      if (matrix && spec.weight_dtype == plan::DType::BF16)
        stored = cpu::bf16_to_f32(cpu::f32_to_bf16(value));
      if (matrix && spec.weight_dtype == plan::DType::F16)
        stored = cpu::f16_to_f32(cpu::f32_to_f16(value));
      kept.push_back(stored);
    }
  }
}

std::vector<double> Reference::logits(const std::vector<int32_t> &ids) const {
  const size_t n = ids.size(), hidden = spec_.hidden, dim = spec_.head_dim;
  const size_t q_heads = spec_.q_heads, kv_heads = spec_.kv_heads, group = q_heads / kv_heads;
  std::vector<Vector> x(n);
  const Vector &table = tensor("model.embed_tokens.weight");
  for (size_t t = 0; t < n; ++t)
    x[t].assign(table.begin() + static_cast<int64_t>(static_cast<size_t>(ids[t]) * hidden),
                table.begin() + static_cast<int64_t>((static_cast<size_t>(ids[t]) + 1) * hidden));

  for (size_t layer = 0; layer < spec_.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    const auto weight = [&](const char *name) -> const Vector & { return tensor(at + name); };
    const auto bias = [&](const char *name) { return spec_.qkv_bias ? &tensor(at + name) : nullptr; };
    std::vector<Vector> q(n), k(n), v(n);
    for (size_t t = 0; t < n; ++t) {
      const Vector h = rms_norm(x[t], weight("input_layernorm.weight"), 1e-5);
      q[t] = product(weight("self_attn.q_proj.weight"), h, bias("self_attn.q_proj.bias"));
      k[t] = product(weight("self_attn.k_proj.weight"), h, bias("self_attn.k_proj.bias"));
      v[t] = product(weight("self_attn.v_proj.weight"), h, bias("self_attn.v_proj.bias"));
      const auto turn = [&](Vector &heads, size_t count, const char *norm) {
        for (size_t i = 0; i < count; ++i) {
          if (spec_.qk_norm) {
            const Vector one(heads.begin() + static_cast<int64_t>(i * dim),
                             heads.begin() + static_cast<int64_t>((i + 1) * dim));
            const Vector normed = rms_norm(one, weight(norm), 1e-6);
            std::copy(normed.begin(), normed.end(), heads.begin() + static_cast<int64_t>(i * dim));
          }
          rotate(heads.data() + i * dim, dim, t);
        }
      };
      turn(q[t], q_heads, "self_attn.q_norm.weight");
      turn(k[t], kv_heads, "self_attn.k_norm.weight");
    }
    for (size_t t = 0; t < n; ++t) {
      Vector attended(q_heads * dim);
      for (size_t head = 0; head < q_heads; ++head) {
        const size_t first = spec_.window && t + 1 > spec_.window ? t + 1 - spec_.window : 0;
        Vector scores;
        double largest = -INFINITY, sum = 0;
        for (size_t s = first; s <= t; ++s) {
          double dot = 0;
          for (size_t i = 0; i < dim; ++i)
            dot += q[t][head * dim + i] * k[s][head / group * dim + i];
          scores.push_back(dot / std::sqrt(static_cast<double>(dim)));
          largest = std::max(largest, scores.back());
        }
        for (double &score : scores)
          sum += score = std::exp(score - largest);
        for (size_t s = first; s <= t; ++s)
          for (size_t i = 0; i < dim; ++i)
            attended[head * dim + i] += scores[s - first] / sum * v[s][head / group * dim + i];
      }
      const Vector o = product(weight("self_attn.o_proj.weight"), attended,
                               spec_.o_bias ? &weight("self_attn.o_proj.bias") : nullptr);
      for (size_t i = 0; i < hidden; ++i)
        x[t][i] += o[i];
      const Vector h = rms_norm(x[t], weight("post_attention_layernorm.weight"), 1e-5);
      Vector gate = product(weight("mlp.gate_proj.weight"), h);
      const Vector up = product(weight("mlp.up_proj.weight"), h);
      for (size_t i = 0; i < gate.size(); ++i)
        gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      const Vector down = product(weight("mlp.down_proj.weight"), gate);
      for (size_t i = 0; i < hidden; ++i)
        x[t][i] += down[i];
    }
  }

  std::vector<double> out;
  for (size_t t = 0; t < n; ++t) {
    const Vector row = product(tensor(spec_.tied ? "model.embed_tokens.weight" : "lm_head.weight"),
                               rms_norm(x[t], tensor("model.norm.weight"), 1e-5));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

} // namespace llmrt::exec::testing
