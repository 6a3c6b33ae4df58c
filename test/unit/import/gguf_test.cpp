// GGUF: the parser's bounds, the mapping to canonical tensors, and the real SmolLM2 file where it is at hand.
#include "test/unit/import/gguf_builder.h"

#include "compiler/import/files.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

void parse(const std::string &bytes) {
  parseGguf(MemorySource(bytes), "f.gguf");
}
void expectBad(const std::string &bytes, const std::vector<std::string> &parts) {
  expectError([&] { parse(bytes); }, parts);
}
void expectImportError(const std::string &bytes, const std::vector<std::string> &parts) {
  expectError([&] { importGgufBytes(bytes); }, parts);
}

TEST(GgufReader, ReadsEveryValueType) {
  GgufBuilder b;
  b.number("u8", 0, uint8_t{200})
      .number("i8", 1, int8_t{-3})
      .number("u16", 2, uint16_t{60000})
      .number("i16", 3, int16_t{-5});
  b.u32("u32", 4000000000u)
      .number("i32", 5, int32_t{-7})
      .f32("f32", 1.5f)
      .number("bool", 7, uint8_t{1})
      .string("s", "x");
  b.strings("tokenizer.list", {"a", "", "c"})
      .number("u64", 10, uint64_t{1} << 40)
      .number("i64", 11, int64_t{-9})
      .number("f64", 12, 2.25);
  b.number("big", 10, UINT64_MAX).i32s("ints", {1, -1});
  for (uint32_t version : {2u, 3u}) {
    b.version = version;
    std::string bytes = b.file();
    GgufHeader header = parseGguf(MemorySource(bytes), "f");
    EXPECT_EQ(header.integer("u8"), 200);
    EXPECT_EQ(header.integer("i8"), -3);
    EXPECT_EQ(header.integer("u16"), 60000);
    EXPECT_EQ(header.integer("i16"), -5);
    EXPECT_EQ(header.integer("u32"), 4000000000);
    EXPECT_EQ(header.integer("i32"), -7);
    EXPECT_EQ(header.number("f32"), 1.5);
    EXPECT_EQ(header.boolean("bool"), true);
    EXPECT_EQ(header.string("s"), "x");
    EXPECT_EQ(header.find("tokenizer.list")->strings, (std::vector<std::string>{"a", "", "c"}));
    EXPECT_EQ(header.integer("u64"), int64_t{1} << 40);
    EXPECT_EQ(header.integer("i64"), -9);
    EXPECT_EQ(header.number("f64"), 2.25);
    EXPECT_EQ(header.find("ints")->ints, (std::vector<int64_t>{1, -1}));
    EXPECT_EQ(header.integer("none"), std::nullopt);
    expectError([&] { header.integer("s"); }, {"the key \"s\" should hold an integer"});
    expectError([&] { header.integer("big"); }, {"the key \"big\" should hold an integer"});
    expectError([&] { header.string("u8"); }, {"should hold a string"});
  }
}

TEST(GgufReader, RefusesOtherFilesAndVersions) {
  expectBad("", {"f.gguf", "the magic needs 4 bytes"});
  expectBad("ggml____", {"is not a GGUF file", "\"ggml\""});
  GgufBuilder b;
  b.version = 1;
  expectBad(b.file(), {"GGUF version 1", "versions 2 and 3"});
  b.version = 0x03000000;
  expectBad(b.file(), {"big-endian GGUF file (version 3)", "gguf-convert-endian"});
}

TEST(GgufReader, EveryTruncationIsAnError) {
  TinyGguf tiny;
  std::string whole =
      tiny.metadata().strings("tokenizer.ggml.tokens", {"a", "bc"}).i32s("x", {1, 2, 3}).header();
  for (size_t length = 0; length < whole.size(); ++length)
    expectError([&] { parse(whole.substr(0, length)); }, {"f.gguf"});
  EXPECT_NO_THROW(parse(whole));
}

