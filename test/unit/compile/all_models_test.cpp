// Every dense model of the shape table × tp 1…8 × pp 1…8 compiles, verifies, and holds exactly the model: parameters
// and KV bytes are those of the table whatever the split. Pairs that cannot be are refused with the numbers.
#include "compiler/pipeline/compile.h"
#include "compiler/support/error.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/verify.h"

#include <gtest/gtest.h>

#include <fstream>
#include <unistd.h>

using namespace llmc;
namespace fb = llmrt::plan;

namespace {

struct Shape {
  const char *name;
  uint64_t parameters;
  uint64_t kvBytesPerToken; // bf16
};

// The published parameter counts and the KV bytes that follow from the shapes.
const Shape kDense[] = {
    {"Qwen2.5-0.5B", 494032768, 12288},      {"Qwen2.5-7B", 7615616512, 57344},
    {"Qwen2.5-14B", 14770033664, 196608},    {"Qwen2.5-32B", 32763876352, 262144},
    {"Qwen2.5-72B", 72706203648, 327680},    {"Qwen3-0.6B", 596049920, 114688},
    {"Qwen3-8B", 8190735360, 147456},        {"Qwen3-32B", 32762123264, 262144},
    {"Llama-3.1-8B", 8030261248, 131072},    {"Llama-3.1-70B", 70553706496, 327680},
    {"Llama-3.2-1B", 1235814400, 32768},     {"Mistral-7B-v0.3", 7248023552, 131072},
    {"SmolLM2-135M", 134515008, 23040},
};

const char *const kMixtures[] = {"Qwen2-57B-A14B", "Qwen3-30B-A3B", "Mixtral-8x7B"};

std::string configFolder(const std::string &name) {
  return std::string(LLMC_SOURCE_DIR) + "/test/golden/configs/" + name;
}

// n GPUs on one host, all joined: of 141 GB, or (64 of them) large enough for a 72B model on one.
std::string writeTopology(int n) {
  // Of this process alone: two of them may run at once.
  std::string path = testing::TempDir() + "/topo" + std::to_string(n) + "-" + std::to_string(getpid()) + ".json";
  std::ofstream out(path);
  out << R"({"name": "test", "device_defaults": {"kind": "cuda", "name": "GPU", "memory": ")"
      << (n == 64 ? "300GB" : "141GB") << R"(", "reserved": "768MiB",
 "capability": "9.0", "memory_bandwidth": "4.8TB/s", "peak_flops": "989TFLOPS"},
 "default_link": {"kind": "NV18", "bandwidth": "400GB/s", "latency": "2us", "p2p": true}, "devices": [)";
  for (int i = 0; i < n; ++i)
    out << (i ? ", " : "") << R"({"id": "gpu)" << i << R"("})";
  out << "]}";
  return path;
}

CompileOptions optionsFor(const std::string &model, int devices, int64_t tp, int64_t pp) {
  CompileOptions options;
  options.model = configFolder(model);
  options.topology = writeTopology(devices);
  options.dummyWeights = true;
  options.tp = tp;
  options.pp = pp;
  return options;
}

// Under AddressSanitizer all 64 pairs of 13 models take a quarter of an hour: there tp and pp go 1, 4, 7.
#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kStride = 3;
#else
constexpr int64_t kStride = 1;
#endif

class AllModels : public testing::TestWithParam<Shape> {};

TEST_P(AllModels, EveryPairCompilesAndHoldsTheModel) {
  for (int64_t tp = 1; tp <= 8; tp += kStride)
    for (int64_t pp = 1; pp <= 8; pp += kStride) {
      SCOPED_TRACE("tp " + std::to_string(tp) + " pp " + std::to_string(pp));
      CompileResult result = compileModel(optionsFor(GetParam().name, 64, tp, pp));
      auto plan = fb::LoadedPlan::from_bytes(result.plan);
      ASSERT_EQ(fb::to_string(fb::verify(plan->root())), "");
      EXPECT_EQ(plan->root().model()->parameters(), GetParam().parameters);

      // Elements that have their first holder somewhere, and KV bytes of heads that no lower rank holds.
      uint64_t elements = 0, kvBytes = 0;
      for (const fb::Program *program : *plan->root().programs()) {
        for (const fb::Weight *weight : *program->weights())
          for (const fb::WeightPart *part : *weight->parts())
            if (!part->replica())
              elements += part->rows() * part->cols();
        const fb::KvCache &kv = *program->kv();
        kvBytes += kv.layers()->size() * (kv.heads()->size() - kv.duplicated_heads()) * kv.head_dim() * 2 * 2;
      }
      EXPECT_EQ(elements, GetParam().parameters);
      EXPECT_EQ(kvBytes, GetParam().kvBytesPerToken);
    }
}

