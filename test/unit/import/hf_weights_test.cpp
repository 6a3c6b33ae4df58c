// Weight files of a folder: single, sharded, and everything that can be missing or wrong (cases 20 and 22).
#include "test/unit/import/support.h"

#include <sys/stat.h>

using namespace llmc;
using namespace llmc::test;

namespace {

using nlohmann::json;

struct Model {
  Folder folder;
  json config = tinyConfig();
  std::vector<Tensor> tensors = tensorsOf(config);

  ModelSpec load() {
    folder.write("config.json", config);
    return importModel(folder.path());
  }
  void single() { folder.write("model.safetensors", safetensors(tensors)); }
  // Two shards and an index; `skip` of them is not written.
  void sharded(int skip = -1) {
    json map;
    for (int shard = 0; shard < 2; ++shard) {
      std::string name = "model-0000" + std::to_string(shard + 1) + "-of-00002.safetensors";
      std::vector<Tensor> part;
      for (size_t i = 0; i < tensors.size(); ++i)
        if (static_cast<int>(i % 2) == shard) {
          part.push_back(tensors[i]);
          map[tensors[i].name] = name;
        }
      if (shard != skip)
        folder.write(name, safetensors(part));
    }
    folder.write("model.safetensors.index.json",
                 json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}});
  }
  void expectLoadError(const std::vector<std::string> &parts) {
    expectError([&] { load(); }, parts);
  }
};