TEST(GgufReader, BoundsCountsAndLengths) {
  GgufBuilder b;
  b.u32("a", 1);
  b.keyCountDelta = int64_t{1} << 60;
  expectBad(b.file(), {"cannot fit"});
  b.keyCountDelta = 0;
  b.tensorCountDelta = int64_t{1} << 60;
  expectBad(b.file(), {"cannot fit"});
  b.tensorCountDelta = 0;

  auto array = [](uint32_t type, uint64_t count) {
    std::string bytes;
    append(bytes, type);
    append(bytes, count);
    return bytes;
  };
  std::string pad(200, '\0');
  expectBad(GgufBuilder().raw("a", 9, array(4, uint64_t{1} << 62)).string("p", pad).file(),
            {"an array of 4611686018427387904 items"});
  expectBad(GgufBuilder().raw("a", 9, array(8, 1000)).string("p", pad).file(), {"an array of 1000 items"});
  expectBad(GgufBuilder().raw("a", 9, array(77, 1)).string("p", pad).file(), {"array of type 77"});
  expectBad(GgufBuilder().raw("a", 77, pad).file(), {"value type 77 does not exist"});
  expectBad(GgufBuilder().number("a", 7, uint8_t{2}).file(), {"a boolean of value 2"});
  std::string length;
  append(length, uint64_t{1} << 50);
  expectBad(GgufBuilder().raw("a", 8, length + pad).file(), {"a string of 1125899906842624 bytes"});
  // Arrays in arrays: read to a small depth, refused beyond.
  std::string nested;
  for (int i = 0; i < 50; ++i)
    nested += array(9, 1);
  expectBad(GgufBuilder().raw("a", 9, nested + array(0, 0)).string("p", pad).file(),
            {"nested deeper than 4"});
  EXPECT_NO_THROW(parse(
      GgufBuilder().raw("a", 9, array(9, 1) + array(9, 1) + array(0, 1) + "x").string("p", pad).file()));
  expectBad(GgufBuilder().u32("a", 1).u32("a", 2).file(), {"the key \"a\" stands twice"});
  expectBad(GgufBuilder().u32(std::string(70000, 'k'), 1).file(), {"a key of 70000 bytes"});
}

TEST(GgufReader, BoundsTensors) {
  auto one = [](std::vector<int64_t> shape, uint64_t offset = 0) {
    GgufBuilder b;
    b.tensor("t", shape, kF32, 4);
    b.tensors[0].offset = offset;
    return b;
  };
  std::string pad(64, '\0');
  expectBad(one({}).header() + pad, {"0 dimensions"});
  expectBad(one({1, 1, 1, 1, 1}).header() + pad, {"5 dimensions"});
  expectBad(one({0}).header() + pad, {"a dimension of 0"});
  expectBad(one({-1}).header() + pad, {"a dimension of"});
  expectBad(one({int64_t{1} << 40, int64_t{1} << 40}).header() + pad, {"impossible shape"});
  expectBad(one({1}, 7).header() + pad, {"offset 7, not a multiple of the alignment 32"});
  expectBad(one({1}, UINT64_MAX - 31).header() + pad, {"overflows 64 bits"});
  GgufBuilder twice;
  twice.tensor("t", {1}, kF32, 4).tensor("t", {1}, kF32, 4);
  expectBad(twice.file(), {"\"t\" stands twice"});
  for (uint32_t bad : {0u, 7u, 33u, 1u << 30}) {
    GgufBuilder b;
    b.u32("general.alignment", bad);
    expectBad(b.file(), {"general.alignment is " + std::to_string(bad)});
  }
}

TEST(GgufImport, MapsEveryTensor) {
  TinyGguf tiny;
  ModelSpec model = importGgufBytes(tiny.file());
  EXPECT_EQ(model.source, "gguf");
  EXPECT_EQ(model.name, "tiny");
  EXPECT_EQ(model.family, Family::Llama);
  EXPECT_EQ(model.headDim, 16);
  EXPECT_EQ(model.vocab, 40);
  EXPECT_EQ(model.rmsEps, 1e-5); // not 9.99999974e-06
  EXPECT_EQ(model.rope.style, RopeStyle::Interleaved);
  EXPECT_FALSE(model.tiedEmbeddings);
  EXPECT_EQ(model.storedDtype, DType::F16);
  std::vector<ExpectedTensor> expected = expectedTensors(model);
  ASSERT_EQ(model.tensors.size(), expected.size());
  std::string bytes = tiny.file();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(model.tensors[i].name, expected[i].name);
    EXPECT_EQ(model.tensors[i].shape, expected[i].shape);
    EXPECT_LE(model.tensors[i].offset + model.tensors[i].bytes, bytes.size());
    EXPECT_EQ(model.tensors[i].offset % 32, 0u);
  }
  EXPECT_EQ(model.tensors[0].fileTensor, "token_embd.weight");
  EXPECT_EQ(model.files[0].bytes, bytes.size());
}

