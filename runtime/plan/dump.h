// A plan as text. Both forms are deterministic, work on any LoadedPlan (verified or not), and give long strings
// (tokenizer, chat template) by their length and hash unless asked for them whole.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>
#include <string_view>

namespace llmrt::plan {

struct DumpOptions {
  bool long_strings = false; // print strings of more than 256 bytes whole
  bool parts = true;         // text: a line for each part of a weight
};

// For people and FileCheck. One line for each device, tensor, weight, buffer and op, ops as
//   %12 = linear out=%qkv[0:96] input=%normed[0:64] weight=@qkv kernel=cpu.linear.packed16 layer=3
std::string dump_text(const Plan &plan, const DumpOptions &options = {});

// For programs: one JSON object with the schema's own names, enums by name, unions as {"op_type", "op"}. Fields at
// their schema default are absent. A long string is {"bytes": n, "xxh64": "…"} unless long_strings.
std::string dump_json(const Plan &plan, const DumpOptions &options = {});

// Appends a string with its quotes: valid JSON whatever the bytes, what is not UTF-8 becomes U+FFFD.
void append_json_string(std::string &out, std::string_view text);

} // namespace llmrt::plan
