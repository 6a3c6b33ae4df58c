// Makes a plan's program into calls of kernels: ops in order (program.cpp), products with their neighbours (program_products.cpp),
// narrow layers (program_narrow.cpp), what ranks do together (program_comm.cpp).
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/rows.h"
#include "runtime/exec/cuda/fused_product.h"
#include "runtime/exec/cuda/narrow_layers.h"
#include "runtime/exec/cuda/program.h"
#include "runtime/exec/neighbours.h"
#include "runtime/plan/access.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llmrt::exec::cuda {

namespace k = llmrt::cuda;

k::Activation activation(plan::Activation a);

// A column range of an activation buffer.
struct Operand {
  std::byte *data = nullptr;
  int64_t ld = 0; // elements
  int64_t cols = 0;
  k::DType type = k::DType::f32;
  plan::Rows rows = plan::Rows::Tokens;

  int64_t count(const StepShape &shape) const { return rows == plan::Rows::Tokens ? shape.tokens : shape.rows; }
};

class ProgramBuilder {
public:
  ProgramBuilder(const plan::LoadedPlan &plan, uint32_t rank, const DeviceBases &bases, Program &out)
      : plan_(plan), program_(plan.program(rank)), rank_(rank), bases_(bases), out_(out) {}

  void build() {
    planAttentionWorkspace();
    findNarrowLayers();
    for (index_ = 0; index_ < plan::size_of(program_.ops()); ++index_)
      add(*program_.ops()->Get(index_));
    if (const plan::View *logits = program_.logits())
      out_.logits_ = reinterpret_cast<const float *>(operand(logits).data);
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw Error("rank " + std::to_string(rank_) + ", op " + std::to_string(index_) + " (" +
                plan::name_of(program_.ops()->Get(index_)->op_type()) + "): " + why);
  }

  k::DType type(plan::DType dtype) const {
    switch (dtype) {
    case plan::DType::F32: return k::DType::f32;
    case plan::DType::F16: return k::DType::f16;
    case plan::DType::BF16: return k::DType::bf16;
    default: refuse(std::string("the CUDA backend does not compute with ") + plan::name_of(dtype));
    }
  }

  Operand operand(const plan::View *view) const {
    const plan::Buffer &buffer = plan_.buffer(rank_, *view);
    Operand o;
    o.type = type(buffer.dtype());
    o.ld = static_cast<int64_t>(buffer.cols());
    o.cols = view->cols();
    o.rows = buffer.rows();
    o.data = bases_.arena + buffer.offset() + view->col() * k::dtype_bytes(o.type);
    return o;
  }

  const plan::Weight &weight(int64_t index) const { return *program_.weights()->Get(static_cast<uint32_t>(index)); }
  void *weightData(int64_t index) const {
    if (weight(index).layout() != plan::Layout::RowMajor)
      refuse("weight " + plan::quoted(weight(index).name()) + " is " + plan::name_of(weight(index).layout()) +
             ", a layout of CPUs: compile the plan for cuda devices");
    return bases_.weights + weight(index).offset();
  }

