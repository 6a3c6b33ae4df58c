// The table of kernel names.
#include "runtime/exec/kernel_names.h"

#include <algorithm>

#include "runtime/plan/access.h"
#include "runtime/support/error.h"

namespace llmrt::exec {

std::vector<std::string_view> kernels_of(plan::OpKind op) {
  using plan::OpKind;
  switch (op) {
  case OpKind::Embedding: // the table's layout says how it is read
    return {"cpu.embedding", "cpu.embedding.row_major", "cpu.embedding.packed16"};
  case OpKind::RmsNorm:
    return {"cpu.rms_norm"};
  case OpKind::AddRmsNorm:
    return {"cpu.add_rms_norm"};
  case OpKind::Add:
    return {"cpu.add"};
  case OpKind::Linear:
    return {"cpu.linear.packed16"};
  case OpKind::Rope:
    return {"cpu.rope"};
  case OpKind::KvAppend:
    return {"cpu.kv_append"};
  case OpKind::Attention:
    return {"cpu.attention", "cpu.attention.paged"};
  case OpKind::GatedAct:
    return {"cpu.gated_act"};
  case OpKind::SelectRows:
    return {"cpu.select_rows"};
  case OpKind::AllReduce:
    return {"cpu.all_reduce", "host.all_reduce"};
  case OpKind::AllGather:
    return {"cpu.all_gather", "host.all_gather"};
  case OpKind::Gather:
    return {"cpu.gather", "host.gather"};
  case OpKind::Send:
    return {"cpu.send", "host.send"};
  case OpKind::Recv:
    return {"cpu.recv", "host.recv"};
  case OpKind::NONE:
    break;
  }
  return {};
}

bool is_for_gpu(plan::OpKind op, std::string_view kernel) {
  constexpr std::string_view prefix = "cuda.";
  const std::string_view name = plan::name_of(op);
  if (op == plan::OpKind::NONE || kernel.substr(0, prefix.size()) != prefix ||
      kernel.substr(prefix.size(), name.size()) != name)
    return false;
  const std::string_view variant = kernel.substr(prefix.size() + name.size());
  return variant.empty() || variant.front() == '.';
}

void check_kernel(const std::string &where, plan::OpKind op, std::string_view kernel) {
  const std::vector<std::string_view> known = kernels_of(op);
  if (std::find(known.begin(), known.end(), kernel) != known.end() || is_for_gpu(op, kernel))
    return;
  std::string list;
  for (std::string_view name : known)
    list += (list.empty() ? "" : ", ") + std::string(name);
  throw Error(where + ": this llmrt has no kernel '" + std::string(kernel.substr(0, 80)) + "' (it has " +
              (list.empty() ? "none for this op" : list) +
              "): compile the plan again with the llmc of this release");
}

} // namespace llmrt::exec
