// An independent reference for the tiny models of the plan builder: the whole model, unsplit and without a cache,
// in double precision, written from the model's definition and not from the plan's ops.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "test/unit/plan/plan_builder.h"

namespace llmrt::exec::testing {

class Reference {
public:
  // Weights are random numbers of reasonable spread, all of them, norms and biases included; rounded to the plan's
  // weight dtype where the plan stores them so. Fixed by `seed`.
  Reference(const plan::testing::TinySpec &spec, const plan::PlanT &plan, unsigned seed = 1);

  // The bytes of the one weight file that the plan wants: all tensors, f32, in order.
  const std::vector<float> &file() const { return file_; }

  // Logits of every position of a sequence, [ids.size(), vocab].
  std::vector<double> logits(const std::vector<int32_t> &ids) const;

private:
  const std::vector<double> &tensor(const std::string &name) const { return tensors_.at(name); }

  plan::testing::TinySpec spec_;
  std::vector<float> file_;
  std::map<std::string, std::vector<double>> tensors_;
};

} // namespace llmrt::exec::testing
