// The first proof: everything that must be there is there, every enum value is known, and every index, view and
// count leads to something. All later proofs dereference without asking again.
#include "runtime/plan/verify_internal.h"

#include <algorithm>
#include <cmath>

namespace llmrt::plan {

namespace {

constexpr const char *kCheck = "structure";

template <typename Enum> bool known(Enum value) { return value >= Enum::MIN && value <= Enum::MAX; }

class Structure {
public:
  Structure(const Plan &plan, Reporter &report) : plan_(plan), report_(report) {}

  void run() {
    if (!tables())
      return;
    topology();
    files_and_tensors();
    rope_tables();
    groups();
    ranks();
    for (uint32_t rank = 0; rank < size_of(plan_.programs()); ++rank)
      program(rank, *plan_.programs()->Get(rank));
  }

private:
  template <typename... Parts> void bad(const Parts &...parts) { report_.add(kCheck, -1, cat(parts...)); }
  template <typename... Parts> void bad_rank(uint32_t rank, const Parts &...parts) {
    report_.add(kCheck, rank, cat(parts...));
  }

  bool tables();
  void topology();
  void files_and_tensors();
  void rope_tables();
  void groups();
  void ranks();
  void program(uint32_t rank, const Program &program);
  void weights(uint32_t rank, const Program &program);
  void buffers(uint32_t rank, const Program &program);
  void op(uint32_t rank, const Program &program, uint32_t index, const Op &op);
  void indices(uint32_t rank, const Program &program, uint32_t index, const Op &op);
  void view(uint32_t rank, const Program &program, int64_t index, const Op *op, const char *name, const View &view);

