// Weights: every element of every tensor is held exactly once (replicas aside), every weight is filled exactly once
// from its parts, every part comes from bytes that the file has, and the regions of a rank do not overlap.
#include "runtime/plan/tiling.h"
#include "runtime/plan/verify_internal.h"
#include "runtime/plan/version.h"

#include <algorithm>
#include <tuple>

namespace llmrt::plan {

namespace {

constexpr const char *kCheck = "weights";

// A part with where it belongs, for grouping by tensor.
struct Held {
  uint32_t tensor, stage, rank, weight;
  const WeightPart *part;
};

std::string box_text(uint64_t row, uint64_t rows, uint64_t col, uint64_t cols) {
  return cat("rows [", row, ", ", row + rows, ") × columns [", col, ", ", col + cols, ")");
}

class Weights {
public:
  Weights(const Plan &plan, Reporter &report) : plan_(plan), report_(report) {}

  void run() {
    sources();
    for (const Program *program : *plan_.programs()) {
      for (uint32_t i = 0; i < size_of(program->weights()); ++i)
        weight(*program, *program->weights()->Get(i), i);
      regions(*program);
    }
    std::sort(held_.begin(), held_.end(), [](const Held &a, const Held &b) {
      return std::tie(a.tensor, a.stage, a.rank, a.weight, a.part) <
             std::tie(b.tensor, b.stage, b.rank, b.weight, b.part);
    });
    tensors();
  }

private:
  template <typename... Parts> void bad(int64_t rank, const Parts &...parts) {
    report_.add(kCheck, rank, cat(parts...));
  }
  void sources();
  void weight(const Program &program, const Weight &weight, uint32_t index);
  void quantized(const Program &program, const Weight &weight);
  void regions(const Program &program);
  void tensors();
  void one_tensor(uint32_t index, size_t begin, size_t end);
  std::string holder(const Held &held) const {
    const WeightPart &part = *held.part;
    return cat("rank ", held.rank, "'s ",
               quoted(plan_.programs()->Get(held.rank)->weights()->Get(held.weight)->name()), " (",
               box_text(part.row(), part.rows(), part.col(), part.cols()), ")");
  }

