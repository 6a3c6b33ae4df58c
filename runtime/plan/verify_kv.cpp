// KV pages: sizes follow from the geometry on every rank, the stages share out all layers, the ranks of a stage all
// heads, and every local layer is appended to once and then read once.
#include "runtime/plan/verify_internal.h"

#include <algorithm>

namespace llmrt::plan {

namespace {

constexpr const char *kCheck = "kv";

class Kv {
public:
  Kv(const Plan &plan, Reporter &report) : plan_(plan), report_(report) {}

  void run() {
    for (const Program *program : *plan_.programs()) {
      geometry(*program);
      uses(*program);
    }
    stages();
  }

private:
  template <typename... Parts> void bad(int64_t rank, const Parts &...parts) {
    report_.add(kCheck, rank, cat(parts...));
  }
  void geometry(const Program &program);
  void uses(const Program &program);
  void stages();
  void stage(uint32_t index, const std::vector<const Program *> &ranks);

  const Plan &plan_;
  Reporter &report_;
};

void Kv::geometry(const Program &program) {
  const KvCache &kv = *program.kv();
  const Model &model = *plan_.model();
  if (kv.head_dim() != model.head_dim() || kv.dtype() != model.kv_dtype())
    bad(program.rank(), "Its KV cache holds ", name_of(kv.dtype()), " heads of ", kv.head_dim(),
        " elements, and the model's are ", name_of(model.kv_dtype()), " of ", model.head_dim(), ".");
  uint64_t layers = size_of(kv.layers()), heads = size_of(kv.heads());
  uint64_t layer_page = 0, page = 0, all = 0;
  bool fits = row_major_bytes(kv.dtype(), 2, heads, layer_page) &&
              mul_fits(layer_page, plan_.limits()->page_size(), layer_page) &&
              mul_fits(layer_page, kv.head_dim(), layer_page) && mul_fits(layer_page, layers, page) &&
              mul_fits(page, plan_.limits()->num_pages(), all);
  if (!fits || kv.layer_page_bytes() != layer_page || kv.page_bytes() != page || kv.bytes() != all)
    bad(program.rank(), "2 × ", heads, " heads × ", kv.head_dim(), " elements of ", name_of(kv.dtype()), " × ",
        plan_.limits()->page_size(), " tokens is ", layer_page, " bytes a layer and page, ", page, " a page of ",
        layers, " layers, ", all, " for ", plan_.limits()->num_pages(), " pages; the plan says ",
        kv.layer_page_bytes(), ", ", kv.page_bytes(), " and ", kv.bytes(), ".");
  auto range = [&](const flatbuffers::Vector<uint32_t> *list, uint64_t below, const char *what) {
    std::vector<uint32_t> sorted(each(list).begin(), each(list).end());
    std::sort(sorted.begin(), sorted.end());
    if (!sorted.empty() && sorted.back() >= below)
      bad(program.rank(), "Its KV cache holds ", what, " ", sorted.back(), ", and the model has ", below, ".");
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      bad(program.rank(), "Its KV cache holds ", what, " ", *twice, " twice.");
  };
  range(kv.layers(), model.layers(), "layer");
  range(kv.heads(), model.kv_heads(), "KV head");
}

void Kv::uses(const Program &program) {
  const KvCache &kv = *program.kv();
  std::vector<uint32_t> appended(size_of(kv.layers()), 0), read(size_of(kv.layers()), 0);
  for (uint32_t i = 0; i < size_of(program.ops()); ++i) {
    const Op &op = *program.ops()->Get(i);
    auto bad_op = [&](std::string message) { report_.add(kCheck, program.rank(), i, &op, std::move(message)); };
    const KvAppend *append = op.op_as_KvAppend();
    const Attention *attention = op.op_as_Attention();
    if (!append && !attention)
      continue;
    uint32_t layer = append ? append->layer() : attention->layer();
    uint32_t heads = append ? append->kv_heads() : attention->kv_heads();
    uint32_t head_dim = append ? append->head_dim() : attention->head_dim();
    if (heads != size_of(kv.heads()) || head_dim != kv.head_dim())
      bad_op(cat("It works on ", heads, " KV heads of ", head_dim, " elements, and the rank's cache holds ",
                 size_of(kv.heads()), " of ", kv.head_dim(), "."));
    if (op.layer() >= 0 && uint32_t(op.layer()) != kv.layers()->Get(layer))
      bad_op(cat("It belongs to layer ", op.layer(), ", and its local KV layer ", layer, " is the model's layer ",
                 kv.layers()->Get(layer), "."));
    if (append && (appended[layer]++ > 0 || read[layer] > 0))
      bad_op(cat("Local layer ", layer, " is appended to a second time or after it was read; it must be once, before."));
    if (attention && (read[layer]++ > 0 || appended[layer] == 0))
      bad_op(cat("Local layer ", layer, " is read a second time or before the step's keys and values are in it."));
  }
  for (uint32_t layer = 0; layer < appended.size(); ++layer)
    if (appended[layer] == 0 || read[layer] == 0)
      bad(program.rank(), "Local KV layer ", layer, " has pages and is ",
          appended[layer] == 0 ? "never appended to." : "never read.");
}

void Kv::stages() {
  std::vector<std::vector<const Program *>> by_stage(plan_.pp());
  for (const Program *program : *plan_.programs())
    by_stage[program->stage()].push_back(program);
  std::vector<uint32_t> layers;
  for (uint32_t i = 0; i < by_stage.size(); ++i) {
    std::sort(by_stage[i].begin(), by_stage[i].end(),
              [](const Program *a, const Program *b) { return a->tp_index() < b->tp_index(); });
    stage(i, by_stage[i]);
    const auto *first = by_stage[i].front()->kv()->layers();
    layers.insert(layers.end(), each(first).begin(), each(first).end());
  }
  std::sort(layers.begin(), layers.end());
  auto twice = std::adjacent_find(layers.begin(), layers.end());
  if (twice != layers.end())
    bad(-1, "Layer ", *twice, " belongs to two stages.");
  else if (layers.size() != plan_.model()->layers())
    bad(-1, "The stages hold ", layers.size(), " layers together, and the model has ", plan_.model()->layers(), ".");
}

void Kv::stage(uint32_t index, const std::vector<const Program *> &ranks) {
  auto list = [](const flatbuffers::Vector<uint32_t> *v) {
    return std::vector<uint32_t>(each(v).begin(), each(v).end());
  };
  std::vector<uint32_t> layers = list(ranks.front()->kv()->layers()), held;
  for (const Program *program : ranks) {
    if (list(program->kv()->layers()) != layers)
      bad(program->rank(), "Its KV cache does not hold the same ", layers.size(), " layers as rank ",
          ranks.front()->rank(), ", which is of the same stage ", index, ".");
    std::vector<uint32_t> own = list(program->kv()->heads()), both;
    std::sort(own.begin(), own.end());
    uint32_t duplicated = 0;
    for (uint32_t head : own)
      duplicated += std::binary_search(held.begin(), held.end(), head);
    if (duplicated != program->kv()->duplicated_heads())
      bad(program->rank(), "Lower ranks of stage ", index, " hold ", duplicated, " of its KV heads too, and it says ",
          program->kv()->duplicated_heads(), ".");
    std::set_union(held.begin(), held.end(), own.begin(), own.end(), std::back_inserter(both));
    held = std::move(both);
  }
  if (!layers.empty() && held.size() != plan_.model()->kv_heads())
    bad(-1, "The ranks of stage ", index, " hold ", held.size(), " KV heads together, and the model has ",
        plan_.model()->kv_heads(), ".");
}

} // namespace

void verify_kv(const Plan &plan, Reporter &report) { Kv(plan, report).run(); }

} // namespace llmrt::plan
