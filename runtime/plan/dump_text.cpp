// The text form. It reads plans that verify() would refuse (that is when one wants to look), so nothing here trusts
// an index.
#include "runtime/plan/access.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/hash.h"

#include <charconv>
#include <type_traits>

namespace llmrt::plan {

namespace {

class TextDump {
public:
  TextDump(const Plan &plan, const DumpOptions &options) : plan_(plan), options_(options) {}

  std::string run() {
    head();
    machine();
    checkpoint();
    for (const Program *program : each(plan_.programs()))
      this->program(*program);
    return std::move(out_);
  }

private:
  void head();
  void machine();
  void checkpoint();
  void program(const Program &program);
  void weights(const Program &program);
  void memory(const Program &program);
  void op(const Program &program, uint32_t index, const Op &op);
  void attributes(const Op &op);

  template <typename... Parts> void put(const Parts &...parts) { (add(parts), ...); }
  template <typename T> void add(const T &part) {
    if constexpr (std::is_same_v<T, bool>) {
      out_ += part ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<T>) {
      char text[64];
      out_.append(text, std::to_chars(text, text + sizeof text, part).ptr);
    } else {
      out_ += part;
    }
  }

  // In quotes, unprintable bytes as \xNN; long ones by length and hash.
  std::string text(const flatbuffers::String *string) const {
    std::string_view raw = view_of(string);
    if (raw.size() > 256 && !options_.long_strings)
      return "<" + std::to_string(raw.size()) + " bytes, xxh64 " + hash_hex(hash_bytes(raw.data(), raw.size())) + ">";
    static const char digits[] = "0123456789abcdef";
    std::string result = "\"";
    for (char c : raw) {
      uint8_t byte = uint8_t(c);
      if (c == '"' || c == '\\')
        (result += '\\') += c;
      else if (c == '\n')
        result += "\\n";
      else if (byte < 0x20 || byte == 0x7f)
        ((result += "\\x") += digits[byte >> 4]) += digits[byte & 15];
      else
        result += c;
    }
    return result += '"';
  }
  // A name inside an op line: bare, with anything that would break the line replaced.
  static std::string bare(const flatbuffers::String *string) {
    std::string result;
    for (char c : view_of(string).substr(0, 256))
      result += uint8_t(c) > 0x20 && c != 0x7f ? c : '_';
    return result.empty() ? "_" : result;
  }
  std::string view(const Program &program, const View &view) const {
    std::string name = view.buffer() < size_of(program.buffers())
                           ? bare(program.buffers()->Get(view.buffer())->name())
                           : "?" + std::to_string(view.buffer());
    return "%" + name + "[" + std::to_string(view.col()) + ":" + std::to_string(uint64_t(view.col()) + view.cols()) + "]";
  }
  std::string weight(const Program &program, int64_t index) const {
    return "@" + (index >= 0 && index < size_of(program.weights()) ? bare(program.weights()->Get(uint32_t(index))->name())
                                                                  : "?" + std::to_string(index));
  }
  template <typename T> std::string list(const flatbuffers::Vector<T> *values) const {
    std::string result = "[";
    for (auto value : each(values)) {
      if (result.size() > 1)
        result += ", ";
      char number[64];
      result.append(number, std::to_chars(number, number + sizeof number, value).ptr);
    }
    return result += "]";
  }