TEST(HfWeights, SingleFile) {
  Model model;
  model.single();
  ModelSpec spec = model.load();
  ASSERT_EQ(spec.files.size(), 1u);
  EXPECT_EQ(spec.files[0].path, model.folder.path() + "/model.safetensors");
  EXPECT_EQ(spec.files[0].bytes, std::filesystem::file_size(spec.files[0].path));
  EXPECT_NE(spec.files[0].headerHash, 0u);
  EXPECT_EQ(spec.source, "hf");
  EXPECT_EQ(spec.name, std::filesystem::path(model.folder.path()).filename());
  EXPECT_EQ(spec.tensors.size(), model.tensors.size());
  EXPECT_EQ(spec.tensors.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(spec.tensors.front().bytes, 32u * 16 * 2);
  EXPECT_EQ(spec.tensors.back().name, "lm_head.weight");
  for (const TensorRef &ref : spec.tensors)
    EXPECT_EQ(ref.bytes,
              dtypeBytes(ref.dtype, static_cast<uint64_t>(ref.shape[0]) *
                                        (ref.shape.size() > 1 ? static_cast<uint64_t>(ref.shape[1]) : 1)));
}

TEST(HfWeights, Sharded) {
  Model model;
  model.sharded();
  ModelSpec spec = model.load();
  EXPECT_EQ(spec.files.size(), 2u);
  EXPECT_EQ(spec.tensors.size(), model.tensors.size());
  EXPECT_EQ(spec.tensors[0].file, 0);
  EXPECT_EQ(spec.tensors[1].file, 1);
}

TEST(HfWeights, ShardsWithoutAnIndex) {
  Model model;
  model.sharded();
  std::filesystem::remove(model.folder.path() + "/model.safetensors.index.json");
  EXPECT_EQ(model.load().files.size(), 2u);
}

// Case 22.
TEST(HfWeights, Case22AbsentShard) {
  Model model;
  model.sharded(1);
  model.expectLoadError({"model.safetensors.index.json names the shard \"model-00002-of-00002.safetensors\"",
                         "10 tensors are in it", "download the missing file"});
}

TEST(HfWeights, Case22LfsPointer) {
  Model model;
  model.folder.write("model.safetensors",
                     std::string("version https://git-lfs.github.com/spec/v1\noid sha256:"
                                 "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
                                 "size 14483498224\n"));
  model.expectLoadError({"model.safetensors is a git-LFS pointer", "14483498224 bytes", "git lfs pull"});
  // Also in place of a text file.
  model.folder.write("config.json",
                     std::string("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"));
  expectError([&] { importModel(model.folder.path()); }, {"config.json is a git-LFS pointer"});
}

TEST(HfWeights, Case22TruncatedShard) {
  Model model;
  model.sharded();
  std::string path = model.folder.path() + "/model-00002-of-00002.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  model.expectLoadError({"model-00002-of-00002.safetensors is truncated", "100 bytes are missing"});
}

TEST(HfWeights, IndexAndShardDisagree) {
  Model model;
  model.sharded();
  model.folder.write("model-00002-of-00002.safetensors", safetensors({}));
  model.expectLoadError({"index.json places tensor", "whose header does not hold it"});
}

TEST(HfWeights, IndexMayNotLeaveTheFolder) {
  Model model;
  model.folder.write("model.safetensors.index.json", json{{"weight_map", {{"a", "../x.safetensors"}}}});
  model.expectLoadError({"a file name in the same folder", "../x.safetensors"});
  model.folder.write("model.safetensors.index.json", json{{"weight_map", json::object()}});
  model.expectLoadError({"names no tensor"});
}

// Case 20.
TEST(HfWeights, Case20UntiedWithoutHead) {
  Model model;
  model.tensors.pop_back();
  model.single();
  model.expectLoadError(
      {"tie_word_embeddings is false", "lm_head.weight [32, 16]", "\"tie_word_embeddings\": true"});
  model.config["tie_word_embeddings"] = true;
  EXPECT_TRUE(model.load().tiedEmbeddings);
}

TEST(HfWeights, TiedWithASpareHead) {
  Model model;
  model.config["tie_word_embeddings"] = true;
  model.single();
  ModelSpec spec = model.load();
  EXPECT_EQ(spec.tensors.size(), model.tensors.size() - 1);
  EXPECT_FALSE(hasWarning(spec, "not used"));
}

TEST(HfWeights, MissingTensor) {
  Model model;
  std::erase_if(model.tensors, [](const Tensor &t) { return t.name == "model.layers.1.mlp.up_proj.weight"; });
  model.single();
  model.expectLoadError({"tensor \"model.layers.1.mlp.up_proj.weight\" [20, 16] is in none of the 1"});
}

TEST(HfWeights, WrongShapeNamesBoth) {
  Model model;
  for (Tensor &tensor : model.tensors)
    if (tensor.name == "model.layers.0.self_attn.k_proj.weight")
      tensor.shape = {24, 16};
  model.single();
  model.expectLoadError(
      {"\"model.layers.0.self_attn.k_proj.weight\" has shape [24, 16]", "implies [12, 16]"});
}

TEST(HfWeights, ExtraTensorsAreAWarning) {
  Model model;
  for (int i = 0; i < 5; ++i)
    model.tensors.push_back(
        {"model.layers." + std::to_string(i) + ".self_attn.rotary_emb.inv_freq", "F32", {3}});
  model.single();
  ModelSpec spec = model.load();
  EXPECT_TRUE(hasWarning(
      spec, "5 tensor(s) of the files are not used: \"model.layers.0.self_attn.rotary_emb.inv_freq\""));
}

TEST(HfWeights, DtypeOfFilesAndConfig) {
  Model model;
  model.tensors = tensorsOf(model.config, "F32");
  model.single();
  ModelSpec spec = model.load();
  EXPECT_EQ(spec.storedDtype, DType::BF16);
  EXPECT_EQ(spec.tensors[0].dtype, DType::F32);
  EXPECT_TRUE(hasWarning(spec, "config.json says bf16, most weights are f32"));
  model.config.erase("torch_dtype");
  EXPECT_EQ(model.load().storedDtype, DType::F32);
}

TEST(HfWeights, ForeignDtype) {
  Model model;
  model.tensors[3].dtype = "F8_E4M3";
  model.single();
  model.expectLoadError({"has dtype \"F8_E4M3\"", "BF16, F16 and F32", "quantised"});
}

TEST(HfWeights, PrefixesOfWrappersAndBaseModels) {
  for (auto [from, to] :
       {std::pair{"", "language_model."}, {"model.", "model.language_model."}, {"model.", ""}}) {
    Model model;
    for (Tensor &tensor : model.tensors)
      if (tensor.name.compare(0, std::strlen(from), from) == 0)
        tensor.name = to + tensor.name.substr(std::strlen(from));
    model.tensors.push_back({"vision_tower.x", "BF16", {4}});
    model.single();
    ModelSpec spec = model.load();
    EXPECT_EQ(spec.tensors[0].name, "model.embed_tokens.weight");
    EXPECT_NE(spec.tensors[0].fileTensor, spec.tensors[0].name);
    EXPECT_TRUE(hasWarning(spec, "vision_tower.x"));
  }
}

TEST(HfWeights, NoUsableWeights) {
  Model model;
  model.expectLoadError({"no model.safetensors", "--load-format dummy"});
  model.folder.write("pytorch_model-00001-of-00002.bin", std::string("x"));
  model.expectLoadError({"PyTorch pickles only", "pytorch_model-00001-of-00002.bin", ".safetensors"});
  model.folder.write("consolidated.safetensors", safetensors({}));
  std::filesystem::remove(model.folder.path() + "/pytorch_model-00001-of-00002.bin");
  model.expectLoadError({"Mistral's own layout"});
}

TEST(HfWeights, DuplicateAcrossFilesWithoutIndex) {
  Model model;
  model.folder.write("a.safetensors", safetensors(model.tensors));
  model.folder.write("b.safetensors", safetensors({model.tensors[0]}));
  model.expectLoadError({"is in both a.safetensors", "b.safetensors"});
}

// A hub's cache is links into a folder of blobs; a download that was broken off leaves some of them dangling. None may
// count as absent: not the weights, not a shard, and not the tokenizer, without which text would not be served.
TEST(HfWeights, LinksToNothing) {
  Model model;
  model.sharded();
  model.load();
  for (const char *name : {"config.json", "model.safetensors.index.json", "model-00002-of-00002.safetensors", "tokenizer.json",
                           "generation_config.json"}) {
    SCOPED_TRACE(name);
    Model broken;
    broken.sharded();
    broken.folder.write("config.json", broken.config);
    const std::filesystem::path path = broken.folder.path() + "/" + name;
    std::filesystem::remove(path);
    std::filesystem::create_symlink("../../blobs/0a1b2c", path);
    expectError([&] { importModel(broken.folder.path()); },
                {std::string(name) + " is a symbolic link to \"../../blobs/0a1b2c\", which is not there; download the file again"});
  }
}

TEST(HfWeights, AnAdapterIsNoModel) {
  Folder folder;
  folder.write("adapter_config.json", json{{"peft_type", "LORA"}});
  folder.write("adapter_model.safetensors", safetensors({}));
  expectError([&] { importModel(folder.path()); }, {"holds an adapter", "merge it into its base model"});
}

// Tied in the config, and a table of its own in the file: transformers 5 looks whether they are the same, and so do we.
TEST(HfWeights, TiedTablesThatDiffer) {
  const auto byte = [](const std::string &path, uint64_t at, char value) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(value);
  };
  Model model; // the tensors of an untied one
  model.single();
  model.config["tie_word_embeddings"] = true;
  ModelSpec same = model.load();
  EXPECT_TRUE(same.tiedEmbeddings);
  EXPECT_TRUE(same.warnings.size() == 1 && hasWarning(same, "no tokenizer.json"));
  model.config["tie_word_embeddings"] = false;
  const TensorRef head = model.load().tensors.back();
  ASSERT_EQ(head.name, "lm_head.weight");
  model.config["tie_word_embeddings"] = true;
  for (uint64_t at : {uint64_t{0}, head.bytes - 1}) {
    byte(model.folder.path() + "/model.safetensors", head.offset + at, 1);
    ModelSpec apart = model.load();
    EXPECT_FALSE(apart.tiedEmbeddings);
    EXPECT_EQ(apart.tensors.back().name, "lm_head.weight");
    EXPECT_TRUE(hasWarning(apart, "tie_word_embeddings is true, but lm_head.weight holds other numbers"));
    byte(model.folder.path() + "/model.safetensors", head.offset + at, 0);
    EXPECT_TRUE(model.load().tiedEmbeddings);
  }
  model.tensors.back().dtype = "F32";
  model.single();
  ModelSpec other = model.load();
  EXPECT_TRUE(other.tiedEmbeddings);
  EXPECT_TRUE(hasWarning(other, "lm_head.weight (F32 [32, 16]) is not used"));
}

