// The decoder layout shared by Llama, Mistral, Qwen2 and Qwen3, with each family's extras as flags.
#include "compiler/import/architecture.h"

#include "compiler/support/error.h"

namespace llmc {

const char *familyName(Family family) {
  switch (family) {
  case Family::Llama:
    return "llama";
  case Family::Mistral:
    return "mistral";
  case Family::Qwen2:
    return "qwen2";
  case Family::Qwen3:
    return "qwen3";
  }
  return "?";
}

std::vector<ExpectedTensor> expectedTensors(const ModelSpec &m) {
  std::vector<ExpectedTensor> out;
  const int64_t qWidth = m.qHeads * m.headDim, kvWidth = m.kvHeads * m.headDim;
  auto linear = [&](const std::string &name, int64_t rows, int64_t columns, bool bias) {
    out.push_back({name + ".weight", {rows, columns}});
    if (bias)
      out.push_back({name + ".bias", {rows}});
  };
  out.push_back({"model.embed_tokens.weight", {m.vocab, m.hidden}});
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    out.push_back({at + "input_layernorm.weight", {m.hidden}});
    linear(at + "self_attn.q_proj", qWidth, m.hidden, m.qkvBias);
    linear(at + "self_attn.k_proj", kvWidth, m.hidden, m.qkvBias);
    linear(at + "self_attn.v_proj", kvWidth, m.hidden, m.qkvBias);
    if (m.qkNorm) {
      out.push_back({at + "self_attn.q_norm.weight", {m.headDim}});
      out.push_back({at + "self_attn.k_norm.weight", {m.headDim}});
    }
    linear(at + "self_attn.o_proj", m.hidden, qWidth, m.oBias);
    out.push_back({at + "post_attention_layernorm.weight", {m.hidden}});
    linear(at + "mlp.gate_proj", m.ffn, m.hidden, m.mlpBias);
    linear(at + "mlp.up_proj", m.ffn, m.hidden, m.mlpBias);
    linear(at + "mlp.down_proj", m.hidden, m.ffn, m.mlpBias);
  }
  out.push_back({"model.norm.weight", {m.hidden}});
  if (!m.tiedEmbeddings)
    out.push_back({"lm_head.weight", {m.vocab, m.hidden}});
  return out;
}

void checkDimensions(const ModelSpec &m, const std::string &where) {
  struct Bound {
    const char *name;
    int64_t value, most;
  };
  // The upper bounds are far above any model; they keep products inside 64 bits and lists short.
  const Bound bounds[] = {
      {"hidden size", m.hidden, 1 << 20},        {"number of layers", m.layers, 4096},
      {"number of query heads", m.qHeads, 8192}, {"number of KV heads", m.kvHeads, 8192},
      {"head dimension", m.headDim, 8192},       {"FFN size", m.ffn, 1 << 24},
      {"vocabulary size", m.vocab, 1 << 26},     {"maximum length", m.maxPositions, 1 << 30}};
  for (const Bound &bound : bounds)
    if (bound.value < 1 || bound.value > bound.most)
      throw Error(where + ": the " + bound.name + " is " + std::to_string(bound.value) +
                  "; it must lie between 1 and " + std::to_string(bound.most));
  if (m.qHeads % m.kvHeads != 0)
    throw Error(where + ": " + std::to_string(m.qHeads) + " query heads cannot be shared evenly by " +
                std::to_string(m.kvHeads) + " KV heads; the first must be a multiple of the second");
  if (m.headDim % 2 != 0)
    throw Error(where + ": the head dimension is " + std::to_string(m.headDim) +
                "; rotary embeddings rotate pairs, so it must be even");
  if (!(m.rmsEps > 0 && m.rmsEps < 1))
    throw Error(where + ": the RMS norm's epsilon is " + std::to_string(m.rmsEps) +
                "; it must lie between 0 and 1");
  if (m.attention.size() != static_cast<size_t>(m.layers))
    throw Error(where + ": " + std::to_string(m.attention.size()) +
                " attention layers described, the model has " + std::to_string(m.layers));
  if (m.rope.invFreq.size() != static_cast<size_t>(m.rope.rotaryDim / 2))
    throw Error(where + ": " + std::to_string(m.rope.invFreq.size()) + " rotary frequencies for " +
                std::to_string(m.rope.rotaryDim) + " rotated elements");
}

} // namespace llmc
