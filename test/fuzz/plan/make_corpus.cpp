// Writes the seeds of the plan fuzzer: small valid plans of several shapes. Run by hand after a change of the schema:
//   plan_make_corpus test/fuzz/plan/corpus
#include "test/unit/plan/plan_builder.h"

#include <cstdio>
#include <fstream>
#include <string>

using namespace llmrt::plan;
using namespace llmrt::plan::testing;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: plan_make_corpus FOLDER\n");
    return 2;
  }
  for (uint32_t tp : {1, 2, 4})
    for (uint32_t pp : {1, 2}) {
      TinySpec spec;
      spec.tp = tp;
      spec.pp = pp;
      spec.layers = pp;
      spec.tied = tp == 2;
      spec.qkv_bias = spec.o_bias = tp != 1;
      spec.qk_norm = pp == 2;
      if (tp == 4)
        spec.weight_file = "w.bin";
      std::vector<uint8_t> bytes = pack(build_tiny_plan(spec));
      std::string path = std::string(argv[1]) + "/tp" + std::to_string(tp) + "-pp" + std::to_string(pp) + ".fb";
      std::ofstream(path, std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size()));
    }
  return 0;
}
