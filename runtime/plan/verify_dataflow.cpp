// Values followed from weight to weight: every query head is computed once in its stage and reads its own KV head,
// the columns of row-parallel weights meet the columns they belong to, partial sums are reduced before use, and
// every token id's embedding and logit comes from its own row of the vocabulary.
#include "runtime/plan/producers.h"
#include "runtime/plan/tiling.h"
#include "runtime/plan/verify_internal.h"

#include <algorithm>
#include <tuple>

namespace llmrt::plan {

namespace {

constexpr const char *kFlow = "dataflow";
constexpr const char *kHeads = "heads";
constexpr const char *kVocabulary = "vocabulary";

// No valid program builds a value from more pieces, or fills a weight from more runs of rows or columns. The bound
// keeps the walk linear.
constexpr size_t kMostPieces = 64;

// What the ranks' walks leave behind for proofs across ranks.
struct Shared {
  std::vector<std::tuple<uint32_t, uint32_t, uint64_t>> heads; // (stage, model layer, query head)
  bool heads_known = true; // false: some could not be followed, and that was reported
  // Vocabulary rows behind each member's input of a gather, by (group, seq, rank).
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Segment> gathered;
  std::vector<std::tuple<uint32_t, uint64_t, uint64_t>> tables; // (stage, vocab_begin, vocab_count)
};

// The walk over one rank's ops.
class Walk {
public:
  Walk(const Plan &plan, const Program &program, Reporter &report, Shared &shared)
      : plan_(plan), model_(*plan.model()), program_(program), report_(report), shared_(shared),
        producers_(size_of(program.buffers())), maps_(size_of(program.weights())),
        used_(size_of(program.weights()), false) {}

  void run();

private:
  // Columns of a value as columns of the tensors that will be multiplied with it.
  struct Columns {
    std::vector<Segment> segments;
    uint64_t extent = 0; // columns of that tensor
  };

  template <typename... Parts> void bad(const char *check, const Parts &...parts) {
    report_.add(check, program_.rank(), index_, program_.ops()->Get(index_), cat(parts...));
  }
  const WeightMap &map(uint32_t weight) {
    if (!maps_[weight])
      maps_[weight] = map_weight(plan_, *program_.weights()->Get(weight));
    return *maps_[weight];
  }
  const Tensor &tensor(const Segment &s) const { return *plan_.tensors()->Get(s.tensor); }
  std::string weight_name(uint32_t index) const { return quoted(program_.weights()->Get(index)->name()); }

  void step(const Op &op);
  void check_reads(const Op &op);
  void embedding(const Embedding &o);
  void linear(const Linear &o);
  void append(const KvAppend &o);
  void attention(const Attention &o);
  void gated(const GatedAct &o);
  void gather(const CommInfo &comm, const View &input, const View *out);
  std::optional<std::vector<Segment>> rows_of(const View &view, size_t most);
  std::optional<uint64_t> head_of(const Segment &s) const;