  const Plan &plan_;
  const DumpOptions &options_;
  std::string out_;
};

void TextDump::head() {
  put("plan ", plan_.version_major(), ".", plan_.version_minor(), "\n");
  if (const Provenance *p = plan_.provenance()) {
    put("provenance compiler=", text(p->compiler_version()), " command=", text(p->command_line()), " config=",
        text(p->config_hash()), " topology=", text(p->topology_name()), " topology_hash=", text(p->topology_hash()), "\n");
    for (const flatbuffers::String *warning : each(p->warnings()))
      put("warning ", text(warning), "\n");
  }
  if (const Model *m = plan_.model())
    put("model ", text(m->name()), " served=", text(m->served_name()), " type=", text(m->model_type()), " source=",
        text(m->source()), " hidden=", m->hidden(), " layers=", m->layers(), " q_heads=", m->q_heads(), " kv_heads=",
        m->kv_heads(), " head_dim=", m->head_dim(), " ffn=", m->ffn(), " vocab=", m->vocab(), " max_positions=",
        m->max_positions(), " parameters=", m->parameters(), " tied=", m->tied_embeddings(), " weights=",
        name_of(m->weight_dtype()), " activations=", name_of(m->activation_dtype()), " kv=", name_of(m->kv_dtype()), "\n");
  if (const Text *t = plan_.text()) {
    put("text tokenizer=", text(t->tokenizer_json()), " chat_template=", text(t->chat_template()), " bos=",
        text(t->bos_token()), " eos=", text(t->eos_token()), " bos_token_id=", t->bos_token_id(), " eos_token_ids=",
        list(t->eos_token_ids()));
    auto optional = [&](const char *name, const auto &value) {
      if (value)
        put(" ", name, "=", *value);
    };
    optional("temperature", t->temperature());
    optional("top_p", t->top_p());
    optional("min_p", t->min_p());
    optional("top_k", t->top_k());
    optional("repetition_penalty", t->repetition_penalty());
    put("\n");
  }
  if (const Limits *l = plan_.limits())
    put("limits max_model_len=", l->max_model_len(), " max_num_seqs=", l->max_num_seqs(), " max_batched_tokens=",
        l->max_batched_tokens(), " max_logits_rows=", l->max_logits_rows(), " page_size=", l->page_size(), " num_pages=",
        l->num_pages(), " memory_utilization=", l->memory_utilization(), "\n");
  put("mesh tp=", plan_.tp(), " pp=", plan_.pp(), " output_rank=", plan_.output_rank(), "\n");
}

void TextDump::machine() {
  const Topology *topology = plan_.topology();
  if (!topology)
    return;
  for (uint32_t i = 0; i < size_of(topology->devices()); ++i) {
    const Device &d = *topology->devices()->Get(i);
    put("device ", i, " ", text(d.id()), " kind=", name_of(d.kind()), " name=", text(d.name()), " uuid=", text(d.uuid()),
        " pci=", text(d.pci_id()), " host=", d.host(), " memory=", d.memory_bytes(), " reserved=", d.reserved_bytes(),
        " capability=", d.capability(), " bandwidth=", d.memory_bandwidth(), " flops=", d.peak_flops(), "\n");
  }
  for (const Link *l : each(topology->links()))
    put("link ", l->a(), " ", l->b(), " kind=", text(l->kind()), " bandwidth=", l->bandwidth(), " latency=", l->latency(),
        " p2p=", l->p2p(), "\n");
}

void TextDump::checkpoint() {
  for (uint32_t i = 0; i < size_of(plan_.files()); ++i) {
    const File &f = *plan_.files()->Get(i);
    put("file ", i, " ", text(f.path()), " bytes=", f.bytes(), " header_bytes=", f.header_bytes(), " header_xxh64=",
        hash_hex(f.header_hash()), "\n");
  }
  for (uint32_t i = 0; i < size_of(plan_.tensors()); ++i) {
    const Tensor &t = *plan_.tensors()->Get(i);
    put("tensor ", i, " ", text(t.name()), " ", name_of(t.dtype()), " [", t.rows(), " x ", t.cols(), "]");
    if (t.file() >= 0)
      put(" file=", t.file(), " offset=", t.offset(), " bytes=", t.bytes(), "\n");
    else
      put(" fill=", name_of(t.fill()), " scale=", t.fill_scale(), "\n");
  }
  for (uint32_t i = 0; i < size_of(plan_.rope_tables()); ++i) {
    const RopeTable &r = *plan_.rope_tables()->Get(i);
    put("rope_table ", i, " attention_factor=", r.attention_factor(), " inv_freq=", list(r.inv_freq()), "\n");
  }
  for (uint32_t i = 0; i < size_of(plan_.groups()); ++i)
    put("group ", i, " ", text(plan_.groups()->Get(i)->name()), " ranks=", list(plan_.groups()->Get(i)->ranks()), "\n");
}

void TextDump::weights(const Program &program) {
  for (uint32_t i = 0; i < size_of(program.weights()); ++i) {
    const Weight &w = *program.weights()->Get(i);
    put("  weight @", bare(w.name()), " ", name_of(w.dtype()), " ", name_of(w.layout()), " [", w.rows(), " x ", w.cols(),
        "] offset=", w.offset(), " bytes=", w.bytes(), "\n");
    if (!options_.parts)
      continue;
    for (const WeightPart *p : each(w.parts())) {
      put("    part ");
      if (p->tensor() < size_of(plan_.tensors()))
        put(text(plan_.tensors()->Get(p->tensor())->name()));
      else
        put("?", p->tensor());
      put(" row=", p->row(), " rows=", p->rows(), " col=", p->col(), " cols=", p->cols(), " dst_row=", p->dst_row(),
          " dst_col=", p->dst_col(), p->replica() ? " replica\n" : "\n");
    }
  }
}

void TextDump::memory(const Program &program) {
  for (uint32_t i = 0; i < size_of(program.buffers()); ++i) {
    const Buffer &b = *program.buffers()->Get(i);
    put("  buffer %", bare(b.name()), " ", name_of(b.dtype()), " [", name_of(b.rows()), " x ", b.cols(), "] offset=",
        b.offset(), " bytes=", b.bytes(), " ops=", b.first_op(), "..", b.last_op(), "\n");
  }
  if (const KvCache *kv = program.kv())
    put("  kv layers=", list(kv->layers()), " heads=", list(kv->heads()), " head_dim=", kv->head_dim(), " dtype=",
        name_of(kv->dtype()), " layer_page_bytes=", kv->layer_page_bytes(), " page_bytes=", kv->page_bytes(), " bytes=",
        kv->bytes(), " duplicated_heads=", kv->duplicated_heads(), "\n");
  if (const Ledger *ledger = program.ledger()) {
    put("  ledger");
    for (const LedgerLine *line : each(ledger->lines()))
      put(" ", bare(line->name()), "=", line->bytes());
    put(" total=", ledger->total(), " budget=", ledger->budget(), " memory=", ledger->memory(), "\n");
  }
}

void TextDump::attributes(const Op &op) {
  if (const Embedding *o = op.op_as_Embedding())
    put(" vocab=[", o->vocab_begin(), ", +", o->vocab_count(), ") scale=", o->scale());
  else if (const RmsNorm *o = op.op_as_RmsNorm())
    put(" eps=", o->eps(), " weight_offset=", o->weight_offset());
  else if (const AddRmsNorm *o = op.op_as_AddRmsNorm())
    put(" eps=", o->eps(), " weight_offset=", o->weight_offset());
  else if (const Rope *o = op.op_as_Rope())
    put(" q_heads=", o->q_heads(), " kv_heads=", o->kv_heads(), " head_dim=", o->head_dim(), " rotary_dim=",
        o->rotary_dim(), " style=", name_of(o->style()), " rope_table=", o->table(), " eps=", o->eps());
  else if (const KvAppend *o = op.op_as_KvAppend())
    put(" kv_layer=", o->layer(), " kv_heads=", o->kv_heads(), " head_dim=", o->head_dim());
  else if (const Attention *o = op.op_as_Attention())
    put(" kv_layer=", o->layer(), " q_heads=", o->q_heads(), " kv_heads=", o->kv_heads(), " head_dim=", o->head_dim(),
        " kv_head_of_q=", list(o->kv_head_of_q()), " scale=", o->scale(), " window=", o->window(), " softcap=",
        o->softcap());
  else if (const Linear *o = op.op_as_Linear(); o && (o->stream_rows() || o->wide_rows() || o->fused_rows()))
    put(" stream_rows=", o->stream_rows(), " wide_rows=", o->wide_rows(), " fused_rows=", o->fused_rows(), " paired_rows=",
        o->paired_rows());
  else if (const GatedAct *o = op.op_as_GatedAct())
    put(" act=", name_of(o->act()));
  CommInfo comm = comm_of(op);
  if (!comm.is_comm)
    return;
  if (comm.is_transfer) {
    put(" peer=", comm.peer);
  } else {
    if (comm.counts)
      put(" counts=", list(comm.counts));
    if (op.op_type() == OpKind::Gather)
      put(" root=", comm.root);
    put(" group=", comm.group, " algorithm=", name_of(comm.algorithm));
    if (comm.one_shot_bytes)
      put(" one_shot_bytes=", comm.one_shot_bytes);
    if (comm.two_shot_bytes)
      put(" two_shot_bytes=", comm.two_shot_bytes);
  }
  put(" seq=", comm.seq, " comm=", name_of(comm.comm));
}

void TextDump::op(const Program &program, uint32_t index, const Op &op) {
  put("  %", index, " = ", name_of(op.op_type()));
  Operands operands = operands_of(op);
  for (const ViewOperand &operand : operands)
    if (operand.view)
      put(" ", operand.name, "=", view(program, *operand.view));
  for (uint32_t i = 0; i < operands.num_weights; ++i)
    if (operands.weights[i].index >= 0 || !operands.weights[i].optional)
      put(" ", operands.weights[i].name, "=", weight(program, operands.weights[i].index));
  attributes(op);
  put(" kernel=", bare(op.kernel()));
  if (op.stream())
    put(" stream=", op.stream());
  if (op.layer() >= 0)
    put(" layer=", op.layer());
  put("\n");
}

void TextDump::program(const Program &program) {
  put("program rank=", program.rank(), " stage=", program.stage(), " tp_index=", program.tp_index(), " device=",
      program.device(), " weight_bytes=", program.weight_bytes(), " arena_bytes=", program.arena_bytes(),
      " workspace_bytes=", program.workspace_bytes(), "\n");
  weights(program);
  memory(program);
  for (uint32_t i = 0; i < size_of(program.ops()); ++i)
    op(program, i, *program.ops()->Get(i));
  if (program.logits())
    put("  logits ", view(program, *program.logits()), "\n");
}

} // namespace

std::string dump_text(const Plan &plan, const DumpOptions &options) { return TextDump(plan, options).run(); }

} // namespace llmrt::plan
