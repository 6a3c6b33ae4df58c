// The tiny model, tensor by tensor and op by op. Splits are contiguous and as even as can be; with fewer KV heads
// than ranks each rank holds a replica of the KV heads that its query heads read.
#include "test/unit/plan/plan_builder.h"

#include "runtime/plan/access.h"
#include "runtime/plan/version.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace llmrt::plan::testing {

namespace {

struct Span {
  uint64_t begin = 0, count = 0;
  uint64_t end() const { return begin + count; }
};

Span share(uint64_t n, uint64_t parts, uint64_t index) {
  uint64_t base = n / parts, extra = n % parts;
  return {index * base + std::min(index, extra), base + (index < extra ? 1 : 0)};
}

template <typename T> std::unique_ptr<T> own(T value) { return std::make_unique<T>(std::move(value)); }

uint64_t aligned(uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

class TinyPlan {
public:
  explicit TinyPlan(const TinySpec &spec) : s_(spec) {}
  PlanT build();

private:
  void head();
  void tensors();
  void program(uint32_t rank);
  void layer(uint32_t rank, uint32_t stage_layer, uint64_t layer);
  uint32_t tensor(const std::string &name, uint64_t rows, uint64_t cols, Fill fill);
  WeightPartT part(const std::string &name, Span rows, Span cols, uint64_t dst_row, bool replica);
  uint32_t weight(const std::string &name, DType dtype, Layout layout, std::vector<WeightPartT> parts);
  uint32_t norm(const std::string &name, uint64_t n);
  View buffer(const std::string &name, uint64_t cols, DType dtype, Rows rows = Rows::Tokens);
  template <typename OpTable> void op(OpTable table, int32_t layer, const std::string &suffix = "");
  void all_reduce(const View &data, int32_t layer);

  const TinySpec &s_;
  PlanT plan_;
  std::map<std::string, uint32_t> tensor_index_;
  ProgramT *p_ = nullptr; // the program being built
  uint32_t stage_ = 0, tp_ = 0;
  Span q_, ffn_, vocab_;
  std::vector<uint32_t> kv_;
  uint32_t seq_ = 0;
  View x_, h_, y_; // residual, normed, sum to add
};

uint32_t TinyPlan::tensor(const std::string &name, uint64_t rows, uint64_t cols, Fill fill) {
  TensorT t;
  t.name = name;
  t.rows = rows;
  t.cols = cols;
  t.dtype = DType::F32;
  if (s_.weight_file.empty()) {
    t.fill = fill;
    t.fill_scale = fill == Fill::Normal ? 1.0f / std::sqrt(float(cols)) : 0;
  } else {
    t.file = 0;
    t.offset = plan_.files[0]->bytes;
    t.bytes = rows * cols * 4;
    plan_.files[0]->bytes += t.bytes;
  }
  tensor_index_[name] = uint32_t(plan_.tensors.size());
  plan_.tensors.push_back(own(std::move(t)));
  return tensor_index_[name];
}

std::string layer_name(uint64_t layer, const char *rest) { return "model.layers." + std::to_string(layer) + "." + rest; }

void TinyPlan::tensors() {
  if (!s_.weight_file.empty()) {
    FileT file;
    file.path = s_.weight_file;
    plan_.files.push_back(own(std::move(file)));
  }
  uint64_t q = s_.q_heads * s_.head_dim, kv = s_.kv_heads * s_.head_dim;
  tensor("model.embed_tokens.weight", s_.vocab, s_.hidden, Fill::Normal);
  for (uint64_t l = 0; l < s_.layers; ++l) {
    tensor(layer_name(l, "input_layernorm.weight"), 1, s_.hidden, Fill::Ones);
    tensor(layer_name(l, "post_attention_layernorm.weight"), 1, s_.hidden, Fill::Ones);
    struct {
      const char *name;
      uint64_t rows;
    } const qkv[] = {{"q", q}, {"k", kv}, {"v", kv}};
    for (const auto &p : qkv) {
      tensor(layer_name(l, ("self_attn." + std::string(p.name) + "_proj.weight").c_str()), p.rows, s_.hidden,
             Fill::Normal);
      if (s_.qkv_bias)
        tensor(layer_name(l, ("self_attn." + std::string(p.name) + "_proj.bias").c_str()), 1, p.rows, Fill::Normal);
    }
    if (s_.qk_norm)
      for (const char *name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"})
        tensor(layer_name(l, name), 1, s_.head_dim, Fill::Ones);
    tensor(layer_name(l, "self_attn.o_proj.weight"), s_.hidden, q, Fill::Normal);
    if (s_.o_bias)
      tensor(layer_name(l, "self_attn.o_proj.bias"), 1, s_.hidden, Fill::Normal);
    tensor(layer_name(l, "mlp.gate_proj.weight"), s_.ffn, s_.hidden, Fill::Normal);
    tensor(layer_name(l, "mlp.up_proj.weight"), s_.ffn, s_.hidden, Fill::Normal);
    tensor(layer_name(l, "mlp.down_proj.weight"), s_.hidden, s_.ffn, Fill::Normal);
  }
  tensor("model.norm.weight", 1, s_.hidden, Fill::Ones);
  if (!s_.tied)
    tensor("lm_head.weight", s_.vocab, s_.hidden, Fill::Normal);
}

void TinyPlan::head() {
  plan_.version_major = kVersionMajor;
  plan_.version_minor = kVersionMinor;
  plan_.tp = s_.tp;
  plan_.pp = s_.pp;
  plan_.output_rank = (s_.pp - 1) * s_.tp;
  ProvenanceT provenance;
  provenance.compiler_version = "test";
  provenance.command_line = "built by hand";
  plan_.provenance = own(std::move(provenance));
  ModelT m;
  m.name = m.served_name = "tiny";
  m.model_type = "llama";
  m.source = "dummy";
  m.hidden = s_.hidden;
  m.layers = s_.layers;
  m.q_heads = s_.q_heads;
  m.kv_heads = s_.kv_heads;
  m.head_dim = s_.head_dim;
  m.ffn = s_.ffn;
  m.vocab = s_.vocab;
  m.max_positions = s_.max_model_len;
  m.tied_embeddings = s_.tied;
  m.weight_dtype = s_.weight_dtype;
  m.activation_dtype = s_.activation_dtype;
  m.kv_dtype = s_.kv_dtype;
  plan_.model = own(std::move(m));
  plan_.text = own(TextT());
  LimitsT limits;
  limits.max_model_len = s_.max_model_len;
  limits.max_num_seqs = s_.max_num_seqs;
  limits.max_batched_tokens = s_.max_batched_tokens;
  limits.max_logits_rows = s_.max_logits_rows;
  limits.page_size = s_.page_size;
  limits.num_pages = s_.num_pages;
  limits.memory_utilization = 0.9f;
  plan_.limits = own(std::move(limits));
  TopologyT topology;
  topology.hosts.push_back("host0");
  for (uint32_t i = 0; i < s_.tp * s_.pp; ++i) {
    DeviceT device;
    device.id = "cpu" + std::to_string(i);
    device.kind = DeviceKind::Cpu;
    device.memory_bytes = uint64_t(1) << 30;
    topology.devices.push_back(own(std::move(device)));
    for (uint32_t j = 0; j < i; ++j) {
      LinkT link;
      link.a = j;
      link.b = i;
      link.kind = "SYS";
      link.bandwidth = 1e10;
      link.latency = 1e-6;
      topology.links.push_back(own(std::move(link)));
    }
  }
  plan_.topology = own(std::move(topology));
  RopeTableT rope;
  for (uint64_t i = 0; i < s_.head_dim / 2; ++i)
    rope.inv_freq.push_back(float(std::pow(10000.0, -2.0 * double(i) / double(s_.head_dim))));
  plan_.rope_tables.push_back(own(std::move(rope)));
  if (s_.tp > 1)
    for (uint32_t stage = 0; stage < s_.pp; ++stage) {
      GroupT group;
      group.name = "stage" + std::to_string(stage);
      for (uint32_t i = 0; i < s_.tp; ++i)
        group.ranks.push_back(stage * s_.tp + i);
      plan_.groups.push_back(own(std::move(group)));
    }
}

WeightPartT TinyPlan::part(const std::string &name, Span rows, Span cols, uint64_t dst_row, bool replica) {
  WeightPartT p;
  p.tensor = tensor_index_.at(name);
  p.row = rows.begin;
  p.rows = rows.count;
  p.col = cols.begin;
  p.cols = cols.count;
  p.dst_row = dst_row;
  p.replica = replica;
  return p;
}

uint32_t TinyPlan::weight(const std::string &name, DType dtype, Layout layout, std::vector<WeightPartT> parts) {
  WeightT w;
  w.name = name;
  w.dtype = dtype;
  w.layout = layout;
  for (const WeightPartT &p : parts) {
    w.rows = std::max(w.rows, p.dst_row + p.rows);
    w.cols = std::max(w.cols, p.dst_col + p.cols);
    w.parts.push_back(own(WeightPartT(p)));
  }
  p_->weights.push_back(own(std::move(w)));
  return uint32_t(p_->weights.size() - 1);
}

// A vector that every rank of the stage holds; the first rank is its first holder.
uint32_t TinyPlan::norm(const std::string &name, uint64_t n) {
  return weight(name, DType::F32, Layout::RowMajor, {part(name, {0, 1}, {0, n}, 0, tp_ != 0)});
}

View TinyPlan::buffer(const std::string &name, uint64_t cols, DType dtype, Rows rows) {
  BufferT b;
  b.name = name;
  b.cols = cols;
  b.dtype = dtype;
  b.rows = rows;
  p_->buffers.push_back(own(std::move(b)));
  return View(uint32_t(p_->buffers.size() - 1), 0, uint32_t(cols));
}

View columns(const View &view, uint64_t begin, uint64_t count) {
  return View(view.buffer(), uint32_t(view.col() + begin), uint32_t(count));
}

template <typename OpTable> void TinyPlan::op(OpTable table, int32_t layer, const std::string &suffix) {
  OpT op;
  op.layer = layer;
  op.op.Set(std::move(table));
  const bool communicates = op.op.type >= OpKind::AllReduce;
  op.kernel = (communicates ? std::string("host.") : s_.kernel_prefix) + name_of(op.op.type) + suffix;
  p_->ops.push_back(own(std::move(op)));
}

void TinyPlan::all_reduce(const View &data, int32_t layer) {
  if (s_.tp == 1)
    return;
  AllReduceT o;
  o.data = own(View(data));
  o.group = stage_;
  o.seq = seq_++;
  o.algorithm = Algorithm::Ordered;
  op(std::move(o), layer);
}

void TinyPlan::layer(uint32_t, uint32_t local, uint64_t l) {
  const int32_t at = int32_t(l);
  const std::string n = "layers." + std::to_string(l) + ".";
  const DType act = s_.activation_dtype;
  const uint64_t dim = s_.head_dim;
  const std::string packed = s_.linear_layout == Layout::Packed16 ? ".packed16" : "";
  auto name = [&](const char *rest) { return layer_name(l, rest); };

  // q heads, then k, then v, stacked by rows; KV heads that a lower rank holds are replicas.
  Span q_rows{q_.begin * dim, q_.count * dim}, whole{0, s_.hidden};
  std::vector<WeightPartT> rows = {part(name("self_attn.q_proj.weight"), q_rows, whole, 0, false)};
  std::vector<WeightPartT> bias;
  uint64_t next = q_rows.count;
  auto vector_part = [&](const std::string &tensor, Span cols, uint64_t dst_col, bool replica) {
    WeightPartT p = part(tensor, {0, 1}, cols, 0, replica);
    p.dst_col = dst_col;
    return p;
  };
  if (s_.qkv_bias)
    bias.push_back(vector_part(name("self_attn.q_proj.bias"), q_rows, 0, false));
  for (const char *kind : {"self_attn.k_proj.", "self_attn.v_proj."})
    for (uint32_t head : kv_) {
      bool replica = false;
      for (uint32_t lower = 0; lower < tp_; ++lower) {
        Span theirs = share(s_.q_heads, s_.tp, lower);
        uint64_t group = s_.q_heads / s_.kv_heads;
        if (s_.kv_heads < s_.tp && theirs.begin / group <= head && head <= (theirs.end() - 1) / group)
          replica = true;
      }
      rows.push_back(part(name((std::string(kind) + "weight").c_str()), {head * dim, dim}, whole, next, replica));
      if (s_.qkv_bias)
        bias.push_back(vector_part(name((std::string(kind) + "bias").c_str()), {head * dim, dim}, next, replica));
      next += dim;
    }

  if (local == 0) {
    RmsNormT o;
    o.out = own(View(h_));
    o.input = own(View(x_));
    o.weight = norm(name("input_layernorm.weight"), s_.hidden);
    o.eps = 1e-5f;
    op(std::move(o), at);
  } else {
    AddRmsNormT o;
    o.out = own(View(h_));
    o.residual = own(View(x_));
    o.input = own(View(y_));
    o.weight = norm(name("input_layernorm.weight"), s_.hidden);
    o.eps = 1e-5f;
    op(std::move(o), at);
  }
  View qkv = buffer(n + "qkv", next, act);
  View q = columns(qkv, 0, q_rows.count), k = columns(qkv, q_rows.count, kv_.size() * dim),
       v = columns(qkv, q_rows.count + kv_.size() * dim, kv_.size() * dim);
  LinearT qkv_linear;
  qkv_linear.out = own(View(qkv));
  qkv_linear.input = own(View(h_));
  qkv_linear.weight = weight(n + "qkv", s_.weight_dtype, s_.linear_layout, rows);
  if (s_.qkv_bias)
    qkv_linear.bias = int32_t(weight(n + "qkv_bias", DType::F32, Layout::RowMajor, bias));
  op(std::move(qkv_linear), at, packed);
  RopeT rope;
  rope.q = own(View(q));
  rope.k = own(View(k));
  rope.q_heads = uint32_t(q_.count);
  rope.kv_heads = uint32_t(kv_.size());
  rope.head_dim = rope.rotary_dim = uint32_t(dim);
  if (s_.qk_norm) {
    rope.q_norm = int32_t(norm(name("self_attn.q_norm.weight"), dim));
    rope.k_norm = int32_t(norm(name("self_attn.k_norm.weight"), dim));
    rope.eps = 1e-6f;
  }
  op(std::move(rope), at);
  KvAppendT append;
  append.k = own(View(k));
  append.v = own(View(v));
  append.layer = local;
  append.kv_heads = uint32_t(kv_.size());
  append.head_dim = uint32_t(dim);
  op(std::move(append), at);
  View attended = buffer(n + "attention", q_rows.count, act);
  AttentionT attention;
  attention.out = own(View(attended));
  attention.q = own(View(q));
  attention.layer = local;
  attention.q_heads = uint32_t(q_.count);
  attention.kv_heads = uint32_t(kv_.size());
  attention.head_dim = uint32_t(dim);
  for (uint64_t i = q_.begin; i < q_.end(); ++i) {
    uint32_t global = uint32_t(i / (s_.q_heads / s_.kv_heads));
    attention.kv_head_of_q.push_back(uint16_t(std::find(kv_.begin(), kv_.end(), global) - kv_.begin()));
  }
  attention.scale = 1.0f / std::sqrt(float(dim));
  attention.window = s_.window;
  op(std::move(attention), at);
  LinearT o_linear;
  o_linear.out = own(View(y_));
  o_linear.input = own(View(attended));
  o_linear.weight = weight(n + "o", s_.weight_dtype, s_.linear_layout,
                           {part(name("self_attn.o_proj.weight"), {0, s_.hidden}, q_rows, 0, false)});
  if (s_.o_bias && tp_ == 0)
    o_linear.bias = int32_t(weight(n + "o_bias", DType::F32, Layout::RowMajor,
                                   {part(name("self_attn.o_proj.bias"), {0, 1}, whole, 0, false)}));
  op(std::move(o_linear), at, packed);
  all_reduce(y_, at);

  AddRmsNormT post;
  post.out = own(View(h_));
  post.residual = own(View(x_));
  post.input = own(View(y_));
  post.weight = norm(name("post_attention_layernorm.weight"), s_.hidden);
  post.eps = 1e-5f;
  op(std::move(post), at);
  View gate_up = buffer(n + "gate_up", 2 * ffn_.count, act), product = buffer(n + "product", ffn_.count, act);
  LinearT gu;
  gu.out = own(View(gate_up));
  gu.input = own(View(h_));
  gu.weight = weight(n + "gate_up", s_.weight_dtype, s_.linear_layout,
                     {part(name("mlp.gate_proj.weight"), ffn_, whole, 0, false),
                      part(name("mlp.up_proj.weight"), ffn_, whole, ffn_.count, false)});
  op(std::move(gu), at, packed);
  GatedActT gated;
  gated.out = own(View(product));
  gated.gate = own(columns(gate_up, 0, ffn_.count));
  gated.up = own(columns(gate_up, ffn_.count, ffn_.count));
  op(std::move(gated), at);
  LinearT down;
  down.out = own(View(y_));
  down.input = own(View(product));
  down.weight = weight(n + "down", s_.weight_dtype, s_.linear_layout,
                       {part(name("mlp.down_proj.weight"), {0, s_.hidden}, ffn_, 0, false)});
  op(std::move(down), at, packed);
  all_reduce(y_, at);
}

void TinyPlan::program(uint32_t rank) {
  ProgramT program;
  p_ = &program;
  program.rank = program.device = rank;
  program.stage = stage_ = rank / s_.tp;
  program.tp_index = tp_ = rank % s_.tp;
  seq_ = 0;
  q_ = share(s_.q_heads, s_.tp, tp_);
  const uint64_t group = s_.q_heads / s_.kv_heads;
  if (s_.kv_heads >= s_.tp) {
    Span kv = share(s_.kv_heads, s_.tp, tp_);
    q_ = {kv.begin * group, kv.count * group};
  }
  kv_.clear();
  for (uint64_t head = q_.begin / group; head <= (q_.end() - 1) / group; ++head)
    kv_.push_back(uint32_t(head));
  ffn_ = share(s_.ffn, s_.tp, tp_);
  vocab_ = share(s_.vocab, s_.tp, tp_);
  Span layers = share(s_.layers, s_.pp, stage_);

  KvCacheT kv;
  for (uint64_t l = layers.begin; l < layers.end(); ++l)
    kv.layers.push_back(uint32_t(l));
  kv.heads = kv_;
  for (uint32_t head : kv_)
    for (uint32_t lower = 0; lower < tp_; ++lower) {
      Span theirs = share(s_.q_heads, s_.tp, lower);
      if (s_.kv_heads < s_.tp && theirs.begin / group <= head && head <= (theirs.end() - 1) / group) {
        ++kv.duplicated_heads;
        break;
      }
    }
  kv.head_dim = uint32_t(s_.head_dim);
  kv.dtype = s_.kv_dtype;
  program.kv = own(std::move(kv));

  const DType act = s_.activation_dtype;
  x_ = buffer("x", s_.hidden, act);
  h_ = buffer("h", s_.hidden, act);
  y_ = buffer("y", s_.hidden, act);
  if (stage_ == 0) {
    EmbeddingT o;
    o.out = own(View(x_));
    o.table = weight("embed", s_.weight_dtype, Layout::RowMajor,
                     {part("model.embed_tokens.weight", vocab_, {0, s_.hidden}, 0, false)});
    o.vocab_begin = vocab_.begin;
    o.vocab_count = vocab_.count;
    op(std::move(o), -1);
    all_reduce(x_, -1);
  } else {
    RecvT o;
    o.out = own(View(x_));
    o.peer = rank - s_.tp;
    op(std::move(o), -1);
  }
  for (uint64_t l = layers.begin; l < layers.end(); ++l)
    layer(rank, uint32_t(l - layers.begin), l);
  if (stage_ + 1 < s_.pp) {
    AddT add;
    add.residual = own(View(x_));
    add.input = own(View(y_));
    op(std::move(add), -1);
    SendT o;
    o.input = own(View(x_));
    o.peer = rank + s_.tp;
    op(std::move(o), -1);
  } else {
    AddRmsNormT o;
    o.out = own(View(h_));
    o.residual = own(View(x_));
    o.input = own(View(y_));
    o.weight = norm("model.norm.weight", s_.hidden);
    o.eps = 1e-5f;
    op(std::move(o), -1);
    View selected = buffer("selected", s_.hidden, act, Rows::Logits);
    SelectRowsT select;
    select.out = own(View(selected));
    select.input = own(View(h_));
    op(std::move(select), -1);
    View part_logits = buffer(s_.tp > 1 ? "logits_part" : "logits", vocab_.count, DType::F32, Rows::Logits);
    LinearT lm;
    lm.out = own(View(part_logits));
    lm.input = own(View(selected));
    lm.weight = weight("lm_head", s_.weight_dtype, s_.linear_layout,
                       {part(s_.tied ? "model.embed_tokens.weight" : "lm_head.weight", vocab_, {0, s_.hidden}, 0,
                             s_.tied)});
    op(std::move(lm), -1, s_.linear_layout == Layout::Packed16 ? ".packed16" : "");
    View logits = part_logits;
    if (s_.tp > 1) {
      GatherT gather;
      gather.input = own(View(part_logits));
      for (uint32_t i = 0; i < s_.tp; ++i)
        gather.counts.push_back(share(s_.vocab, s_.tp, i).count);
      gather.group = stage_;
      gather.seq = seq_++;
      if (tp_ == 0) {
        logits = buffer("logits", s_.vocab, DType::F32, Rows::Logits);
        gather.out = own(View(logits));
      }
      op(std::move(gather), -1);
    }
    if (rank == plan_.output_rank)
      program.logits = own(View(logits));
  }
  plan_.programs.push_back(own(std::move(program)));
}

PlanT TinyPlan::build() {
  head();
  tensors();
  for (uint32_t rank = 0; rank < s_.tp * s_.pp; ++rank)
    program(rank);
  relayout(plan_);
  return std::move(plan_);
}

} // namespace

PlanT build_tiny_plan(const TinySpec &spec) { return TinyPlan(spec).build(); }

std::vector<uint8_t> pack(const PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  FinishPlanBuffer(builder, Plan::Pack(builder, &plan));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

std::shared_ptr<const LoadedPlan> load(const PlanT &plan) { return LoadedPlan::from_bytes(pack(plan), "tiny.fb"); }

void relayout(PlanT &plan) {
  for (auto &p : plan.programs) {
    uint64_t at = 0;
    for (auto &w : p->weights) {
      weight_bytes(w->dtype, w->layout, w->rows, w->cols, w->bytes);
      w->offset = at;
      at = aligned(at + w->bytes);
    }
    p->weight_bytes = at;
    at = 0;
    for (auto &b : p->buffers) {
      row_major_bytes(b->dtype, b->rows == Rows::Tokens ? plan.limits->max_batched_tokens : plan.limits->max_logits_rows,
                      b->cols, b->bytes);
      b->offset = at;
      at = aligned(at + b->bytes);
    }
    p->arena_bytes = at;
    KvCacheT &kv = *p->kv;
    kv.layer_page_bytes = 2 * kv.heads.size() * plan.limits->page_size * kv.head_dim * block_bytes(kv.dtype);
    kv.page_bytes = kv.layers.size() * kv.layer_page_bytes;
    kv.bytes = plan.limits->num_pages * kv.page_bytes;
    LedgerT ledger;
    auto line = [&](const char *name, uint64_t bytes) {
      LedgerLineT l;
      l.name = name;
      l.bytes = bytes;
      ledger.lines.push_back(own(std::move(l)));
      ledger.total += bytes;
    };
    line("weights", p->weight_bytes);
    line("activations", p->arena_bytes);
    line("workspace", p->workspace_bytes);
    line("communication", 0);
    line("runtime", 0);
    line("kv_cache", kv.bytes);
    ledger.memory = plan.topology->devices[p->device]->memory_bytes;
    ledger.budget = uint64_t(double(plan.limits->memory_utilization) * double(ledger.memory));
    p->ledger = own(std::move(ledger));
  }
  plan.model->parameters = 0;
  for (auto &t : plan.tensors)
    plan.model->parameters += t->rows * t->cols;
  // Lifetimes come from the packed ops: their operands in one uniform form.
  auto loaded = load(plan);
  for (uint32_t rank = 0; rank < plan.programs.size(); ++rank) {
    std::vector<bool> seen(plan.programs[rank]->buffers.size(), false);
    const Program &program = loaded->program(rank);
    auto touch = [&](const View &view, uint32_t op) {
      BufferT &b = *plan.programs[rank]->buffers[view.buffer()];
      if (!seen[view.buffer()])
        b.first_op = op;
      seen[view.buffer()] = true;
      b.last_op = op;
    };
    for (uint32_t i = 0; i < size_of(program.ops()); ++i)
      for (const ViewOperand &operand : operands_of(*program.ops()->Get(i)))
        if (operand.view && operand.view->buffer() < seen.size())
          touch(*operand.view, i);
    if (program.logits())
      touch(*program.logits(), size_of(program.ops()) - 1);
  }
}

} // namespace llmrt::plan::testing