  const Plan &plan_;
  const Model &model_;
  const Program &program_;
  Reporter &report_;
  Shared &shared_;
  Producers producers_;
  std::vector<std::optional<WeightMap>> maps_;
  std::vector<bool> used_;
  std::map<uint32_t, Columns> columns_; // of the ops whose output a row-parallel weight may meet
  std::optional<std::vector<Segment>> held_; // the rank's KV heads as rows of a k or v projection
  uint32_t index_ = 0;
};

void Walk::run() {
  for (index_ = 0; index_ < size_of(program_.ops()); ++index_)
    step(*program_.ops()->Get(index_));
  for (uint32_t i = 0; i < used_.size(); ++i)
    if (!used_[i])
      report_.add(kFlow, program_.rank(), cat("Weight ", weight_name(i), " is used by no op."));

  const View *logits = program_.logits();
  if (!logits)
    return;
  auto bad_output = [&](std::string message) { report_.add("output", program_.rank(), std::move(message)); };
  const Buffer &buffer = *program_.buffers()->Get(logits->buffer());
  if (buffer.dtype() != DType::F32 || buffer.rows() != Rows::Logits || logits->cols() != model_.vocab())
    bad_output(cat("Its logits are ", name_of(buffer.dtype()), " [", name_of(buffer.rows()), " × ", logits->cols(),
                   "], and must be f32 [logits × ", model_.vocab(), "]."));
  auto pieces = producers_.read(*logits, 1);
  const Op *source = pieces ? program_.ops()->Get(pieces->front().op) : nullptr;
  CommInfo comm = source ? comm_of(*source) : CommInfo();
  if (pieces && pieces->front().partial)
    bad_output("Its logits are partial sums that were not reduced.");
  else if (source && source->op_type() == OpKind::Linear) {
    auto rows = rows_of(*logits, 1);
    if (!rows || rows->front().source != 0 || tensor(rows->front()).rows() != model_.vocab())
      report_.add(kVocabulary, program_.rank(), "Its logits do not come from the vocabulary's rows in order.");
  } else if (!comm.counts) {
    bad_output("Its logits come neither from one linear nor from one gather.");
  }
}

void Walk::check_reads(const Op &op) {
  Operands operands = operands_of(op);
  for (uint32_t i = 0; i < operands.num_weights; ++i)
    if (operands.weights[i].index >= 0)
      used_[size_t(operands.weights[i].index)] = true;
  for (const ViewOperand &operand : operands) {
    if (!operand.view || operand.access == Access::Write)
      continue;
    auto pieces = producers_.read(*operand.view, kMostPieces);
    if (!pieces) {
      bad(kFlow, "Its ", operand.name, " ", describe(program_, *operand.view),
          " cannot be followed: some column was never written, or it is made of more than ", kMostPieces, " pieces.");
      continue;
    }
    bool reduce = op.op_type() == OpKind::AllReduce;
    for (const Producers::Piece &piece : *pieces)
      if (piece.partial != reduce) {
        std::string from = cat(" that op ", piece.op, " (", name_of(program_.ops()->Get(piece.op)->op_type()), ") wrote");
        bad(kFlow, "Its ", operand.name, " ", describe(program_, *operand.view), " holds ",
            reduce ? cat("a whole value", from, "; summed over the group it would be counted once per member.")
                   : cat("a partial sum", from, "; it must be reduced before it is used."));
        break;
      }
  }
}

void Walk::step(const Op &op) {
  check_reads(op);
  switch (op.op_type()) {
  case OpKind::Embedding:
    embedding(*op.op_as_Embedding());
    return;
  case OpKind::Linear:
    linear(*op.op_as_Linear());
    return;
  case OpKind::Rope: // in place, and each head stays the head it was
    return;
  case OpKind::KvAppend:
    append(*op.op_as_KvAppend());
    return;
  case OpKind::Attention:
    attention(*op.op_as_Attention());
    return;
  case OpKind::GatedAct:
    gated(*op.op_as_GatedAct());
    return;
  case OpKind::AllGather:
    gather(comm_of(op), *op.op_as_AllGather()->input(), op.op_as_AllGather()->out());
    return;
  case OpKind::Gather:
    gather(comm_of(op), *op.op_as_Gather()->input(), op.op_as_Gather()->out());
    return;
  default:
    for (const ViewOperand &operand : operands_of(op))
      if (operand.view && operand.access != Access::Read)
        producers_.write(*operand.view, index_, false);
  }
}

void Walk::embedding(const Embedding &o) {
  shared_.tables.push_back({program_.stage(), o.vocab_begin(), o.vocab_count()});
  const auto &rows = map(o.table()).rows;
  if (rows.size() != 1 || tensor(rows[0]).rows() != model_.vocab() || rows[0].source != o.vocab_begin())
    bad(kVocabulary, "Its table ", weight_name(o.table()), " must hold the vocabulary's rows from ", o.vocab_begin(),
        " on",
        rows.empty() ? std::string(".") : cat(", and starts with row ", rows[0].source, " of ", tensor(rows[0]).rows(), "."));
  producers_.write(*o.out(), index_, o.vocab_count() < model_.vocab());
}

// The tensor rows behind a view whose columns linears computed (rope passes through). Nothing when they did not.
std::optional<std::vector<Segment>> Walk::rows_of(const View &view, size_t most) {
  auto pieces = producers_.read(view, kMostPieces);
  if (!pieces)
    return std::nullopt;
  std::vector<Segment> out;
  for (const Producers::Piece &piece : *pieces) {
    const Linear *source = program_.ops()->Get(piece.op)->op_as_Linear();
    if (!source || piece.partial)
      return std::nullopt;
    const auto &rows = map(source->weight()).rows;
    uint64_t at = piece.begin - source->out()->col(), end = piece.end - source->out()->col();
    auto s = std::upper_bound(rows.begin(), rows.end(), at,
                              [](uint64_t value, const Segment &segment) { return value < segment.begin; });
    if (s == rows.begin())
      return std::nullopt;
    for (--s; at < end; ++s) {
      if (s == rows.end() || s->begin > at || s->begin + s->count <= at || out.size() == most)
        return std::nullopt;
      uint64_t stop = std::min(end, s->begin + s->count);
      out.push_back({at + source->out()->col() - view.col(), stop - at, s->tensor, s->source + (at - s->begin)});
      at = stop;
    }
  }
  return merge_segments(std::move(out));
}

// The global query head whose rows begin at a segment of a q projection, or of a fused qkv projection.
std::optional<uint64_t> Walk::head_of(const Segment &s) const {
  uint64_t dim = model_.head_dim(), rows = tensor(s).rows();
  bool own = rows == model_.q_heads() * dim, fused = rows == (model_.q_heads() + 2 * model_.kv_heads()) * dim;
  if ((!own && !fused) || s.source % dim != 0 || s.source / dim >= model_.q_heads())
    return std::nullopt;
  return s.source / dim;
}

void Walk::attention(const Attention &o) {
  const KvCache &kv = *program_.kv();
  uint64_t dim = o.head_dim(), group = std::max<uint64_t>(1, model_.q_heads() / model_.kv_heads());
  auto rows = rows_of(*o.q(), size_t(o.q_heads()) + 1);
  Columns columns;
  columns.extent = model_.q_heads() * model_.head_dim();
  size_t s = 0;
  for (uint32_t i = 0; rows && i < o.q_heads(); ++i) {
    uint64_t begin = i * dim, end = begin + dim;
    while (s < rows->size() && (*rows)[s].begin + (*rows)[s].count <= begin)
      ++s;
    std::optional<uint64_t> head;
    if (s < rows->size() && (*rows)[s].begin <= begin && (*rows)[s].begin + (*rows)[s].count >= end)
      head = head_of({begin, dim, (*rows)[s].tensor, (*rows)[s].source + (begin - (*rows)[s].begin)});
    if (!head) {
      rows.reset();
      break;
    }
    uint32_t local = o.kv_head_of_q()->Get(i);
    if (local >= size_of(kv.heads()) || kv.heads()->Get(local) != *head / group)
      bad(kHeads, "Its local query head ", i, " is the model's query head ", *head, ", which reads KV head ",
          *head / group, ", and it is given local KV head ", local,
          local < size_of(kv.heads()) ? cat(", the model's KV head ", kv.heads()->Get(local), ".") : std::string("."));
    shared_.heads.push_back({program_.stage(), kv.layers()->Get(o.layer()), *head});
    columns.segments.push_back({begin, dim, 0, *head * dim});
  }
  if (!rows) {
    shared_.heads_known = false;
    bad(kHeads, "Its query heads cannot be followed to whole heads of a q projection [", model_.q_heads(), " × ",
        model_.head_dim(), " rows].");
  } else {
    columns.segments = merge_segments(std::move(columns.segments));
    columns_[index_] = std::move(columns);
  }
  producers_.write(*o.out(), index_, false);
}

void Walk::append(const KvAppend &o) {
  uint64_t dim = model_.head_dim(), q = model_.q_heads(), heads = model_.kv_heads();
  if (!held_) {
    held_.emplace();
    for (uint32_t head : each(program_.kv()->heads()))
      held_->push_back({held_->size() * dim, dim, 0, head * dim});
    held_ = merge_segments(std::move(*held_));
  }
  // `before` heads come first in a fused qkv projection.
  auto check = [&](const char *name, const View &view, uint64_t before) {
    auto rows = rows_of(view, kMostPieces);
    bool right = rows && rows->size() == held_->size();
    uint64_t base = 0;
    for (size_t i = 0; right && i < rows->size(); ++i) {
      const Segment &s = (*rows)[i], &want = (*held_)[i];
      bool own = tensor(s).rows() == heads * dim, fused = tensor(s).rows() == (q + 2 * heads) * dim;
      base = own ? 0 : before * dim;
      right = (own || fused) && s.begin == want.begin && s.count == want.count && s.source == base + want.source;
    }
    if (!right)
      bad(kHeads, "Its ", name, " must be the KV heads that the rank's cache holds, in order, and ",
          rows ? cat("comes from ", rows->size(), " runs of rows of ", quoted(tensor(rows->front()).name()),
                     ", the first at row ", rows->front().source, "; the cache's first head is ",
                     held_->empty() ? 0 : held_->front().source / dim, ".")
               : cat("cannot be followed to a projection of ", heads, " heads."));
  };
  check("k", *o.k(), q);
  check("v", *o.v(), q + heads);
}

void Walk::gated(const GatedAct &o) {
  auto gate = rows_of(*o.gate(), kMostPieces), up = rows_of(*o.up(), kMostPieces);
  bool right = gate && up && gate->size() == up->size();
  Columns columns;
  for (size_t i = 0; right && i < gate->size(); ++i) {
    const Segment &g = (*gate)[i], &u = (*up)[i];
    bool fused = g.tensor == u.tensor; // gate rows, then as many up rows
    columns.extent = fused ? tensor(g).rows() / 2 : tensor(g).rows();
    right = g.begin == u.begin && g.count == u.count && tensor(g).rows() == tensor(u).rows() &&
            u.source == g.source + (fused ? columns.extent : 0) && g.tensor == gate->front().tensor;
    columns.segments.push_back({g.begin, g.count, 0, g.source});
  }
  if (right)
    columns_[index_] = std::move(columns);
  else
    bad(kFlow, "Its gate ", describe(program_, *o.gate()), " and its up ", describe(program_, *o.up()),
        " do not come from the same rows of the gate and up projections.");
  producers_.write(*o.out(), index_, false);
}

// A row-parallel product must meet the columns that its input really holds; any other takes its input in order.
void Walk::linear(const Linear &o) {
  const WeightMap &map = this->map(o.weight());
  auto input = producers_.read(*o.input(), 1);
  const Columns *known = nullptr;
  if (input) {
    auto at = columns_.find(input->front().op);
    Operands source = operands_of(*program_.ops()->Get(input->front().op));
    if (at != columns_.end() && source.views[0].view->col() == o.input()->col())
      known = &at->second;
  }
  std::string name = weight_name(o.weight());
  const Weight &weight = *program_.weights()->Get(o.weight());
  uint64_t extent = plan_.tensors()->Get(weight.parts()->Get(0)->tensor())->cols();
  if (known && !map.cols.empty()) {
    bool same = map.cols.size() == known->segments.size() && map.cols.size() <= kMostPieces && extent == known->extent;
    for (size_t i = 0; same && i < map.cols.size(); ++i)
      same = map.cols[i].begin == known->segments[i].begin && map.cols[i].count == known->segments[i].count &&
             map.cols[i].source == known->segments[i].source;
    if (!same)
      bad(kFlow, "Its input holds columns [", known->segments[0].source, ", …) of ", known->extent, ", in ",
          known->segments.size(), " runs, and its weight ", name, " columns [", map.cols[0].source, ", …) of ", extent,
          ", in ", map.cols.size(), " runs; both must be the same columns in the same order.");
  } else if (map.partial || (map.rows.empty() && (map.cols.size() != 1 || map.cols[0].source != 0))) {
    bad(kFlow, "Its weight ", name, " holds some columns of its tensor, or not in order, and its input ",
        describe(program_, *o.input()), " is not known to be those columns.");
  }
  if (map.partial && o.bias() >= 0)
    for (const WeightPart *part : *program_.weights()->Get(uint32_t(o.bias()))->parts())
      if (part->replica()) {
        bad(kFlow, "Its bias ", weight_name(uint32_t(o.bias())),
            " is a replica; added to a partial sum on several ranks it would be counted several times.");
        break;
      }
  producers_.write(*o.out(), index_, map.partial);
}

void Walk::gather(const CommInfo &comm, const View &input, const View *out) {
  auto rows = rows_of(input, kMostPieces);
  if (rows && rows->size() == 1)
    shared_.gathered[{comm.group, comm.seq, program_.rank()}] = rows->front();
  if (out)
    producers_.write(*out, index_, false);
}

// --- across ranks -------------------------------------------------------------------------------------------------

// Each (stage, layer) computes each query head once. Which layers a stage must have is the KV proof's business.
void query_heads(const Plan &plan, Shared &shared, Reporter &report) {
  if (!shared.heads_known)
    return;
  std::sort(shared.heads.begin(), shared.heads.end());
  uint64_t all = plan.model()->q_heads();
  for (size_t i = 0; i < shared.heads.size();) {
    auto [stage, layer, head] = shared.heads[i];
    uint64_t expected = 0;
    for (; i < shared.heads.size() && std::get<0>(shared.heads[i]) == stage && std::get<1>(shared.heads[i]) == layer;
         ++i) {
      uint64_t found = std::get<2>(shared.heads[i]);
      if (found < expected)
        report.add(kHeads, -1, cat("Layer ", layer, ": query head ", found, " is computed twice in stage ", stage, "."));
      else if (found > expected)
        report.add(kHeads, -1,
                   cat("Layer ", layer, ": no rank of stage ", stage, " computes query head ", expected, "."));
      expected = found + 1;
    }
    if (expected < all)
      report.add(kHeads, -1,
                 cat("Layer ", layer, ": no rank of stage ", stage, " computes query head ", expected, " of ", all, "."));
  }
}

void vocabulary_tables(const Plan &plan, Shared &shared, Reporter &report) {
  uint64_t vocab = plan.model()->vocab();
  if (shared.tables.empty())
    report.add(kVocabulary, -1, "No rank has an embedding.");
  std::sort(shared.tables.begin(), shared.tables.end());
  for (size_t i = 0; i < shared.tables.size();) {
    uint32_t stage = std::get<0>(shared.tables[i]);
    std::vector<Box> boxes;
    bool whole = true;
    for (; i < shared.tables.size() && std::get<0>(shared.tables[i]) == stage; ++i) {
      auto [same, begin, count] = shared.tables[i];
      boxes.push_back({begin, count, 0, 1});
      whole &= begin == 0 && count == vocab;
    }
    if (whole)
      continue;
    if (auto fault = check_tiling(boxes, vocab, 1, false))
      report.add(kVocabulary, -1,
                 fault->kind == TilingFault::Gap
                     ? cat("No embedding of stage ", stage, " serves token id ", fault->row, " of ", vocab, ".")
                     : cat("Token id ", fault->row, " is served by two embeddings of stage ", stage,
                           ", or lies outside the vocabulary of ", vocab, "; the sum over ranks would count it twice."));
  }
}

// The output rank's logits, when gathered: column j is row j of the vocabulary.
void gathered_logits(const Plan &plan, const Shared &shared, Reporter &report) {
  const Program &program = *plan.programs()->Get(plan.output_rank());
  const View &logits = *program.logits();
  const Op *source = nullptr;
  for (const Op *op : *program.ops()) {
    const View *out = op->op_as_Gather() ? op->op_as_Gather()->out()
                                         : op->op_as_AllGather() ? op->op_as_AllGather()->out() : nullptr;
    if (out && out->buffer() == logits.buffer() && out->col() == logits.col() && out->cols() == logits.cols())
      source = op;
    else
      for (const ViewOperand &operand : operands_of(*op))
        if (operand.view && operand.access != Access::Read && operand.view->buffer() == logits.buffer())
          source = nullptr;
  }
  if (!source)
    return;
  CommInfo comm = comm_of(*source);
  const auto &ranks = *plan.groups()->Get(comm.group)->ranks();
  uint64_t next = 0;
  std::optional<uint32_t> tensor;
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    auto at = shared.gathered.find({comm.group, comm.seq, ranks.Get(i)});
    uint64_t count = comm.counts->Get(i);
    if (at == shared.gathered.end() || at->second.source != next || at->second.count != count ||
        plan.tensors()->Get(at->second.tensor)->rows() != plan.model()->vocab() ||
        (tensor && *tensor != at->second.tensor)) {
      report.add(kVocabulary, ranks.Get(i),
                 cat("Its part of the logits is gathered as token ids [", next, ", ", next + count,
                     "), and does not come from those rows of the output projection",
                     at == shared.gathered.end() ? std::string(".")
                                                 : cat(" but from [", at->second.source, ", ",
                                                       at->second.source + at->second.count, ").")));
      return;
    }
    tensor = at->second.tensor;
    next += count;
  }
}

} // namespace

void verify_dataflow(const Plan &plan, Reporter &report) {
  Shared shared;
  for (const Program *program : *plan.programs())
    Walk(plan, *program, report, shared).run();
  query_heads(plan, shared, report);
  vocabulary_tables(plan, shared, report);
  gathered_logits(plan, shared, report);
}

} // namespace llmrt::plan