  template <typename T> T *upload(const std::vector<T> &values, const char *purpose) {
    DeviceMemory memory(values.size() * sizeof(T), purpose);
    LLMRT_CHECK(cudaMemcpy(memory.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    T *data = reinterpret_cast<T *>(memory.data());
    out_.owned_.push_back(std::move(memory));
    return data;
  }

  // Norm weights and biases are f32 for the kernels, whatever the plan keeps them in.
  const float *vectorF32(int64_t index) {
    if (index < 0)
      return nullptr;
    if (weight(index).dtype() != plan::DType::F32)
      refuse("vector " + plan::quoted(weight(index).name()) + " is " + plan::name_of(weight(index).dtype()) + ", f32 is needed");
    return static_cast<const float *>(weightData(index));
  }

  // A bias in the type of the product's output, for the library's epilogue.
  const void *biasLike(int64_t index, k::DType out) {
    if (index < 0 || out == k::DType::f32)
      return index < 0 ? nullptr : weightData(index);
    const int64_t n = static_cast<int64_t>(weight(index).cols());
    DeviceMemory memory(static_cast<size_t>(n) * 2, "a bias");
    k::add_bias(memory.data(), n, vectorF32(index), 1, n, out, nullptr); // 0 + bias
    LLMRT_CHECK(cudaDeviceSynchronize());
    const void *data = memory.data();
    out_.owned_.push_back(std::move(memory));
    return data;
  }

  void planAttentionWorkspace() {
    size_t bytes = 0;
    for (const plan::Op *op : plan::each(program_.ops()))
      if (const plan::Attention *a = op->op_as_Attention())
        bytes = std::max(bytes, k::attention_workspace_bytes(plan_.root().limits()->max_batched_tokens(),
                                                             static_cast<int>(plan_.root().limits()->max_num_seqs()),
                                                             static_cast<int>(a->q_heads()), static_cast<int>(a->head_dim())));
    DeviceMemory memory(bytes, "the workspace of attention");
    attention_workspace_ = memory.data();
    attention_scratch_bytes_ = bytes > k::kAttentionKept ? bytes - k::kAttentionKept : 0;
    out_.owned_.push_back(std::move(memory));
  }

  k::KvPool pool(uint32_t layer, int kv_heads, int head_dim) const {
    const plan::KvCache &kv = *program_.kv();
    k::KvPool pool;
    const uint64_t layer_bytes = uint64_t(plan_.root().limits()->num_pages()) * kv.layer_page_bytes();
    pool.base = bases_.kv + layer * layer_bytes;
    pool.page_stride_bytes = static_cast<int64_t>(kv.layer_page_bytes());
    pool.type = type(kv.dtype());
    pool.kv_heads = kv_heads;
    pool.page_size = static_cast<int>(plan_.root().limits()->page_size());
    pool.head_dim = head_dim;
    return pool;
  }

  k::KvAppend appendCall(const plan::KvAppend &o) const {
    const Operand key = operand(o.k()), value = operand(o.v());
    return {pool(o.layer(), static_cast<int>(o.kv_heads()), static_cast<int>(o.head_dim())),
            key.data, value.data, key.ld, value.ld, nullptr, 0, key.type};
  }

  void push(std::function<void(const OpContext &)> op) { out_.ops_.push_back(std::move(op)); }

  // The op at `index`; null past the end.
  const plan::Op *opAt(uint32_t index) const { return index < plan::size_of(program_.ops()) ? program_.ops()->Get(index) : nullptr; }

  // The product at `op` with its neighbours, which ask it whether they have anything to do.
  struct Product {
    Neighbours neighbours;
    std::shared_ptr<FusedProduct> call;
  };
  const Product &product(uint32_t op);
  std::shared_ptr<const FusedProduct> productBefore(); // the one that the current op follows as a neighbour; null: none
  std::shared_ptr<const FusedProduct> productAfter();  // the one whose norm the current op is

  // Half a narrow layer: the ops from its first product to its last, and up to how many rows the plan has it in few launches.
  struct HalfLayer {
    uint32_t first = 0, last = 0;
    int64_t rows = 0;
    NarrowHalf call;
  };
  std::optional<HalfLayer> halfLayerAt(uint32_t op);
  Operand residualOf(const HalfLayer &half) const;
  void findNarrowLayers();

  void add(const plan::Op &op);
  const k::Rope &ropeCall(uint32_t op);
  void addRope(const plan::Rope &o);
  void addAttention(const plan::Attention &o);
  void addComm(const plan::Op &op);
  void addSum(const plan::AllReduce &o);
  const plan::AddRmsNorm *normOfSum(const plan::AllReduce &o, uint32_t at) const;
  k::AddRmsNorm normCall(const plan::AddRmsNorm &o);

  const plan::LoadedPlan &plan_;
  const plan::Program &program_;
  uint32_t rank_, index_ = 0;
  DeviceBases bases_;
  Program &out_;
  std::byte *attention_workspace_ = nullptr;
  size_t attention_scratch_bytes_ = 0; // of it, free between attentions
  std::map<uint32_t, Product> products_;
  std::map<uint32_t, k::Rope> ropes_;
  std::map<uint32_t, NarrowPlace> narrow_; // by op
};

} // namespace llmrt::exec::cuda