  const Plan &plan_;
  Reporter &report_;
};

bool Structure::tables() {
  auto need = [&](const void *table, const char *name) {
    if (!table)
      bad("The plan has no ", name, "; every plan has one. Compile the model again.");
    return table != nullptr;
  };
  bool all = need(plan_.provenance(), "provenance");
  all &= need(plan_.model(), "model");
  all &= need(plan_.text(), "text");
  all &= need(plan_.limits(), "limits");
  all &= need(plan_.topology(), "topology");
  if (!all)
    return false;
  const Model &model = *plan_.model();
  if (!known(model.weight_dtype()) || !known(model.activation_dtype()) || !known(model.kv_dtype()))
    bad("A data type of the model is unknown to this version.");
  struct {
    const char *name;
    uint64_t value;
  } const sizes[] = {{"hidden", model.hidden()},     {"layers", model.layers()},     {"q_heads", model.q_heads()},
                     {"kv_heads", model.kv_heads()}, {"head_dim", model.head_dim()}, {"vocab", model.vocab()}};
  for (const auto &size : sizes)
    if (size.value == 0 || size.value > UINT32_MAX)
      bad("The model's ", size.name, " is ", size.value, ", and must lie between 1 and ", UINT32_MAX, ".");
  uint32_t ranks = size_of(plan_.programs());
  uint64_t product = uint64_t(plan_.tp()) * plan_.pp();
  constexpr uint32_t kMostRanks = 1024;
  if (ranks > kMostRanks)
    bad("The plan has ", ranks, " ranks, and this version takes at most ", kMostRanks, ".");
  if (ranks == 0 || product != ranks)
    bad("The plan has ", ranks, " programs, and tp ", plan_.tp(), " × pp ", plan_.pp(), " = ", product,
        "; there is one program per rank, and at least one.");
  if (plan_.output_rank() >= ranks)
    bad("The output rank is ", plan_.output_rank(), ", and the plan has ", ranks, " ranks.");
  return report_.empty();
}

void Structure::topology() {
  const Topology &topology = *plan_.topology();
  uint32_t devices = size_of(topology.devices()), hosts = size_of(topology.hosts());
  if (devices == 0)
    bad("The topology has no device.");
  for (uint32_t i = 0; i < devices; ++i) {
    const Device &device = *topology.devices()->Get(i);
    if (!known(device.kind()))
      bad("Device ", i, " has kind ", int(device.kind()), ", which this version does not know.");
    if (view_of(device.id()).empty())
      bad("Device ", i, " has no id.");
    if (device.host() >= hosts)
      bad("Device ", i, " (", quoted(device.id()), ") is on host ", device.host(), ", and the topology has ", hosts,
          " hosts.");
  }
  for (uint32_t i = 0; i < size_of(topology.links()); ++i) {
    const Link &link = *topology.links()->Get(i);
    if (link.a() >= devices || link.b() >= devices || link.a() == link.b())
      bad("Link ", i, " joins devices ", link.a(), " and ", link.b(), "; it must join two of the ", devices,
          " devices.");
  }
}

void Structure::files_and_tensors() {
  uint32_t files = size_of(plan_.files());
  for (uint32_t i = 0; i < files; ++i) {
    const File &file = *plan_.files()->Get(i);
    if (view_of(file.path()).empty())
      bad("File ", i, " has no path.");
    if (file.header_bytes() > file.bytes())
      bad("File ", i, " (", quoted(file.path()), ") has a header of ", file.header_bytes(), " bytes and ",
          file.bytes(), " bytes in all.");
  }
  for (uint32_t i = 0; i < size_of(plan_.tensors()); ++i) {
    const Tensor &tensor = *plan_.tensors()->Get(i);
    std::string what = cat("Tensor ", i, " (", quoted(tensor.name()), ")");
    if (view_of(tensor.name()).empty())
      bad("Tensor ", i, " has no name.");
    if (!known(tensor.dtype()) || !known(tensor.fill()))
      bad(what, " has a data type or a fill that this version does not know.");
    if (tensor.file() < -1 || tensor.file() >= int64_t(files))
      bad(what, " is in file ", tensor.file(), ", and the plan has ", files, " files.");
    else if ((tensor.file() < 0) == (tensor.fill() == Fill::FromFile))
      bad(what, " is in file ", tensor.file(), " and has fill ", name_of(tensor.fill()),
          "; a tensor either has a file, or is filled.");
    uint64_t elements = 0;
    if (tensor.rows() == 0 || tensor.cols() == 0 || !mul_fits(tensor.rows(), tensor.cols(), elements) ||
        elements > INT64_MAX)
      bad(what, " is [", tensor.rows(), " × ", tensor.cols(), "], which no tensor can be.");
  }
}

void Structure::rope_tables() {
  for (uint32_t i = 0; i < size_of(plan_.rope_tables()); ++i) {
    const RopeTable &table = *plan_.rope_tables()->Get(i);
    if (size_of(table.inv_freq()) == 0)
      bad("Rope table ", i, " is empty.");
    bool finite = std::isfinite(table.attention_factor());
    for (float f : each(table.inv_freq()))
      finite &= std::isfinite(f);
    if (!finite)
      bad("Rope table ", i, " holds a number that is not finite.");
  }
}

void Structure::groups() {
  uint32_t ranks = size_of(plan_.programs());
  std::vector<uint32_t> seen(ranks, 0);
  for (uint32_t i = 0; i < size_of(plan_.groups()); ++i) {
    const Group &group = *plan_.groups()->Get(i);
    if (view_of(group.name()).empty() || size_of(group.ranks()) == 0)
      bad("Group ", i, " has no name or no rank.");
    for (uint32_t rank : each(group.ranks())) {
      if (rank >= ranks)
        bad("Group ", i, " (", quoted(group.name()), ") names rank ", rank, ", and the plan has ", ranks, " ranks.");
      else if (seen[rank] == i + 1)
        bad("Group ", i, " (", quoted(group.name()), ") names rank ", rank, " twice.");
      else
        seen[rank] = i + 1;
    }
  }
}

void Structure::ranks() {
  std::vector<bool> taken(size_of(plan_.programs()), false);
  for (uint32_t i = 0; i < size_of(plan_.programs()); ++i) {
    const Program &program = *plan_.programs()->Get(i);
    if (program.rank() != i)
      bad_rank(i, "Program ", i, " says that it is rank ", program.rank(), "; programs stand in rank order.");
    if (program.stage() >= plan_.pp() || program.tp_index() >= plan_.tp()) {
      bad_rank(i, "Its place is stage ", program.stage(), " of ", plan_.pp(), ", index ", program.tp_index(), " of ",
               plan_.tp(), "; it lies outside.");
      continue;
    }
    size_t place = size_t(program.stage()) * plan_.tp() + program.tp_index();
    if (taken[place])
      bad_rank(i, "Another rank is at stage ", program.stage(), ", index ", program.tp_index(), " too.");
    taken[place] = true;
  }
}

void Structure::program(uint32_t rank, const Program &program) {
  uint32_t devices = size_of(plan_.topology()->devices());
  if (program.device() >= devices)
    bad_rank(rank, "It runs on device ", program.device(), ", and the topology has ", devices, " devices.");
  if (!program.kv() || !program.ledger() || size_of(program.ops()) == 0) {
    bad_rank(rank, "It has no KV cache, no ledger or no op; every program has all three.");
    return;
  }
  if (!known(program.kv()->dtype()))
    bad_rank(rank, "The data type of its KV cache is unknown to this version.");
  for (const LedgerLine *line : each(program.ledger()->lines()))
    if (view_of(line->name()).empty())
      bad_rank(rank, "A line of its ledger has no name.");
  weights(rank, program);
  buffers(rank, program);
  for (uint32_t i = 0; i < size_of(program.ops()); ++i)
    op(rank, program, i, *program.ops()->Get(i));
  if (program.logits())
    view(rank, program, -1, nullptr, "logits", *program.logits());
  if ((program.logits() != nullptr) != (rank == plan_.output_rank()))
    bad_rank(rank, "It has ", program.logits() ? "" : "no ", "logits, and the output rank is ", plan_.output_rank(),
             "; exactly the output rank has them.");
}

void Structure::weights(uint32_t rank, const Program &program) {
  uint32_t tensors = size_of(plan_.tensors());
  for (uint32_t i = 0; i < size_of(program.weights()); ++i) {
    const Weight &weight = *program.weights()->Get(i);
    std::string what = cat("Weight ", i, " (", quoted(weight.name()), ")");
    if (view_of(weight.name()).empty())
      bad_rank(rank, "Weight ", i, " has no name.");
    if (!known(weight.dtype()) || !known(weight.layout()))
      bad_rank(rank, what, " has a data type or a layout that this version does not know.");
    if (weight.rows() == 0 || weight.cols() == 0 || size_of(weight.parts()) == 0)
      bad_rank(rank, what, " is [", weight.rows(), " × ", weight.cols(), "] of ", size_of(weight.parts()),
               " parts; it must have an element and a part.");
    for (const WeightPart *part : each(weight.parts()))
      if (part->tensor() >= tensors)
        bad_rank(rank, what, " takes a part from tensor ", part->tensor(), ", and the plan has ", tensors,
                 " tensors.");
  }
}

void Structure::buffers(uint32_t rank, const Program &program) {
  for (uint32_t i = 0; i < size_of(program.buffers()); ++i) {
    const Buffer &buffer = *program.buffers()->Get(i);
    if (view_of(buffer.name()).empty())
      bad_rank(rank, "Buffer ", i, " has no name.");
    if (!known(buffer.dtype()) || !known(buffer.rows()))
      bad_rank(rank, "Buffer ", i, " (", quoted(buffer.name()),
               ") has a data type or a kind of rows that this version does not know.");
    if (buffer.cols() == 0 || buffer.cols() > UINT32_MAX)
      bad_rank(rank, "Buffer ", i, " (", quoted(buffer.name()), ") has ", buffer.cols(),
               " columns; it must have between 1 and ", UINT32_MAX, ".");
  }
}

void Structure::view(uint32_t rank, const Program &program, int64_t index, const Op *op, const char *name,
                     const View &view) {
  uint32_t buffers = size_of(program.buffers());
  if (view.buffer() >= buffers) {
    report_.add(kCheck, rank, index, op,
                cat("Its ", name, " is a view of buffer ", view.buffer(), ", and the rank has ", buffers,
                    " buffers."));
    return;
  }
  const Buffer &buffer = *program.buffers()->Get(view.buffer());
  if (view.cols() == 0 || !inside(view.col(), view.cols(), buffer.cols()))
    report_.add(kCheck, rank, index, op,
                cat("Its ", name, " is columns [", view.col(), ", ", uint64_t(view.col()) + view.cols(),
                    ") of buffer ", quoted(buffer.name()), ", which has ", buffer.cols(),
                    " columns; a view takes at least one column, all of them inside."));
}

void Structure::op(uint32_t rank, const Program &program, uint32_t index, const Op &op) {
  auto bad_op = [&](std::string message) { report_.add(kCheck, rank, index, &op, std::move(message)); };
  if (op.op_type() == OpKind::NONE || !known(op.op_type()) || !op.op()) {
    bad_op(cat("Its kind is ", int(op.op_type()), ", which this version does not know."));
    return;
  }
  if (view_of(op.kernel()).empty())
    bad_op("It names no kernel.");
  if (op.layer() < -1 || op.layer() >= int64_t(plan_.model()->layers()))
    bad_op(cat("It belongs to layer ", op.layer(), ", and the model has ", plan_.model()->layers(), " layers."));
  Operands operands = operands_of(op);
  for (const ViewOperand &operand : operands) {
    if (operand.view)
      view(rank, program, index, &op, operand.name, *operand.view);
    else if (!operand.optional)
      bad_op(cat("Its ", operand.name, " is missing."));
  }
  uint32_t weights = size_of(program.weights());
  for (uint32_t i = 0; i < operands.num_weights; ++i) {
    const WeightOperand &operand = operands.weights[i];
    if (operand.index >= weights || operand.index < (operand.optional ? -1 : 0))
      bad_op(cat("Its ", operand.name, " is weight ", operand.index, ", and the rank has ", weights, " weights."));
  }
  indices(rank, program, index, op);
}

void Structure::indices(uint32_t rank, const Program &program, uint32_t index, const Op &op) {
  auto bad_op = [&](std::string message) { report_.add(kCheck, rank, index, &op, std::move(message)); };
  uint32_t layers = size_of(program.kv()->layers());
  auto local_layer = [&](uint32_t layer) {
    if (layer >= layers)
      bad_op(cat("It uses local KV layer ", layer, ", and the rank has ", layers, "."));
  };
  if (const Rope *rope = op.op_as_Rope()) {
    if (rope->table() >= size_of(plan_.rope_tables()))
      bad_op(cat("It uses rope table ", rope->table(), ", and the plan has ", size_of(plan_.rope_tables()), "."));
    if (!known(rope->style()))
      bad_op(cat("Its rope style is ", int(rope->style()), ", which this version does not know."));
  }
  if (const KvAppend *append = op.op_as_KvAppend())
    local_layer(append->layer());
  if (const Attention *attention = op.op_as_Attention()) {
    local_layer(attention->layer());
    uint32_t map = size_of(attention->kv_head_of_q());
    if (map != attention->q_heads() || attention->kv_heads() == 0)
      bad_op(cat("It maps ", map, " query heads to KV heads, and has ", attention->q_heads(), " query heads and ",
                 attention->kv_heads(), " KV heads."));
    else
      for (uint16_t head : *attention->kv_head_of_q())
        if (head >= attention->kv_heads()) {
          bad_op(cat("It maps a query head to local KV head ", head, ", and has ", attention->kv_heads(), "."));
          break;
        }
  }
  if (const GatedAct *act = op.op_as_GatedAct(); act && !known(act->act()))
    bad_op(cat("Its activation is ", int(act->act()), ", which this version does not know."));

  CommInfo comm = comm_of(op);
  if (!comm.is_comm)
    return;
  if (!known(comm.comm) || !known(comm.algorithm))
    bad_op("Its communicator or its algorithm is unknown to this version.");
  uint32_t ranks = size_of(plan_.programs());
  if (comm.is_transfer) {
    if (comm.peer >= ranks || comm.peer == rank)
      bad_op(cat("Its peer is rank ", comm.peer, "; it must be another of the ", ranks, " ranks."));
    return;
  }
  if (comm.group >= size_of(plan_.groups())) {
    bad_op(cat("It belongs to group ", comm.group, ", and the plan has ", size_of(plan_.groups()), " groups."));
    return;
  }
  const Group &group = *plan_.groups()->Get(comm.group);
  uint32_t members = size_of(group.ranks());
  if (op.op_type() != OpKind::AllReduce && size_of(comm.counts) != members)
    bad_op(cat("It has ", size_of(comm.counts), " counts, and group ", quoted(group.name()), " has ", members,
               " members."));
  if (op.op_type() == OpKind::Gather && comm.root >= members)
    bad_op(cat("Its root is member ", comm.root, ", and group ", quoted(group.name()), " has ", members,
               " members."));
}

} // namespace

void verify_structure(const Plan &plan, Reporter &report) { Structure(plan, report).run(); }

} // namespace llmrt::plan