TEST(GgufImport, Families) {
  TinyGguf qwen2{.arch = "qwen2", .tied = true, .bias = true};
  ModelSpec two = importGgufBytes(qwen2.file());
  EXPECT_EQ(two.family, Family::Qwen2);
  EXPECT_TRUE(two.qkvBias);
  EXPECT_TRUE(two.tiedEmbeddings);
  EXPECT_EQ(two.rope.style, RopeStyle::NeoX);
  TinyGguf qwen3{.arch = "qwen3", .headDim = 32};
  ModelSpec three = importGgufBytes(qwen3.file());
  EXPECT_TRUE(three.qkNorm);
  EXPECT_FALSE(three.qkvBias);
  EXPECT_EQ(three.headDim, 32);
  TinyGguf biased{.bias = true};
  EXPECT_TRUE(importGgufBytes(biased.file()).qkvBias); // llama with biases: the tensors say so
  // Qwen2 without its biases is incomplete.
  qwen2.bias = false;
  expectImportError(qwen2.file(), {"\"blk.0.attn_q.bias\" [64] is missing"});
}

TEST(GgufImport, BlockTypes) {
  for (auto [type, dtype] :
       {std::pair{kQ4_0, DType::Q4_0}, {kQ4_1, DType::Q4_1}, {kQ8_0, DType::Q8_0}, {kBF16, DType::BF16}}) {
    TinyGguf tiny{.weightType = type};
    EXPECT_EQ(importGgufBytes(tiny.file()).storedDtype, dtype);
  }
  TinyGguf kQuant{.weightType = kQ6_K, .hidden = 256, .ffn = 512};
  kQuant.headDim = 64;
  EXPECT_EQ(importGgufBytes(kQuant.file()).storedDtype, DType::Q6_K);
  TinyGguf uneven{.weightType = kQ4_K};
  expectImportError(uneven.file(), {"\"token_embd.weight\" has rows of 64 elements", "256 of a q4_k block"});
  TinyGguf tiny;
  GgufBuilder b = tiny.metadata();
  tiny.tensors(b);
  b.tensors[3].type = kQ2_K;
  expectImportError(b.file(), {"is of type Q2_K", "Q4_K, Q5_K and Q6_K"});
  b.tensors[3].type = 99;
  expectImportError(b.file(), {"is of type type 99"});
}

TEST(GgufImport, RopeScalings) {
  TinyGguf tiny;
  ModelSpec plain = importGgufBytes(tiny.file());
  auto with = [&](auto add) {
    GgufBuilder b = tiny.metadata();
    add(b);
    tiny.tensors(b);
    return importGgufBytes(b.file());
  };
  ModelSpec linear = with([](GgufBuilder &b) {
    b.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4);
  });
  EXPECT_EQ(linear.rope.scaling, "linear");
  ModelSpec old = with([](GgufBuilder &b) { b.f32("llama.rope.scale_linear", 4); });
  ModelSpec none = with([](GgufBuilder &b) {
    b.string("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 4);
  });
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(linear.rope.invFreq[i], plain.rope.invFreq[i] / 4);
    EXPECT_EQ(old.rope.invFreq[i], plain.rope.invFreq[i] / 4);
    EXPECT_EQ(none.rope.invFreq[i], plain.rope.invFreq[i]);
  }
  ModelSpec yarn = with([](GgufBuilder &b) {
    b.string("llama.rope.scaling.type", "yarn")
        .f32("llama.rope.scaling.factor", 4)
        .u32("llama.rope.scaling.original_context_length", 32);
  });
  EXPECT_EQ(yarn.rope.scaling, "yarn");
  EXPECT_NEAR(yarn.rope.attentionFactor, 1 + 0.1 * std::log(4), 1e-12);
  ModelSpec factors = with([](GgufBuilder &b) {
    std::string data;
    for (int i = 0; i < 8; ++i)
      append(data, static_cast<float>(i + 1));
    b.tensor("rope_freqs.weight", {8}, kF32, 32, data);
  });
  EXPECT_EQ(factors.rope.scaling, "llama3");
  EXPECT_FALSE(hasWarning(factors, "rope_freqs"));
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(factors.rope.invFreq[i], plain.rope.invFreq[i] / static_cast<float>(i + 1));
  expectError([&] { with([](GgufBuilder &b) { b.string("llama.rope.scaling.type", "longrope"); }); },
              {"\"longrope\" is not supported"});
  expectError([&] { with([](GgufBuilder &b) { b.string("llama.rope.scaling.type", "linear"); }); },
              {"needs a positive"});
  expectError([&] { with([](GgufBuilder &b) { b.tensor("rope_freqs.weight", {8}, kF32, 32); }); },
              {"rope_freqs.weight", "positive"});
  expectError([&] { with([](GgufBuilder &b) { b.tensor("rope_freqs.weight", {4}, kF32, 16); }); },
              {"rope_freqs.weight", "F32 [8] is needed"});
}