  const Plan &plan_;
  Reporter &report_;
  std::vector<Held> held_;
};

void Weights::sources() {
  uint64_t elements = 0;
  for (const Tensor *tensor : each(plan_.tensors())) {
    if (!add_fits(elements, tensor->rows() * tensor->cols(), elements))
      elements = UINT64_MAX;
    if (tensor->file() < 0)
      continue;
    const File &file = *plan_.files()->Get(uint32_t(tensor->file()));
    uint64_t bytes = 0;
    if (!row_major_bytes(tensor->dtype(), tensor->rows(), tensor->cols(), bytes) || bytes != tensor->bytes())
      bad(-1, "Tensor ", quoted(tensor->name()), " is ", name_of(tensor->dtype()), " [", tensor->rows(), " × ",
          tensor->cols(), "], which takes ", bytes, " bytes in whole blocks, and the plan gives it ", tensor->bytes(),
          ".");
    if (!inside(tensor->offset(), tensor->bytes(), file.bytes()))
      bad(-1, "Tensor ", quoted(tensor->name()), " takes ", tensor->bytes(), " bytes from offset ", tensor->offset(),
          " of ", quoted(file.path()), ", which has ", file.bytes(), " bytes.");
  }
  if (elements != plan_.model()->parameters())
    bad(-1, "The tensors have ", elements, " elements, and the model ", plan_.model()->parameters(), " parameters.");
}

void Weights::weight(const Program &program, const Weight &weight, uint32_t index) {
  std::vector<Box> boxes;
  boxes.reserve(size_of(weight.parts()));
  std::string what = cat("Weight ", quoted(weight.name()));
  for (const WeightPart *part : *weight.parts()) {
    boxes.push_back({part->dst_row(), part->rows(), part->dst_col(), part->cols()});
    held_.push_back({part->tensor(), program.stage(), program.rank(), index, part});
  }
  if (auto fault = check_tiling(boxes, weight.rows(), weight.cols(), false)) {
    if (fault->kind == TilingFault::Outside)
      bad(program.rank(), what, " is [", weight.rows(), " × ", weight.cols(), "], and its part ", fault->a,
          " has ", boxes[fault->a].rows, " × ", boxes[fault->a].cols, " elements at (", fault->row, ", ", fault->col,
          "); it must be non-empty and lie inside.");
    else if (fault->kind == TilingFault::Gap)
      bad(program.rank(), what, " is [", weight.rows(), " × ", weight.cols(), "], and no part fills row ", fault->row,
          ", column ", fault->col, ".");
    else
      bad(program.rank(), what, " has its row ", fault->row, ", column ", fault->col, " filled twice, by parts ",
          fault->a, " and ", fault->b, ".");
  }
  quantized(program, weight);
  uint64_t bytes = 0;
  if (!weight_bytes(weight.dtype(), weight.layout(), weight.rows(), weight.cols(), bytes) || bytes != weight.bytes())
    bad(program.rank(), what, " is ", name_of(weight.dtype()), " ", name_of(weight.layout()), " [", weight.rows(),
        " × ", weight.cols(), "], which takes ", bytes, " bytes, and the plan gives it ", weight.bytes(), ".");
  if (weight.offset() % kAlignment != 0 || !inside(weight.offset(), weight.bytes(), program.weight_bytes()))
    bad(program.rank(), what, " has ", weight.bytes(), " bytes at offset ", weight.offset(),
        "; offsets are multiples of ", kAlignment, " and the region has ", program.weight_bytes(), " bytes.");
}

// A weight that stays quantised takes whole blocks, of its own type (or of Q4_0, which is Q4_1 with an offset).
void Weights::quantized(const Program &program, const Weight &weight) {
  if (is_plain_float(weight.dtype()))
    return;
  const uint64_t block = block_elements(weight.dtype());
  for (const WeightPart *part : *weight.parts()) {
    const Tensor &tensor = *plan_.tensors()->Get(part->tensor());
    const bool same = tensor.dtype() == weight.dtype() || (tensor.dtype() == DType::Q4_0 && weight.dtype() == DType::Q4_1);
    if (tensor.file() < 0 || !same)
      bad(program.rank(), "Weight ", quoted(weight.name()), " is kept as ", name_of(weight.dtype()), ", and its tensor ",
          quoted(tensor.name()), " is ", tensor.file() < 0 ? "not in a file" : name_of(tensor.dtype()), ".");
    if (part->col() % block != 0 || part->cols() % block != 0 || part->dst_col() % block != 0)
      bad(program.rank(), "Weight ", quoted(weight.name()), " is kept as ", name_of(weight.dtype()), " in blocks of ", block,
          " columns, and a part takes columns ", part->col(), " to ", part->col() + part->cols(), " of ",
          quoted(tensor.name()), ".");
  }
}

void Weights::regions(const Program &program) {
  std::vector<const Weight *> order(each(program.weights()).begin(), each(program.weights()).end());
  std::sort(order.begin(), order.end(), [](const Weight *a, const Weight *b) {
    return a->offset() != b->offset() ? a->offset() < b->offset() : a->bytes() < b->bytes();
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset() - order[i - 1]->offset() < order[i - 1]->bytes())
      bad(program.rank(), "Weights ", quoted(order[i - 1]->name()), " (", order[i - 1]->bytes(), " bytes at ",
          order[i - 1]->offset(), ") and ", quoted(order[i]->name()), " (", order[i]->bytes(), " bytes at ",
          order[i]->offset(), ") overlap in the weight region.");
}

void Weights::tensors() {
  size_t next = 0;
  for (uint32_t tensor = 0; tensor < size_of(plan_.tensors()); ++tensor) {
    size_t begin = next;
    while (next < held_.size() && held_[next].tensor == tensor)
      ++next;
    one_tensor(tensor, begin, next);
  }
}

// First holders tile the tensor exactly; replicas lie inside it (and so on elements that have a first holder); and
// a stage that holds any of it holds all of it, since a product over part of a tensor is not the model's.
void Weights::one_tensor(uint32_t index, size_t begin, size_t end) {
  const Tensor &tensor = *plan_.tensors()->Get(index);
  std::string what = cat("Tensor ", quoted(tensor.name()), " [", tensor.rows(), " × ", tensor.cols(), "]");
  std::vector<Box> boxes;
  std::vector<const Held *> from;
  auto collect = [&](size_t first, size_t last, bool replicas) {
    boxes.clear();
    from.clear();
    for (size_t i = first; i < last; ++i)
      if (replicas || !held_[i].part->replica()) {
        const WeightPart &part = *held_[i].part;
        boxes.push_back({part.row(), part.rows(), part.col(), part.cols()});
        from.push_back(&held_[i]);
      }
  };
  auto outside = [&](const TilingFault &fault) {
    bad(from[fault.a]->rank, what, " does not contain ", holder(*from[fault.a]), ".");
  };

  collect(begin, end, false);
  if (auto fault = check_tiling(boxes, tensor.rows(), tensor.cols(), false)) {
    if (fault->kind == TilingFault::Outside)
      outside(*fault);
    else if (fault->kind == TilingFault::Gap)
      bad(-1, what, ": no rank holds row ", fault->row, ", column ", fault->col, " as its first holder.");
    else
      bad(-1, what, ": row ", fault->row, ", column ", fault->col, " has two first holders, ", holder(*from[fault->a]),
          " and ", holder(*from[fault->b]), "; one of them must be a replica.");
    return;
  }
  for (size_t first = begin; first < end;) {
    size_t last = first;
    while (last < end && held_[last].stage == held_[first].stage)
      ++last;
    collect(first, last, true);
    if (auto fault = check_tiling(boxes, tensor.rows(), tensor.cols(), true)) {
      if (fault->kind == TilingFault::Outside)
        outside(*fault);
      else
        bad(-1, what, ": stage ", held_[first].stage, " uses it, and none of its ranks holds row ", fault->row,
            ", column ", fault->col, ".");
    }
    first = last;
  }
}

} // namespace

void verify_weights(const Plan &plan, Reporter &report) { Weights(plan, report).run(); }

} // namespace llmrt::plan