TEST(HfWeights, PathsThatAreNoModel) {
  Folder folder;
  expectError([&] { importModel(folder.path() + "/none"); }, {"no such model folder or file"});
  expectError([&] { importModel(folder.path()); }, {"holds no config.json and no .gguf file"});
  expectError([&] { importModel(folder.write("x.txt", std::string("x"))); },
              {"neither a folder nor a .gguf file"});
  expectError([&] { importModel(folder.path(), LoadFormat::Dummy); },
              {"no config.json", "--load-format dummy needs"});
}

TEST(HfWeights, NameInsideAHubCache) {
  Folder folder;
  std::filesystem::path snapshot =
      std::filesystem::path(folder.path()) / "models--org--Some-Model" / "snapshots" / "0a1b";
  std::filesystem::create_directories(snapshot);
  std::ofstream(snapshot / "config.json") << tinyConfig().dump();
  EXPECT_EQ(importModel(snapshot.string(), LoadFormat::Dummy).name, "org/Some-Model");
}

// What people type who come from engines that download: the model's name at the hub, or the cache's folder of it.
TEST(HfWeights, AHubsNameInPlaceOfAFolder) {
  Folder folder;
  const char *before = std::getenv("HF_HOME");
  const std::string kept = before ? before : "";
  setenv("HF_HOME", folder.path().c_str(), 1);
  expectError([] { importModel("Qwen/Qwen2.5-7B-Instruct"); },
              {"no such model folder or file: Qwen/Qwen2.5-7B-Instruct", "download it, for example with \"hf download Qwen/Qwen2.5-7B-Instruct\""});
  const std::filesystem::path repository = std::filesystem::path(folder.path()) / "hub" / "models--Qwen--Qwen2.5-7B-Instruct";
  std::filesystem::create_directories(repository / "snapshots" / "0a1b");
  std::filesystem::create_directories(repository / "blobs");
  const std::string snapshot = (repository / "snapshots" / "0a1b").string();
  expectError([] { importModel("Qwen/Qwen2.5-7B-Instruct"); }, {"models are read from folders, and this one's is " + snapshot});
  expectError([&] { importModel(repository.string()); }, {"is a repository of a hub's cache; name the snapshot in it, " + snapshot});
  expectError([&] { importModel(repository.string(), LoadFormat::Dummy); }, {"name the snapshot in it"});
  for (const char *name : {"./Qwen/x", "/Qwen/x", "Qwen", "a/b/c"}) // paths, not names
    try {
      importModel(name);
      ADD_FAILURE() << name;
    } catch (const Error &error) {
      EXPECT_EQ(std::string(error.what()).find("hf download"), std::string::npos) << error.what();
    }
  before ? setenv("HF_HOME", kept.c_str(), 1) : unsetenv("HF_HOME");
}

TEST(HfWeights, APipeInPlaceOfAFile) {
  Model model;
  model.folder.write("model.safetensors.index.json", json{{"weight_map", {{"a", "pipe.safetensors"}}}});
  ASSERT_EQ(mkfifo((model.folder.path() + "/pipe.safetensors").c_str(), 0600), 0);
  model.expectLoadError({"pipe.safetensors"});
}

TEST(HfWeights, RelativePathsAndTrailingSlashes) {
  Model model;
  model.single();
  model.load();
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(model.folder.path());
  ModelSpec here = importModel(".");
  std::filesystem::current_path(before);
  EXPECT_EQ(here.files[0].path, model.folder.path() + "/model.safetensors");
  EXPECT_EQ(importModel(model.folder.path() + "//").name,
            std::filesystem::path(model.folder.path()).filename());
}

} // namespace