TEST(GgufImport, Tokens) {
  TinyGguf tiny;
  GgufBuilder b = tiny.metadata();
  std::vector<std::string> tokens(40, "x");
  std::vector<int32_t> types(40, 1);
  for (int i = 0; i < 40; ++i)
    tokens[static_cast<size_t>(i)] += std::to_string(i);
  tokens[0] = "x";
  tokens[1] = "1";
  tokens[2] = "x1";
  tokens[9] = "<|eot_id|>";
  types[9] = 3;
  b.string("tokenizer.ggml.model", "gpt2")
      .strings("tokenizer.ggml.tokens", tokens)
      .i32s("tokenizer.ggml.token_type", types);
  b.u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.padding_token_id", 0xffffffffu);
  b.string("tokenizer.chat_template", "{{ x }}").u32("tokenizer.ggml.eom_token_id", 99);
  b.string("tokenizer.ggml.pre", "gpt-2").strings("tokenizer.ggml.merges", {"x 1"});
  GgufBuilder broken = b;
  tiny.tensors(b);
  ModelSpec model = importGgufBytes(b.file());
  EXPECT_EQ(model.text.eosTokenIds, (std::vector<int32_t>{2, 9}));
  EXPECT_EQ(model.text.bosTokenId, 1);
  EXPECT_FALSE(model.text.padTokenId.has_value());
  EXPECT_EQ(model.text.bosToken, "1");
  EXPECT_EQ(model.text.eosToken, "x1");
  json tokenizer = json::parse(model.text.tokenizerJson);
  EXPECT_EQ(tokenizer["model"]["vocab"]["x1"], 2);
  EXPECT_EQ(tokenizer["model"]["merges"].size(), 1u);
  // What the converter refuses names the file.
  broken.u32("tokenizer.ggml.unknown_token_id", 1000);
  tiny.tensors(broken);
  expectImportError(broken.file(), {"m.gguf: tokenizer: ", "1000"});
  EXPECT_EQ(model.text.chatTemplate, "{{ x }}");
  EXPECT_TRUE(hasWarning(model, "99 lies outside"));
}

TEST(GgufImport, MoreTokensThanRows) {
  TinyGguf tiny;
  GgufBuilder b = tiny.metadata();
  std::vector<std::string> tokens;
  for (int i = 0; i < 41; ++i)
    tokens.push_back(std::to_string(i));
  b.string("tokenizer.ggml.model", "gpt2")
      .strings("tokenizer.ggml.tokens", tokens)
      .strings("tokenizer.ggml.merges", {"1 2"});
  tiny.tensors(b);
  expectImportError(b.file(), {"the tokenizer has 41 tokens, the embedding 40 rows"});
}

TEST(GgufImport, Windows) {
  for (auto [arch, window] : {std::pair{"llama", 24}, {"qwen3", 0}}) {
    TinyGguf tiny;
    tiny.arch = arch;
    GgufBuilder b = tiny.metadata();
    b.u32(tiny.arch + ".attention.sliding_window", 24);
    tiny.tensors(b);
    ModelSpec model = importGgufBytes(b.file());
    EXPECT_EQ(model.attention[1].window, window);
    EXPECT_EQ(hasWarning(model, "sliding_window\" is ignored"), window == 0);
  }
}

