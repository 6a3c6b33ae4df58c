// Activations: the program is walked once; every column that an op reads was written before, buffers live exactly
// where the plan says, no two live ones share a byte, and each lies in its arena.
#include "runtime/plan/verify_internal.h"
#include "runtime/plan/version.h"

#include <algorithm>
#include <map>

namespace llmrt::plan {

namespace {

constexpr const char *kCheck = "buffers";

// Column ranges of one buffer that have been written: disjoint, merged, begin → end.
class Written {
public:
  void add(uint64_t begin, uint64_t end) {
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second >= begin) {
      --next;
      begin = next->first;
    }
    while (next != ranges_.end() && next->first <= end) {
      end = std::max(end, next->second);
      next = ranges_.erase(next);
    }
    ranges_[begin] = end;
  }
  // First column of [begin, end) that was not written; `end` when all were.
  uint64_t first_missing(uint64_t begin, uint64_t end) const {
    auto next = ranges_.upper_bound(begin);
    if (next == ranges_.begin() || std::prev(next)->second <= begin)
      return begin;
    return std::min(end, std::prev(next)->second);
  }

private:
  std::map<uint64_t, uint64_t> ranges_;
};

class Buffers {
public:
  Buffers(const Plan &plan, const Program &program, Reporter &report)
      : plan_(plan), program_(program), report_(report) {}

  void run() {
    walk();
    sizes();
    overlaps();
  }

private:
  template <typename... Parts> void bad(const Parts &...parts) { report_.add(kCheck, program_.rank(), cat(parts...)); }
  void walk();
  void sizes();
  void overlaps();

  const Plan &plan_;
  const Program &program_;
  Reporter &report_;
};

void Buffers::walk() {
  uint32_t count = size_of(program_.buffers()), ops = size_of(program_.ops());
  constexpr int64_t kNever = -1;
  std::vector<int64_t> first(count, kNever), last(count, kNever);
  std::vector<Written> written(count);
  auto touch = [&](const View &view, int64_t op) {
    if (first[view.buffer()] == kNever)
      first[view.buffer()] = op;
    last[view.buffer()] = op;
  };
  auto need_written = [&](const char *name, const View &view, int64_t index, const Op *op) {
    uint64_t end = uint64_t(view.col()) + view.cols();
    uint64_t missing = written[view.buffer()].first_missing(view.col(), end);
    if (missing < end)
      report_.add(kCheck, program_.rank(), index, op,
                  cat("Its ", name, " ", describe(program_, view), " is read, and column ", missing,
                      " was never written before."));
  };
  for (uint32_t i = 0; i < ops; ++i) {
    const Op &op = *program_.ops()->Get(i);
    Operands operands = operands_of(op);
    for (const ViewOperand &operand : operands)
      if (operand.view && operand.access != Access::Write)
        need_written(operand.name, *operand.view, i, &op);
    for (const ViewOperand &operand : operands)
      if (operand.view) {
        touch(*operand.view, i);
        if (operand.access != Access::Read)
          written[operand.view->buffer()].add(operand.view->col(),
                                              uint64_t(operand.view->col()) + operand.view->cols());
      }
  }
  if (const View *logits = program_.logits()) {
    need_written("logits", *logits, -1, nullptr);
    touch(*logits, int64_t(ops) - 1);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Buffer &buffer = *program_.buffers()->Get(i);
    if (first[i] == kNever)
      bad("Buffer ", quoted(buffer.name()), " is used by no op.");
    else if (buffer.first_op() > first[i] || buffer.last_op() < last[i] || buffer.last_op() >= ops)
      bad("Buffer ", quoted(buffer.name()), " is used from op ", first[i], " to op ", last[i],
          ", and the plan keeps it from op ", buffer.first_op(), " to op ", buffer.last_op(), " of ", ops, ".");
  }
}

void Buffers::sizes() {
  const Limits &limits = *plan_.limits();
  for (const Buffer *buffer : each(program_.buffers())) {
    uint64_t rows = buffer->rows() == Rows::Tokens ? limits.max_batched_tokens() : limits.max_logits_rows();
    uint64_t bytes = 0;
    if (!row_major_bytes(buffer->dtype(), rows, buffer->cols(), bytes) || bytes > buffer->bytes())
      bad("Buffer ", quoted(buffer->name()), " is ", name_of(buffer->dtype()), " [", rows, " × ", buffer->cols(),
          "] at its largest, which takes ", bytes, " bytes, and the plan gives it ", buffer->bytes(), ".");
    if (buffer->offset() % kAlignment != 0 || !inside(buffer->offset(), buffer->bytes(), program_.arena_bytes()))
      bad("Buffer ", quoted(buffer->name()), " has ", buffer->bytes(), " bytes at offset ", buffer->offset(),
          "; offsets are multiples of ", kAlignment, " and the arena has ", program_.arena_bytes(), " bytes.");
  }
}

// A sweep over ops: a buffer is entered at its first op into a map by offset, where only neighbours can touch it,
// and taken out after its last.
void Buffers::overlaps() {
  struct Event {
    uint64_t time; // 2 × first_op to enter, 2 × last_op + 1 to leave
    const Buffer *buffer;
  };
  std::vector<Event> events;
  for (const Buffer *buffer : each(program_.buffers())) {
    if (buffer->bytes() == 0 || buffer->first_op() > buffer->last_op() ||
        !inside(buffer->offset(), buffer->bytes(), program_.arena_bytes()))
      continue; // reported already
    events.push_back({2 * uint64_t(buffer->first_op()), buffer});
    events.push_back({2 * uint64_t(buffer->last_op()) + 1, buffer});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event &a, const Event &b) { return a.time < b.time; });
  std::map<uint64_t, const Buffer *> live; // by offset, disjoint
  auto clash = [&](const Buffer &a, const Buffer &b) {
    bad("Buffers ", quoted(a.name()), " (", a.bytes(), " bytes at ", a.offset(), ", ops ", a.first_op(), " to ",
        a.last_op(), ") and ", quoted(b.name()), " (", b.bytes(), " bytes at ", b.offset(), ", ops ", b.first_op(),
        " to ", b.last_op(), ") are live at once and overlap.");
  };
  for (const Event &event : events) {
    const Buffer &buffer = *event.buffer;
    if (event.time % 2 == 1) {
      auto at = live.find(buffer.offset());
      if (at != live.end() && at->second == &buffer)
        live.erase(at);
      continue;
    }
    auto next = live.lower_bound(buffer.offset());
    if (next != live.end() && next->first - buffer.offset() < buffer.bytes()) {
      clash(*next->second, buffer);
      continue;
    }
    if (next != live.begin()) {
      const Buffer &before = *std::prev(next)->second;
      if (buffer.offset() - before.offset() < before.bytes()) {
        clash(before, buffer);
        continue;
      }
    }
    live.emplace(buffer.offset(), &buffer);
  }
}

} // namespace

void verify_buffers(const Plan &plan, Reporter &report) {
  for (const Program *program : *plan.programs())
    Buffers(plan, *program, report).run();
}

} // namespace llmrt::plan
