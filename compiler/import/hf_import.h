// Parts of the HuggingFace importer, one file each: config.json, refusals of what is not supported, weight
// files, text assets.
#pragma once

#include "compiler/import/import.h"
#include "compiler/import/json.h"

namespace llmc {

// hf_refusal.cpp -------------------------------------------------------------------------------------------

// The object that describes the text model: the root, or its text_config. Throws for an architecture that is
// not supported: names model_type, the feature that blocks and the nearest supported family.
Json textConfig(const Json &root);
Family familyOf(const Json &text);

// hf_config.cpp --------------------------------------------------------------------------------------------

// Fills everything of `model` that comes from config.json: dimensions, flags, rope, windows, dtype, eos ids.
// Sets storedDtype when the config names one and returns whether it did.
bool readHfConfig(const Json &root, ModelSpec &model);

// hf_weights.cpp -------------------------------------------------------------------------------------------

// Reads the headers of the folder's safetensors files and fills model.files and model.tensors; storedDtype
// too when the config named none.
void readHfWeights(const std::string &folder, bool dtypeDeclared, ModelSpec &model);
// The tensors of --load-format dummy.
void dummyWeights(ModelSpec &model);
// Does the folder hold safetensors weights (or an index of them)?
bool hasSafetensors(const std::string &folder);

// hf_text.cpp ----------------------------------------------------------------------------------------------

// generation_config.json, tokenizer.json, tokenizer_config.json, chat_template.jinja,
// special_tokens_map.json, each optional.
void readHfText(const std::string &folder, ModelSpec &model);

// Adds ids that are not there yet, keeping the order.
void addEosIds(const std::vector<int64_t> &ids, TextAssets &text);
// "eos_token_id": a number, a list, or absent; -1 stands for none.
std::vector<int64_t> tokenIds(const Json &config, const char *key);

// hf_import.cpp --------------------------------------------------------------------------------------------
ModelSpec importHfFolder(const std::string &folder, LoadFormat format);

// gguf_import.cpp ------------------------------------------------------------------------------------------
ModelSpec importGguf(const std::string &path);

} // namespace llmc
