// Whether llmrt will be able to use a plan's tokenizer and chat template: both are read here as it reads them, so that
// who compiles learns it, not who serves.
#pragma once

#include <string>

namespace llmrt::plan {
struct Plan;
}

namespace llmc {

struct TextCheck {
  std::string error;   // llmrt would refuse the plan
  std::string warning; // it would serve it without chat
};

// Each a sentence, or empty.
TextCheck checkText(const llmrt::plan::Plan &plan);

} // namespace llmc