// 8 devices do for some pairs only. The error names the numbers and every pair that is legal.
TEST_P(AllModels, PairsThatNeedMoreDevicesAreRefused) {
  for (int64_t tp = 1; tp <= 8; ++tp)
    for (int64_t pp = 8 / tp + 1; pp <= 8; ++pp) {
      SCOPED_TRACE("tp " + std::to_string(tp) + " pp " + std::to_string(pp));
      try {
        compileModel(optionsFor(GetParam().name, 8, tp, pp));
        FAIL() << "compiled";
      } catch (const Error &e) {
        std::string message = e.what();
        EXPECT_NE(message.find("needs " + std::to_string(tp * pp) + " devices, but the topology has 8"),
                  std::string::npos)
            << message;
        EXPECT_NE(message.find("legal on these 8 devices: tp 1 with pp 1-8, tp 2 with pp 1-4, tp 3 with pp 1-2"),
                  std::string::npos)
            << message;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(ShapeTable, AllModels, testing::ValuesIn(kDense), [](const auto &info) {
  std::string name = info.param.name;
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
});

TEST(Mixtures, AreRefusedByName) {
  for (const char *name : kMixtures) {
    SCOPED_TRACE(name);
    try {
      compileModel(optionsFor(name, 8, 2, 1));
      FAIL() << "compiled";
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find("mixture of experts"), std::string::npos) << e.what();
    }
  }
}

// More ranks than a dimension has elements, and more stages than layers.
TEST(Illegal, NamesTheDimension) {
  struct {
    int64_t tp, pp;
    const char *text;
  } const cases[] = {{10, 1, "9 query heads cannot be spread over 10 ranks"},
                     {1, 31, "30 layers cannot be cut into 31 stages"},
                     {0, 1, "must both be at least 1"}};
  for (const auto &c : cases) {
    try {
      compileModel(optionsFor("SmolLM2-135M", 64, c.tp, c.pp));
      FAIL() << "compiled";
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find(c.text), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("tp 9 with pp 1-7"), std::string::npos) << e.what();
    }
  }
}

TEST(Memory, TooLittleNamesTheDeviceAndTheLargestThatFits) {
  CompileOptions options = optionsFor("Qwen2.5-72B", 8, 1, 1);
  try {
    compileModel(options); // 145 GB of weights on one device
    FAIL() << "compiled";
  } catch (const Error &e) {
    EXPECT_NE(std::string(e.what()).find("device gpu0 (rank 0, stage 0)"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("are missing before the first KV page"), std::string::npos) << e.what();
  }

  options = optionsFor("Qwen2.5-72B", 8, 2, 1);
  options.maxNumSeqs = 16;
  options.maxBatchedTokens = 2048;
  options.memoryUtilization = 0.54;
  options.maxModelLen = 32768;
  size_t at = std::string::npos;
  std::string message;
  try {
    compileModel(options);
    FAIL() << "compiled";
  } catch (const Error &e) {
    message = e.what();
    at = message.find("the largest that fits is --max-model-len ");
    ASSERT_NE(at, std::string::npos) << message;
  }
  // And it does fit, while one page more does not.
  int64_t largest = std::stoll(message.substr(at + 41));
  options.maxModelLen = largest;
  EXPECT_NO_THROW(compileModel(options));
  options.maxModelLen = largest + options.pageSize;
  EXPECT_THROW(compileModel(options), Error);
}

TEST(Determinism, TheSameInputsGiveTheSameBytes) {
  auto compile = [] { return compileModel(optionsFor("Qwen2.5-0.5B", 8, 3, 2)).plan; };
  EXPECT_EQ(compile(), compile());
}

} // namespace