TEST(GgufImport, Refusals) {
  auto keyed = [](auto add, const std::string &arch = "llama") {
    TinyGguf tiny;
    tiny.arch = arch;
    GgufBuilder b = tiny.metadata();
    add(b);
    tiny.tensors(b);
    return b.file();
  };
  auto nothing = [](GgufBuilder &) {};
  expectImportError(keyed(nothing, "gemma2"), {"\"gemma2\" is not supported", "gemma: (1 + w) norms",
                                               "supported: llama, qwen2 and qwen3"});
  expectImportError(keyed([](GgufBuilder &b) { b.u32("qwen3moe.expert_count", 128); }, "qwen3moe"),
                    {"\"qwen3moe\" is not supported: mixture of experts (qwen3moe: expert_count=128)",
                     "nearest supported one is \"qwen3\""});
  expectImportError(keyed([](GgufBuilder &b) { b.u32("llama.expert_count", 8); }),
                    {"mixture of experts (llama: expert_count=8)"});
  expectImportError(keyed([](GgufBuilder &b) { b.u32("llama.attention.value_length", 8); }),
                    {"keys of 16 elements and values of 8"});
  expectImportError(keyed([](GgufBuilder &b) { b.f32("llama.logit_scale", 2); }), {"llama.logit_scale"});
  expectImportError(keyed([](GgufBuilder &b) { b.f32("llama.attention.clamp_kqv", 8); }),
                    {"\"llama.attention.clamp_kqv\" = 8"});
  expectImportError(keyed([](GgufBuilder &b) { b.number("llama.attention.causal", 7, uint8_t{0}); }),
                    {"\"llama.attention.causal\" is false"});
  expectImportError(keyed([](GgufBuilder &b) { b.number("llama.use_parallel_residual", 7, uint8_t{1}); }),
                    {"\"llama.use_parallel_residual\" is true"});
  for (float scale : {-1.0f, std::nanf(""), INFINITY})
    expectImportError(keyed([&](GgufBuilder &b) { b.f32("llama.attention.scale", scale); }),
                      {"\"llama.attention.scale\" is", "it must be positive"});
  expectImportError(keyed([](GgufBuilder &b) { b.string("general.type", "adapter"); }),
                    {"general.type is \"adapter\""});
  expectImportError(GgufBuilder().u32("x", 1).file(), {"\"general.architecture\" is missing"});
  expectImportError(GgufBuilder().string("general.architecture", "llama").file(),
                    {"\"llama.embedding_length\" is missing"});
}

TEST(GgufImport, ShapesPlacesAndSizes) {
  TinyGguf tiny;
  GgufBuilder b = tiny.metadata();
  tiny.tensors(b);
  std::string bytes = b.file();
  expectImportError(bytes.substr(0, bytes.size() - 10), {"is truncated", "so 10 bytes are missing"});
  GgufBuilder shape = b;
  shape.tensors[3].shape = {40, 64};
  expectImportError(shape.file(), {"\"blk.0.attn_k.weight\" has shape [40, 64]", "implies [32, 64]"});
  GgufBuilder overlap = b;
  overlap.tensors[4].offset = overlap.tensors[3].offset;
  expectImportError(overlap.file(), {"\"blk.0.attn_k.weight\" and \"blk.0.attn_v.weight\" overlap"});
  GgufBuilder gone = b;
  gone.tensors.erase(gone.tensors.begin() + 6);
  expectImportError(gone.file(), {"\"blk.0.ffn_norm.weight\" [64] is missing"});
  GgufBuilder extra = b;
  extra.tensor("blk.0.attn_rot_embd", {4}, kF32, 16);
  EXPECT_TRUE(hasWarning(importGgufBytes(extra.file()), "1 tensor(s) are not used: \"blk.0.attn_rot_embd\""));
}

// llama.cpp refuses files with tensors that it would not use; here those are refused that would change the
// result.
TEST(GgufImport, TensorsThatTheModelWouldMiss) {
  auto with = [](const std::string &name) {
    TinyGguf tiny;
    GgufBuilder b = tiny.metadata();
    tiny.tensors(b);
    b.tensor(name, {64}, kF32, 256);
    return b.file();
  };
  for (const char *name :
       {"blk.0.attn_norm.bias", "blk.1.attn_sub_norm.weight", "token_embd_norm.weight", "output_norm.bias"})
    expectImportError(with(name),
                      {"holds 1 tensor(s) that \"llama\" models do not have: \"" + std::string(name) + "\""});
  for (const char *name : {"blk.0.rope_freqs.weight", "blk.99.nextn.eh_proj.weight", "blk.x", "foo",
                           "blk.99999999999999999999.a"})
    EXPECT_TRUE(hasWarning(importGgufBytes(with(name)), "1 tensor(s) are not used")) << name;
}

TEST(GgufImport, NamedChatTemplates) {
  auto load = [](bool fallback) {
    TinyGguf tiny;
    GgufBuilder b = tiny.metadata();
    b.strings("tokenizer.chat_templates", {"rag", "tool_use"});
    b.string("tokenizer.chat_template.rag", "R").string("tokenizer.chat_template.tool_use", "T");
    if (fallback)
      b.string("tokenizer.chat_template", "D");
    tiny.tensors(b);
    return importGgufBytes(b.file());
  };
  EXPECT_EQ(load(true).text.chatTemplate, "D");
  EXPECT_FALSE(hasWarning(load(true), "no default chat template"));
  EXPECT_EQ(load(false).text.chatTemplate, "R");
  EXPECT_TRUE(hasWarning(load(false), "no default chat template among rag and tool_use; taking the first"));
}

TEST(GgufImport, SplitFiles) {
  TinyGguf tiny;
  GgufBuilder all = tiny.metadata();
  tiny.tensors(all);
  auto part = [&](uint16_t number, size_t from, size_t to) {
    GgufBuilder b = number == 0 ? tiny.metadata() : GgufBuilder();
    b.number("split.no", 2, number)
        .number("split.count", 2, uint16_t{2})
        .number("split.tensors.count", 5, static_cast<int32_t>(all.tensors.size()));
    for (size_t i = from; i < to; ++i)
      b.tensor(all.tensors[i].name, all.tensors[i].shape, all.tensors[i].type, all.tensors[i].bytes);
    return b.file();
  };
  Folder folder;
  std::string first = folder.write("m-00001-of-00002.gguf", part(0, 0, 5));
  expectError([&] { importModel(first); }, {"part 2 of 2 is missing", "m-00002-of-00002.gguf"});
  std::string second = folder.write("m-00002-of-00002.gguf", part(1, 5, all.tensors.size()));
  for (const std::string &path : {first, folder.path()}) {
    ModelSpec model = importModel(path);
    EXPECT_EQ(model.files.size(), 2u);
    EXPECT_EQ(model.tensors.front().file, 0);
    EXPECT_EQ(model.tensors.back().file, 1);
  }
  expectError([&] { importModel(second); }, {"part 2 of 2", "name the first part"});
  folder.write("m-00002-of-00002.gguf", part(1, 6, all.tensors.size()));
  expectError([&] { importModel(first); }, {"split.tensors.count is 21", "20 tensors"});
}

TEST(GgufImport, FoldersWithSeveralModels) {
  Folder folder;
  TinyGguf tiny;
  folder.write("a.gguf", tiny.file());
  folder.write("mmproj-a.gguf", std::string("x"));
  EXPECT_EQ(importModel(folder.path()).source, "gguf");
  folder.write("config.json", tinyConfig()); // without safetensors beside it
  EXPECT_EQ(importModel(folder.path()).source, "gguf");
  folder.write("b.gguf", tiny.file());
  std::filesystem::remove(folder.path() + "/config.json");
  expectError([&] { importModel(folder.path()); }, {"2 GGUF models (\"a.gguf\" and \"b.gguf\")", "--model"});
}

TEST(GgufImport, RealSmolLM2) {
  const char *fromEnvironment = std::getenv("LLMC_SMOLLM2_GGUF");
  std::string path = fromEnvironment ? fromEnvironment : LLMC_SMOLLM2_GGUF;
  if (path.empty() || !fileExists(path))
    GTEST_SKIP() << "set LLMC_SMOLLM2_GGUF to SmolLM2-135M-Instruct.Q4_1.gguf to run this test";
  ModelSpec model = importModel(path);
  EXPECT_EQ(parameterCount(model), 134515008u);
  EXPECT_EQ(kvBytesPerToken(model, 2), 23040u);
  EXPECT_EQ(model.tensors.size(), 272u);
  EXPECT_TRUE(model.tiedEmbeddings);
  EXPECT_EQ(model.storedDtype, DType::Q4_1);
  EXPECT_EQ(model.rope.theta, 100000.0);
  EXPECT_EQ(model.rmsEps, 1e-5);
  EXPECT_EQ(model.maxPositions, 8192);
  EXPECT_EQ(model.text.eosTokenIds, (std::vector<int32_t>{2}));
  EXPECT_EQ(model.text.eosToken, "<|im_end|>");
  EXPECT_NE(model.text.chatTemplate.find("<|im_start|>"), std::string::npos);
  json tokenizer = json::parse(model.text.tokenizerJson);
  EXPECT_EQ(tokenizer["model"]["merges"].size(), 48900u);
  size_t q41 = 0, f32 = 0, q80 = 0;
  for (const TensorRef &tensor : model.tensors) {
    q41 += tensor.dtype == DType::Q4_1;
    f32 += tensor.dtype == DType::F32;
    q80 += tensor.dtype == DType::Q8_0;
  }
  EXPECT_EQ(q41, 210u);
  EXPECT_EQ(f32, 61u);
  EXPECT_EQ(q80, 1u);
}

} // namespace
